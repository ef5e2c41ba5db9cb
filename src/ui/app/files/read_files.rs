//! The files of what is open, watched for being written again.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::entry::{EntryId, Read};
use crate::open::{Looking, Stamp, ends_well};
use crate::ui::work::Work;

/// Watches the files of what is open.
#[derive(Default)]
pub struct ReadFiles {
    /// What is open, shared with the thread that looks.
    changes: Arc<Mutex<Changes>>,
    thread: Option<(Receiver<EntryId>, Looking<Sender<EntryId>>)>,
}

/// Compares files with what was read of them.
#[derive(Default)]
struct Changes {
    read: BTreeMap<EntryId, Read>,
    last: BTreeMap<EntryId, Vec<Stamp>>,
    told: BTreeMap<EntryId, Vec<Stamp>>,
}

impl Changes {
    /// What was written again and is complete: it has not changed since the last look. Each change is told once.
    fn look(&mut self) -> Vec<EntryId> {
        let mut found = Vec::new();
        for (id, files) in &self.read {
            // A file that is gone cannot be read again.
            let now: Option<Vec<Stamp>> = files.iter().map(|(path, _)| Stamp::of(path)).collect();
            let Some(now) = now.filter(|now| !now.iter().eq(files.iter().map(|file| &file.1))) else { continue };
            let is_still = self.last.get(id) == Some(&now);
            if is_still && self.told.get(id) != Some(&now) && files.iter().all(|(path, _)| ends_well(path)) {
                self.told.insert(*id, now.clone());
                found.push(*id);
            }
            self.last.insert(*id, now);
        }
        found
    }
}

impl ReadFiles {
    /// Takes what is open now; returns what was written again.
    pub fn look(&mut self, read: BTreeMap<EntryId, Read>, work: &Work) -> Vec<EntryId> {
        if self.thread.is_none() && !read.is_empty() && !work.synchronous {
            let (sender, news) = channel();
            let (changes, ctx) = (Arc::clone(&self.changes), work.ctx.clone());
            let looking = Looking::start(sender, move |sender| {
                for id in changes.lock().unwrap_or_else(PoisonError::into_inner).look() {
                    if sender.send(id).is_ok() {
                        ctx.request_repaint();
                    }
                }
            });
            self.thread = looking.ok().map(|looking| (news, looking));
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.read != read {
            *changes = Changes { read, ..Changes::default() };
        }
        match &self.thread {
            Some((news, _)) => news.try_iter().collect(),
            None if work.synchronous => changes.look(),
            None => Vec::new(),
        }
    }
}
