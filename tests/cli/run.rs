//! `highwater run`: what the command prints, reads and ends with is what it would be without us; what it leaves behind is
//! found. The commands are small shell scripts in place of a compiler.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::command_line::{stderr, stdout};
use crate::common;

/// Writes the dump in `$DUMP` to where `XLA_FLAGS` says.
const COMPILE: &str = r#"
for flag in $XLA_FLAGS; do case $flag in --xla_dump_to=*) to=${flag#*=};; esac; done
mkdir -p "$to"; cp "$DUMP"/* "$to"
"#;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An unpacked dump of a test program, as a compiler would write it.
    fn dump(&self, case: &str) -> PathBuf {
        let source = common::Files::of_project().case(case);
        let to = self.at("compiled");
        fs::create_dir_all(&to).expect("a folder");
        let name = source.file_name().expect("a name").to_string_lossy().replace(".gz", "");
        fs::write(to.join(&name), &common::bytes(&source)[..]).expect("written");
        fs::write(to.join(name.replace("after_optimizations", "before_optimizations")), b"\x0a\x01x").expect("written");
        to
    }

    /// `highwater run OPTIONS -- sh -c SCRIPT`, with `run` in this place as the folder of the run.
    fn command(&self, options: &[&str], script: &str) -> Command {
        // Whoever starts the tests in the background has told them to ignore Ctrl C, and a shell cannot undo that.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_highwater")]);
        let unset = ["DISPLAY", "WAYLAND_DISPLAY", "XLA_FLAGS", "POPLAR_ENGINE_OPTIONS", "PYTHONPATH", "HIGHWATER_RUN"];
        for name in unset {
            command.env_remove(name);
        }
        command.arg("run").arg("--out").arg(self.at("run")).args(options).args(["--", "sh", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, options: &[&str], script: &str) -> Output {
        self.command(options, script).output().expect("it runs")
    }

    fn left(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(folder)).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// The lines that are ours.
fn ours(errors: &str) -> Vec<&str> {
    errors.lines().filter_map(|line| line.strip_prefix("highwater: ")).collect()
}

/// Waits until a file is there.
fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).expect("sent");
}

#[test]
fn streams_and_exit_status_are_those_of_the_command() {
    let place = Place::new();
    let mut child = place.command(&["--quiet"], "cat; printf 'err\\nor\\r' >&2; exit 7").stdin(Stdio::piped()).spawn();
    let child = child.as_mut().expect("it runs");
    // More than a pipe holds, and no text.
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    let mut input = child.stdin.take().expect("a pipe");
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    child.stdout.take().expect("a pipe").read_to_end(&mut out).expect("read");
    child.stderr.take().expect("a pipe").read_to_end(&mut err).expect("read");
    writer.join().expect("a thread").expect("written");
    assert!(out == bytes, "{} bytes of {}", out.len(), bytes.len());
    assert_eq!(err, b"err\nor\r");
    assert_eq!(child.wait().expect("it ends").code(), Some(7));
    assert!(!place.at("run").exists(), "nothing was left behind, so there is no folder");
}

#[test]
fn output_and_errors_in_one_pipe_keep_their_order() {
    let place = Place::new();
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let script = "i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let mut command = place.command(&["--quiet"], script);
    command.stdout(writer.try_clone().expect("a pipe")).stderr(writer);
    let mut child = command.spawn().expect("it runs");
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    child.wait().expect("it ends");
    let wanted: Vec<String> = (0..500).flat_map(|i| [format!("out {i}"), format!("err {i}")]).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_command_that_cannot_be_run_ends_as_env_would_say() {
    let place = Place::new();
    let run = |program: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
        command.arg("run").arg("--out").arg(place.at("run")).args(["--", program]).output().expect("it runs")
    };
    let missing = run("/nonexistent/program");
    assert_eq!(missing.status.code(), Some(127));
    assert!(stderr(&missing).contains("/nonexistent/program: cannot be run: "), "{}", stderr(&missing));
    let folder = place.folder.path().to_str().expect("UTF-8").to_owned();
    assert_eq!(run(&folder).status.code(), Some(126));
    assert!(!place.at("run").exists());
}

#[test]
fn signals_reach_the_command_and_end_us_as_they_ended_it() {
    let place = Place::new();
    let ready = place.at("ready");
    // It answers one signal, and goes on; another ends it.
    let script = format!(
        "trap 'echo usr1' USR1; trap 'echo int; exit 5' INT; touch {}; while :; do sleep 0.02; done",
        ready.display()
    );
    let start = || {
        let child = place.command(&["--quiet"], &script).spawn().expect("it runs");
        wait_for(&ready);
        fs::remove_file(&ready).expect("removed");
        child
    };
    let child = start();
    send(&child, rustix::process::Signal::USR1);
    std::thread::sleep(Duration::from_millis(300));
    send(&child, rustix::process::Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("usr1\nint\n", Some(5)));
    let child = start();
    send(&child, rustix::process::Signal::TERM);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.signal(), Some(15), "{:?}", output.status);
}

#[test]
fn a_killed_command_looks_killed() {
    let place = Place::new();
    let output = place.run(&[], "kill -KILL $$");
    assert_eq!(output.status.signal(), Some(9), "{:?}", output.status);
    let output = place.run(&[], "kill -SEGV $$");
    assert_eq!(output.status.signal(), Some(11), "{:?}", output.status);
}

#[test]
fn what_was_ignored_stays_ignored() {
    let place = Place::new();
    let own = place.command(&["--quiet"], "kill -HUP $$; echo alive");
    let mut command = Command::new("nohup");
    command.arg(own.get_program()).args(own.get_args()).stdin(Stdio::null()).stdout(Stdio::piped());
    let output = command.stderr(Stdio::piped()).output().expect("it runs");
    assert_eq!(stdout(&output), "alive\n");
}

#[test]
fn a_process_left_behind_is_not_waited_for() {
    let place = Place::new();
    let begun = Instant::now();
    let output = place.run(&["--quiet"], "sleep 20 >/dev/null & echo gone on >&2");
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert_eq!(stderr(&output), "gone on\n");
}

#[test]
fn a_program_that_does_not_fit_is_named_with_its_plan() {
    let place = Place::new();
    let dump = place.dump("v5e_gpt_m_oom");
    let message = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory \
                   in memory space hbm. Used 25.90G of 15.75G hbm. Exceeded hbm capacity by 10.15G.";
    let script = format!("{COMPILE}\necho working; echo '{message}' >&2; exit 1");
    let output = place.command(&[], &script).env("DUMP", &dump).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "the status is the command's");
    assert_eq!(stdout(&output), "working\n", "nothing of ours is on standard output");
    let errors = stderr(&output);
    assert!(errors.starts_with(message), "{errors}");
    let line = format!("jit_train_step needs 25.9 of 15.75 GiB: does not fit; highwater {}", place.at("run").display());
    let told = ours(&errors);
    assert_eq!(told.len(), 2, "{errors}");
    assert_eq!(told[0], line, "{errors}");
    assert!(told[1].starts_with("plan: With ") && told[1].contains(" fits"), "{errors}");
    assert!(
        errors.contains("Does not fit: ") && errors.contains("plan"),
        "the report stands in for the window: {errors}"
    );
    let left = place.left("run");
    let wanted = ["module_0000.jit_train_step.cl_1003875606.after_optimizations.hlo.pb", "output.err.txt"];
    assert_eq!(left, wanted, "the other stages are gone");
}

#[test]
fn our_line_begins_where_a_line_begins() {
    let place = Place::new();
    let output = place.run(&[], "printf 'epoch 1: 100%%' >&2");
    assert!(stderr(&output).starts_with("epoch 1: 100%\nhighwater: "), "{}", stderr(&output));
    let output = place.run(&["--quiet"], "printf 'epoch 1: 100%%' >&2");
    assert_eq!(stderr(&output), "epoch 1: 100%");
}

#[test]
fn a_message_alone_is_explained() {
    let place = Place::new();
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oom_texts/torch_cuda.txt");
    let output = place.run(&[], &format!("cat {} >&2; exit 1", texts.display()));
    let errors = stderr(&output);
    assert!(ours(&errors)[0].starts_with("out of memory; no program was dumped"), "{errors}");
    assert!(place.at("run/output.err.txt").is_file());
    let output = place.run(&["--open", "never"], &format!("cat {} >&2; exit 1", texts.display()));
    assert!(stderr(&output).lines().last().is_some_and(|line| line.starts_with("highwater: out of memory")));
}

#[test]
fn a_dump_folder_of_the_user_is_used_and_left_alone() {
    let place = Place::new();
    let (dump, mine) = (place.dump("v5e_gpt_s_scan"), place.at("mine"));
    fs::create_dir(&mine).expect("a folder");
    fs::write(mine.join("module_0007.jit_old.before_optimizations.hlo.pb"), b"\x0a\x01x").expect("written");
    let script = format!("{COMPILE}\necho \"$XLA_FLAGS\"");
    let flags = format!("--xla_cpu_enable_fast_math=false --xla_dump_to={}", mine.display());
    let output = place.command(&[], &script).env("DUMP", &dump).env("XLA_FLAGS", &flags).output().expect("it runs");
    assert_eq!(stdout(&output), format!("{flags} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto\n"));
    let errors = stderr(&output);
    let lines = ours(&errors);
    assert!(lines.len() == 1 && lines[0].ends_with(&format!("; highwater {}", mine.display())), "{errors}");
    assert_eq!(place.left("mine").len(), 3, "nothing is removed from a folder that is not ours");
    assert!(!place.at("run").exists());
}

#[test]
fn a_run_within_a_run_keeps_what_it_finds_apart_and_both_say_it() {
    let place = Place::new();
    let dump = place.dump("v5e_gpt_m_oom");
    fs::write(place.at("compile.sh"), COMPILE).expect("written");
    let script =
        format!("{} run --open never -- sh {}", env!("CARGO_BIN_EXE_highwater"), place.at("compile.sh").display());
    let output = place.command(&["--open", "never"], &script).env("DUMP", &dump).output().expect("it runs");
    let errors = stderr(&output);
    let (inner, outer) = match &ours(&errors)[..] {
        [inner, outer] => (*inner, *outer),
        lines => panic!("{lines:?}"),
    };
    let run = place.at("run").display().to_string();
    assert!(outer.ends_with(&format!("; highwater {run}")), "{outer}");
    assert!(
        inner.contains(&format!("; highwater {run}/")),
        "the folder of the inner run lies in the outer one: {inner}"
    );
    assert!(inner.starts_with("jit_train_step needs 25.9"), "{inner}");
}

#[test]
fn two_runs_at_once_have_two_folders() {
    let place = Place::new();
    let dump = place.dump("v5e_mlp_f32_debugprint");
    let script = format!("{COMPILE}\nsleep 0.5");
    let children: Vec<Child> =
        (0..4).map(|_| place.command(&[], &script).env("DUMP", &dump).spawn().expect("it runs")).collect();
    let mut folders: Vec<String> = Vec::new();
    for child in children {
        let errors = stderr(&child.wait_with_output().expect("it ends"));
        let line = ours(&errors).last().map(ToString::to_string).expect("a line");
        folders.push(line.rsplit(' ').next().expect("a folder").to_owned());
    }
    folders.sort();
    let wanted = ["run", "run-2", "run-3", "run-4"].map(|name| place.at(name).display().to_string());
    assert_eq!(folders, wanted);
    assert!(folders.iter().all(|folder| Path::new(folder).read_dir().expect("a folder").count() == 1));
}

#[test]
fn a_limit_has_an_exit_status_of_its_own() {
    let place = Place::new();
    let dump = place.dump("v5e_gpt_m_oom");
    let run = |options: &[&str], end: &str| {
        let script = format!("{COMPILE}\nexit {end}");
        place.command(options, &script).env("DUMP", &dump).output().expect("it runs")
    };
    let output = run(&["--fail-over", "95%", "--capacity", "15.75GiB", "--open", "never"], "0");
    assert_eq!(output.status.code(), Some(110), "{}", stderr(&output));
    assert!(stderr(&output).contains("of 15.75 GiB, more than --fail-over allows"), "{}", stderr(&output));
    assert_eq!(run(&["--fail-over", "95%", "--capacity", "64GiB", "--quiet"], "0").status.code(), Some(0));
    assert_eq!(
        run(&["--fail-over", "95%", "--capacity", "1GiB", "--quiet"], "4").status.code(),
        Some(4),
        "a failure stays what it is"
    );
    let output = place.run(&["--fail-over", "95%", "--quiet"], "true");
    assert_eq!(output.status.code(), Some(3), "nothing was measured: {}", stderr(&output));
}

#[test]
fn the_report_of_a_run_is_written_where_it_is_wanted() {
    let place = Place::new();
    let dump = place.dump("v5e_gpt_s_scan");
    let report = place.at("memory.json");
    let mut command = place.command(&["--report", report.to_str().expect("UTF-8")], COMPILE);
    assert!(command.env("DUMP", &dump).output().expect("it runs").status.success());
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON");
    assert_eq!(json["schema"], "highwater.report/1");
    assert_eq!(json["profiles"][0]["programs"][0]["name"], "jit_train_step");
}

/// A terminal, and what is read from it.
fn terminal() -> (rustix::fd::OwnedFd, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&outer).expect("granted");
    unlockpt(&outer).expect("unlocked");
    let name = ptsname(&outer, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let inner = fs::OpenOptions::new().read(true).write(true).open(name).expect("opened");
    let size = rustix::termios::Winsize { ws_row: 33, ws_col: 111, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&inner, size).expect("a size");
    (outer, inner)
}

#[test]
fn a_terminal_stays_a_terminal_and_a_progress_bar_is_unchanged() {
    let place = Place::new();
    let script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; stty size <&2; \
                  i=0; while [ $i -lt 20 ]; do printf '\\r%d%% \\033[32m###\\033[0m' $i >&2; printf x; i=$((i+1)); done; \
                  printf '\\n' >&2";
    let read = |mut command: Command| {
        let (outer, inner) = terminal();
        command.stdin(inner.try_clone().expect("a copy")).stdout(inner.try_clone().expect("a copy")).stderr(inner);
        let mut child = command.spawn().expect("it runs");
        drop(command);
        let mut bytes = Vec::new();
        // A terminal that nobody holds any more ends with an error.
        let _ = fs::File::from(outer).read_to_end(&mut bytes);
        assert!(child.wait().expect("it ends").success());
        String::from_utf8(bytes).expect("UTF-8")
    };
    let mut plain = Command::new("sh");
    plain.args(["-c", script]);
    let (with, without) = (read(place.command(&["--quiet"], script)), read(plain));
    assert_eq!(with, without);
    assert!(with.starts_with("all\r\n33 111\r\n"), "{with:?}");
}

#[test]
fn a_message_on_a_terminal_is_read() {
    let place = Place::new();
    let (outer, inner) = terminal();
    let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
                   15.77 GiB of which 1.21 GiB is free.";
    let mut command = place.command(&["--open", "never"], &format!("echo '{message}' >&2; exit 1"));
    command.stdout(inner.try_clone().expect("a copy")).stderr(inner);
    let mut child = command.spawn().expect("it runs");
    drop(command);
    let mut bytes = Vec::new();
    let _ = fs::File::from(outer).read_to_end(&mut bytes);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.starts_with(message) && text.contains("highwater: out of memory"), "{text:?}");
    assert!(!text.contains('\u{1b}'), "nothing that was printed is erased: {text:?}");
}
