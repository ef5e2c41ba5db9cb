//! Shows a file in the desktop's own file manager.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Opens the file manager at a file or folder.
///
/// # Errors
/// If no file manager could be started.
pub fn reveal(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let mut command = if cfg!(target_os = "macos") {
        let mut command = Command::new("open");
        command.arg("-R").arg(&path);
        command
    } else if cfg!(target_os = "windows") {
        let mut command = Command::new("explorer");
        command.arg("/select,").arg(&path);
        command
    } else {
        // There is no desktop-independent way to select a file, so its folder is opened.
        let folder = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
        let mut command = Command::new("xdg-open");
        command.arg(folder);
        command
    };
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // The child is waited for, so that none is left behind as a zombie.
    std::thread::Builder::new().name("file manager".to_owned()).spawn(move || child.wait())?;
    Ok(())
}
