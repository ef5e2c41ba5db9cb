//! Applies and records settings: options, recent files, and the last view and pins of each file.

use std::path::PathBuf;

use super::App;
use super::files::{FileState, sample};
use super::settings_store::{EVERY, SettingsStore};
use crate::ui::session::settings::Recent;
use crate::ui::view::VIEWS;

impl App {
    /// Applies settings and saves later changes. Call it before opening files.
    pub fn use_settings(&mut self, settings_store: SettingsStore) {
        settings_store.settings.apply(&mut self.options);
        self.settings_store = settings_store;
        self.apply_look();
    }

    /// Recent files that are not open, with their last view.
    pub(super) fn recent(&self) -> Vec<(PathBuf, String)> {
        let open = |path: &PathBuf| self.files.entries.iter().any(|entry| entry.target.origin() == Some(path));
        let recent = self.settings_store.settings.recent.iter().filter(|recent| !open(&recent.path));
        recent.map(|recent| (recent.path.clone(), recent.view.clone())).collect()
    }

    /// Restores the last view and pins of newly opened files.
    pub(super) fn recall(&mut self) {
        for entry in &mut self.files.entries {
            let is_sample = sample::is_sample(entry);
            let FileState::Open(open) = &mut entry.state else { continue };
            if std::mem::replace(&mut open.begun, true) {
                continue;
            }
            if is_sample {
                open.shared.set_capacity(Some(sample::capacity()));
            }
            let Some(path) = entry.target.origin() else { continue };
            if let Some(recent) = self.settings_store.settings.recent_of(path) {
                open.shared.recall_pins(&recent.pins);
                if let Some(known) = VIEWS.shown(&recent.view, &open.document) {
                    open.shared.show_view(known.id);
                    open.shared.begin_history();
                }
            }
            self.settings_store.settings.bring_forward(path);
        }
    }

    /// Records changed settings, and writes them from time to time.
    pub(super) fn note_settings(&mut self) {
        if !self.settings_store.is_kept() {
            return;
        }
        let before = self.settings_store.settings.clone();
        self.settings_store.settings.take(&self.options);
        if let Some(index) = self.files.current
            && let Some(entry) = self.files.entries.get(index)
            && let (FileState::Open(open), Some(path)) = (&entry.state, entry.target.origin())
        {
            // Pins mark steps and buffers of one program, so they are not kept for a group of several.
            let is_one = entry.group.is_none() || self.files.own_list(entry).is_some();
            self.settings_store.settings.remember(Recent {
                path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
                view: open.shared.view.to_owned(),
                pins: if is_one { open.shared.pins.clone() } else { Vec::new() },
            });
        }
        let now = self.ctx.input(|input| input.time);
        if before != self.settings_store.settings {
            self.ctx.request_repaint_after(std::time::Duration::from_secs_f64(EVERY));
        }
        if now - self.settings_store.saved_at > EVERY {
            self.settings_store.saved_at = now;
            self.settings_store.save();
        }
    }
}
