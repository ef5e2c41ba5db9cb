//! The running command: signals reach it as they would without us, and its exit status becomes ours.

use std::io;
use std::process::{Child, ExitCode, ExitStatus};

/// What it takes to wait for a command that is about to start.
#[derive(Default)]
pub struct Waiting {
    #[cfg(unix)]
    signals: Option<signals::PassedOn>,
}

impl Waiting {
    /// Takes the signals that are sent to us, from before the command starts.
    ///
    /// # Errors
    /// If the system refuses.
    #[cfg(unix)]
    pub fn prepare(streams: &super::streams::Streams) -> io::Result<Self> {
        Ok(Self { signals: Some(signals::PassedOn::take(streams.terminal())?) })
    }

    /// Nothing to prepare: signals are those of Unix.
    ///
    /// # Errors
    /// Never.
    #[cfg(not(unix))]
    pub fn prepare(_streams: &super::streams::Streams) -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Waits for the command to end and meanwhile passes on the signals that are sent to us alone.
    ///
    /// # Errors
    /// If the system refuses to wait.
    #[cfg(unix)]
    pub fn wait(self, mut child: Child) -> io::Result<ExitStatus> {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

        let pid = Pid::from_child(&child);
        if let Some(signals) = &self.signals {
            signals.start(pid);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), options).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        // From here on its number may belong to somebody else.
        if let Some(signals) = &self.signals {
            signals.stop();
        }
        child.wait()
    }

    /// Waits for the command to end.
    ///
    /// # Errors
    /// If the system refuses to wait.
    #[cfg(not(unix))]
    pub fn wait(self, mut child: Child) -> io::Result<ExitStatus> {
        child.wait()
    }
}

/// Ends as the command has ended: with its exit status, or by the signal that ended it.
#[cfg(unix)]
pub fn end_like(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::{Resource, Rlimit, setrlimit};

    let Some(number) = status.signal() else { return code(status.code()) };
    // The command has left its core; ours would be about something else.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = signal_hook::low_level::emulate_default_handler(number);
    // What a shell would say.
    ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX))
}

/// Ends with the exit status of the command.
#[cfg(not(unix))]
pub fn end_like(status: ExitStatus) -> ExitCode {
    code(status.code())
}

fn code(code: Option<i32>) -> ExitCode {
    ExitCode::from(u8::try_from(code.unwrap_or(1) & 0xff).unwrap_or(1))
}

#[cfg(unix)]
mod signals {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
    use signal_hook::iterator::exfiltrator::WithOrigin;
    use signal_hook::iterator::{Handle, SignalsInfo};
    use signal_hook::low_level::siginfo::Cause;

    use crate::cli::run::streams::terminal::Terminal;

    /// Signals that would end us, and that are the command's to answer.
    const PASSED_ON: &[i32] = &[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

    /// Signals on their way to the command.
    pub struct PassedOn {
        way: Arc<Mutex<Way>>,
        handle: Handle,
    }

    /// Where signals go.
    enum Way {
        /// There is no command yet: it will get these.
        Early(Vec<i32>),
        /// To this process.
        To(Pid),
        /// The command has ended.
        Nowhere,
    }

    impl Way {
        fn send(&mut self, number: i32) {
            match self {
                Self::Early(waiting) => waiting.push(number),
                Self::To(pid) => {
                    if let Some(signal) = Signal::from_named_raw(number) {
                        let _ = kill_process(*pid, signal);
                    }
                }
                Self::Nowhere => {}
            }
        }
    }

    impl PassedOn {
        /// Takes the signals from now on.
        pub fn take(terminal: Option<Arc<Terminal>>) -> io::Result<Self> {
            let ignored = ignored();
            let wanted = PASSED_ON.iter().chain(&[SIGWINCH]).filter(|signal| ignored >> (**signal - 1) & 1 == 0);
            let mut signals = SignalsInfo::<WithOrigin>::new(wanted)?;
            let handle = signals.handle();
            let way = Arc::new(Mutex::new(Way::Early(Vec::new())));
            let sent = Arc::clone(&way);
            std::thread::spawn(move || {
                for origin in signals.forever() {
                    if origin.signal == SIGWINCH {
                        // The size must be right before the command asks for it.
                        let Some(terminal) = &terminal else { continue };
                        terminal.resize();
                    } else if origin.cause == Cause::Kernel {
                        // From the terminal, which sends it to the command as well.
                        continue;
                    }
                    sent.lock().unwrap_or_else(PoisonError::into_inner).send(origin.signal);
                }
            });
            Ok(Self { way, handle })
        }

        /// From now on this process gets them, and first those that came before it.
        pub fn start(&self, process: Pid) {
            let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
            if let Way::Early(waiting) = std::mem::replace(&mut *way, Way::To(process)) {
                for number in waiting {
                    way.send(number);
                }
            }
        }

        /// From now on nobody gets them.
        pub fn stop(&self) {
            *self.way.lock().unwrap_or_else(PoisonError::into_inner) = Way::Nowhere;
        }
    }

    impl Drop for PassedOn {
        fn drop(&mut self) {
            self.handle.close();
        }
    }

    /// Signals that were ignored when we were started, as a bit set: `nohup` does so. The command inherits that, which
    /// a handler of ours would undo.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
    }
}
