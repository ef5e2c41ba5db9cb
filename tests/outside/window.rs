//! The window on a real X server: it opens a file, handles keys, and closes on request. Needs Xvfb and xdotool.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common;

/// Kills the process when the test ends.
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

/// An X server on a free display, and the name of that display.
fn display() -> (Killed, String) {
    // The server writes its display number once it accepts connections.
    let mut server = quiet("Xvfb");
    // Else it begins anew whenever its only client leaves, such as the one that looks for the window, and refuses others
    // meanwhile.
    let arguments = ["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"];
    server.args(arguments).stdout(Stdio::piped());
    let mut server = Killed(server.spawn().expect("Xvfb starts"));
    let mut number = String::new();
    let output = server.0.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut number).expect("the number of a display");
    assert!(!number.trim().is_empty(), "Xvfb ended without a display");
    (server, format!(":{}", number.trim()))
}

/// Runs the binary on a display of its own, presses keys, and quits.
pub fn opens_takes_keys_and_quits() {
    assert!(is_there("Xvfb", "-help"), "Xvfb is not installed");
    assert!(is_there("xdotool", "version"), "xdotool is not installed");
    let (_server, display) = display();
    let dump = common::sample_programs().into_iter().next().expect("a sample");
    // Uses settings of its own: those of the user are neither read nor written.
    let settings = tempfile::tempdir().expect("a folder");
    let log = settings.path().join("stderr");
    let window = Command::new(env!("CARGO_BIN_EXE_highwater"))
        .arg(&dump)
        .env("DISPLAY", &display)
        .env("XDG_CONFIG_HOME", settings.path())
        .env_remove("WAYLAND_DISPLAY")
        .env("LIBGL_ALWAYS_SOFTWARE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).expect("a file"))
        .spawn();
    let mut window = Killed(window.expect("the program starts"));
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let tell =
        |words: &[&str]| quiet("xdotool").env("DISPLAY", &display).args(words).status().expect("xdotool").success();
    // Without a window manager, the focus must be set explicitly. The title starts with the open file.
    let focus = || tell(&["search", "--onlyvisible", "--name", "Highwater$", "windowfocus"]);
    let began = Instant::now();
    while !focus() {
        if let Some(status) = window.0.try_wait().expect("its state") {
            panic!("ended with {status}: {}", said());
        }
        assert!(began.elapsed() < Duration::from_mins(2), "no window within two minutes: {}", said());
        sleep(Duration::from_millis(200));
    }
    sleep(Duration::from_secs(1));
    for keys in ["2", "w", "3", "question", "Escape"] {
        assert!(tell(&["key", keys]), "{keys} could not be sent");
        sleep(Duration::from_millis(300));
        assert_eq!(window.0.try_wait().expect("its state"), None, "ended by {keys}: {}", said());
    }
    // A slow machine may still be drawing its first frames, and keys pressed before it has the focus are lost: retry.
    let began = Instant::now();
    let mut asked = 0;
    loop {
        focus();
        tell(&["key", "ctrl+q"]);
        asked += 1;
        let wait = Instant::now();
        while wait.elapsed() < Duration::from_secs(5) {
            if let Some(status) = window.0.try_wait().expect("its state") {
                assert!(status.success(), "{status}: {}", said());
                return;
            }
            sleep(Duration::from_millis(100));
        }
        let waited = began.elapsed();
        assert!(waited < Duration::from_mins(1), "Ctrl Q, pressed {asked} times, does not close it: {}", said());
    }
}
