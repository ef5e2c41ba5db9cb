//! The window on a real X server: it opens a file, takes keys, and closes when asked to. Needs Xvfb and xdotool.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common;

/// Ends the process with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn is_there(program: &str, argument: &str) -> bool {
    quiet(program).arg(argument).status().is_ok()
}

/// Opens the window of the program itself on a display of its own, presses keys, and quits.
pub fn opens_takes_keys_and_quits() {
    assert!(is_there("Xvfb", "-help"), "Xvfb is not installed");
    assert!(is_there("xdotool", "version"), "xdotool is not installed");
    let number = 200 + std::process::id() % 300;
    let display = format!(":{number}");
    let server = quiet("Xvfb").args([&display, "-screen", "0", "1280x800x24", "-nolisten", "tcp"]).spawn();
    let _server = Killed(server.expect("Xvfb starts"));
    let socket = format!("/tmp/.X11-unix/X{number}");
    let began = Instant::now();
    while !std::path::Path::new(&socket).exists() && began.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(50));
    }
    let dump = common::sample_programs().into_iter().next().expect("a sample");
    // Settings of its own: those of the person at this machine are neither read nor written.
    let settings = tempfile::tempdir().expect("a folder");
    let window = Command::new(env!("CARGO_BIN_EXE_highwater"))
        .arg(&dump)
        .env("DISPLAY", &display)
        .env("XDG_CONFIG_HOME", settings.path())
        .env_remove("WAYLAND_DISPLAY")
        .env("LIBGL_ALWAYS_SOFTWARE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut window = Killed(window.expect("the program starts"));
    let tell =
        |words: &[&str]| quiet("xdotool").env("DISPLAY", &display).args(words).status().expect("xdotool").success();
    let began = Instant::now();
    let mut found = false;
    while !found && began.elapsed() < Duration::from_mins(1) {
        if let Ok(Some(status)) = window.0.try_wait() {
            let said = window.0.stderr.take().and_then(|pipe| std::io::read_to_string(pipe).ok()).unwrap_or_default();
            panic!("ended with {status}: {said}");
        }
        // The title begins with what is open.
        found = tell(&["search", "--onlyvisible", "--name", "Highwater$"]);
        sleep(Duration::from_millis(100));
    }
    assert!(found, "no window within a minute");
    sleep(Duration::from_secs(1));
    // Without a window manager nothing has the focus until it is given.
    assert!(tell(&["search", "--name", "Highwater$", "windowfocus"]));
    for keys in ["2", "w", "3", "question", "Escape", "ctrl+q"] {
        tell(&["key", keys]);
        sleep(Duration::from_millis(300));
    }
    let began = Instant::now();
    loop {
        if let Some(status) = window.0.try_wait().expect("its state") {
            assert!(status.success(), "{status}");
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "Ctrl Q does not close it");
        sleep(Duration::from_millis(100));
    }
}
