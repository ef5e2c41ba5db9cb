//! A folder that is being followed: a thread looks at it, and wakes the window only with news.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::open::{Collection, Follow, Followed, Looking};
use crate::ui::work::Work;

/// A folder that is being followed.
pub struct Following {
    looks: Looks,
    /// Modules that XLA has begun to compile and not finished.
    pub unfinished: usize,
}

/// Who looks at the folder.
enum Looks {
    /// A thread, which wakes the window only when something has come.
    Thread { news: Receiver<Followed>, _thread: Looking<(Follow, Sender<Followed>)> },
    /// The window itself, in every frame: in tests, and where no thread can be started.
    Here(Box<Follow>),
}

impl Following {
    /// Starts following; `known` is what was listed of the folder before.
    pub fn start(path: &Path, known: Option<&Arc<Collection>>, work: &Work) -> Self {
        let follow = || Follow::new(path, known.cloned());
        let here = || Self { looks: Looks::Here(Box::new(follow())), unfinished: 0 };
        if work.synchronous {
            return here();
        }
        let (sender, news) = channel();
        let ctx = work.ctx.clone();
        let thread = Looking::start((follow(), sender), move |(follow, sender)| {
            // A folder that cannot be listed now may be at the next look.
            if let Ok(Some(followed)) = follow.look()
                && sender.send(followed).is_ok()
            {
                ctx.request_repaint();
            }
        });
        match thread {
            Ok(thread) => Self { looks: Looks::Thread { news, _thread: thread }, unfinished: 0 },
            Err(_) => here(),
        }
    }

    /// What has come, if anything has.
    pub fn poll(&mut self) -> Option<Followed> {
        match &mut self.looks {
            Looks::Thread { news, .. } => news.try_recv().ok(),
            Looks::Here(follow) => follow.look().ok().flatten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_window_is_woken_only_when_something_has_come() {
        let folder = tempfile::tempdir().expect("a folder");
        let ctx = egui::Context::default();
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        ctx.set_request_repaint_callback(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let work = Work {
            ctx,
            synchronous: false,
            running: Arc::default(),
            failed: crate::ui::work::FailedJobs::default(),
            times: crate::ui::work::JobTimes::default(),
        };
        let mut following = Following::start(folder.path(), None, &work);
        std::thread::sleep(Duration::from_millis(1300));
        assert_eq!(woken.load(Ordering::Relaxed), 0, "nothing has come");
        let program = [0x0a, 3, 0x0a, 1, b'f', 0x1a, 6, 0x1a, 4, 8, 0, 0x10, 90];
        std::fs::write(folder.path().join("module_0001.jit_f.after_optimizations.hlo.pb"), program).expect("written");
        let begun = Instant::now();
        while woken.load(Ordering::Relaxed) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "it never came");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(following.poll().map(|followed| followed.collection.entries.len()), Some(1));
    }
}
