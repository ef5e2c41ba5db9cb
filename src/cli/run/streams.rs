//! What the command prints, passed on byte for byte while it is also read: through a terminal of its own where ours is
//! one, so that a terminal stays a terminal; else through a pipe.
//!
//! Standard output is left alone unless it is the same terminal, pipe or file as standard error: then both go the same
//! way, so that their order stays what it was. Standard input is always ours.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::transcript::Transcript;

/// Bytes passed on at a time.
const BLOCK: usize = 64 << 10;

/// After the command has ended, a stream that something else still holds open is waited for no longer than this
/// without a byte from it.
const QUIET: Duration = Duration::from_millis(200);

/// The streams of a command that is about to start.
pub struct Streams {
    source: Option<Box<dyn Read + Send>>,
    /// Our own standard error.
    target: Box<dyn Write + Send>,
    #[cfg(unix)]
    terminal: Option<Arc<terminal::Terminal>>,
}

impl Streams {
    /// Connects the command's standard error, and standard output where it goes to the same place.
    ///
    /// # Errors
    /// If the system has no pipe left.
    pub fn connect(command: &mut Command) -> io::Result<Self> {
        let target = own_error()?;
        #[cfg(unix)]
        {
            use std::io::IsTerminal as _;
            if io::stderr().is_terminal() {
                return Ok(match terminal::Terminal::open() {
                    Ok((terminal, source, inner)) => {
                        if io::stdout().is_terminal() && is_same_stream() {
                            command.stdout(Stdio::from(inner.try_clone()?));
                        }
                        command.stderr(Stdio::from(inner));
                        Self { source: Some(Box::new(source)), target, terminal: Some(Arc::new(terminal)) }
                    }
                    // No terminal to be had: what the command prints matters more than that we read it.
                    Err(_) => Self { source: None, target, terminal: None },
                });
            }
        }
        #[cfg(not(unix))]
        if std::io::IsTerminal::is_terminal(&io::stderr()) {
            return Ok(Self { source: None, target });
        }
        let (source, inner) = io::pipe()?;
        if is_same_stream() {
            command.stdout(Stdio::from(inner.try_clone()?));
        }
        command.stderr(Stdio::from(inner));
        Ok(Self {
            source: Some(Box::new(source)),
            target,
            #[cfg(unix)]
            terminal: None,
        })
    }

    /// The terminal of the command's own, if it has one, to keep its size up to date.
    #[cfg(unix)]
    pub fn terminal(&self) -> Option<Arc<terminal::Terminal>> {
        self.terminal.clone()
    }

    /// Passes on what the command prints from now on. The command must have been started and dropped: it holds the
    /// other end.
    pub fn pass_on(self) -> Passing {
        let heard = Arc::new(Heard::default());
        let (ends, ended) = channel();
        if let Some(mut source) = self.source {
            let (heard, mut target) = (Arc::clone(&heard), self.target);
            std::thread::spawn(move || {
                let _ends = ends;
                let mut block = vec![0; BLOCK];
                loop {
                    let count = match source.read(&mut block) {
                        Ok(0) => break,
                        Ok(count) => count,
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        // Linux ends a terminal that nobody holds any more with an error.
                        Err(_) => break,
                    };
                    heard.is_writing.store(true, Ordering::Relaxed);
                    heard.blocks.fetch_add(1, Ordering::Relaxed);
                    let written = write(&mut *target, &block[..count]);
                    heard.is_writing.store(false, Ordering::Relaxed);
                    heard.transcript.lock().unwrap_or_else(PoisonError::into_inner).push(&block[..count]);
                    // Nobody reads ours any more: closing the source tells the command so.
                    if written.is_err() {
                        break;
                    }
                }
            });
        }
        Passing { heard, ended }
    }
}

/// Writes all of it, also to a stream that somebody has set not to block.
fn write(target: &mut dyn Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match target.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(error),
        }
    }
    target.flush()
}

/// What the thread that passes on shares with us.
#[derive(Default)]
struct Heard {
    transcript: Mutex<Transcript>,
    /// Blocks read so far.
    blocks: AtomicU64,
    is_writing: AtomicBool,
}

/// The thread that passes on.
pub struct Passing {
    heard: Arc<Heard>,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
}

impl Passing {
    /// Waits for the last bytes of a command that has ended, and returns what it printed. A process that it has left
    /// behind may hold the stream open; it is not waited for.
    pub fn finish(self) -> Transcript {
        let mut blocks = None;
        while self.ended.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
            let now = self.heard.blocks.load(Ordering::Relaxed);
            if blocks == Some(now) && !self.heard.is_writing.load(Ordering::Relaxed) {
                break;
            }
            blocks = Some(now);
        }
        std::mem::take(&mut *self.heard.transcript.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(unix)]
fn own_error() -> io::Result<Box<dyn Write + Send>> {
    use std::os::fd::AsFd as _;
    Ok(Box::new(File::from(io::stderr().as_fd().try_clone_to_owned()?)))
}

#[cfg(not(unix))]
fn own_error() -> io::Result<Box<dyn Write + Send>> {
    Ok(Box::new(io::stderr()))
}

/// Whether standard output and standard error are the same file, pipe or terminal.
#[cfg(unix)]
fn is_same_stream() -> bool {
    match (rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr())) {
        (Ok(out), Ok(err)) => out.st_dev == err.st_dev && out.st_ino == err.st_ino,
        _ => false,
    }
}

#[cfg(not(unix))]
const fn is_same_stream() -> bool {
    false
}

/// A terminal of the command's own, of the size of ours.
#[cfg(unix)]
pub mod terminal {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::io::{FdFlags, fcntl_setfd};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

    /// Our side of it.
    pub struct Terminal {
        outer: OwnedFd,
    }

    impl Terminal {
        /// Opens one like ours; returns it with the stream that is read from it, and the command's side.
        ///
        /// # Errors
        /// If the system has none left.
        pub fn open() -> io::Result<(Self, File, File)> {
            let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
            // Not every system takes this among the flags above.
            fcntl_setfd(&outer, FdFlags::CLOEXEC)?;
            grantpt(&outer)?;
            unlockpt(&outer)?;
            let name = ptsname(&outer, Vec::new())?;
            let path = std::ffi::OsStr::from_bytes(name.as_bytes());
            let mut options = OpenOptions::new();
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, no_controlling_terminal());
            let inner = options.read(true).write(true).open(path)?;
            // The real terminal turns line ends into what it needs; this one passes bytes on unchanged.
            let mut modes = tcgetattr(io::stderr())?;
            modes.output_modes.remove(OutputModes::OPOST);
            tcsetattr(&inner, OptionalActions::Now, &modes)?;
            let source = File::from(outer.try_clone()?);
            let terminal = Self { outer };
            terminal.resize();
            Ok((terminal, source, inner))
        }

        /// Gives it the size that ours has now.
        pub fn resize(&self) {
            if let Ok(size) = tcgetwinsize(io::stderr()) {
                let _ = tcsetwinsize(&self.outer, size);
            }
        }
    }

    fn no_controlling_terminal() -> i32 {
        i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap_or(0)
    }
}
