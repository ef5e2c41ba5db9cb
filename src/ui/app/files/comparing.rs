//! Comparing two open files: which one is before, once both are read, and the offer to compare what was just opened.

use std::sync::Arc;

use egui::{Rect, Ui};

use super::{FileEntry, FileState, Place, offer};
use crate::open::Target;
use crate::ui::app::App;
use crate::ui::session::Before;
use crate::ui::view::COMPARE;
use crate::ui::widget::theme::Theme;

/// How long a comparison is offered, in seconds.
const OFFERED: f64 = 12.0;

impl App {
    /// Compares an open or listed file with the one that is shown.
    pub(in crate::ui::app) fn compare_with(&mut self, before: usize) {
        let Some(after) = self.files.current else { return };
        let work = self.work();
        self.files.compare(before, after, &work);
        self.poll();
    }

    /// Opens what was named on the command line; two files are compared if the link asks for that view.
    pub fn open_named(&mut self, targets: Vec<Target>) {
        let compares = self.link.as_ref().is_some_and(|link| link.view.as_deref() == Some(COMPARE));
        match <[Target; 2]>::try_from(targets) {
            Ok([before, after]) if compares => self.open_to_compare(before, after),
            Ok(both) => both.into_iter().for_each(|target| self.open_one(target)),
            Err(targets) => targets.into_iter().for_each(|target| self.open_one(target)),
        }
    }

    /// Opens two files and compares them: the first is before.
    pub fn open_to_compare(&mut self, before: Target, after: Target) {
        let both = (before.clone(), after.clone());
        self.open(before);
        self.open(after);
        self.comparing = Some(both);
        self.poll();
    }

    /// Starts what was asked for, and keeps every comparison at the state of its files: names that are hidden are
    /// hidden on both sides.
    pub(in crate::ui::app) fn poll_comparisons(&mut self) {
        if let Some((before, after)) = self.comparing.take_if(|_| !self.files.is_loading()) {
            let worst_of =
                |target: &Target| self.files.entries.iter().position(|entry| entry.target.is_same_as(target));
            if let Some((before, after)) = worst_of(&before).zip(worst_of(&after)) {
                // Of a folder, the program of the same name.
                let name = self.files.entries[after].name.clone();
                let group = self.files.entries[before].group;
                let is_same = |entry: &FileEntry| entry.group == group && group.is_some() && entry.name == name;
                let before = self.files.entries.iter().position(is_same).unwrap_or(before);
                let work = self.work();
                self.files.compare(before, after, &work);
                self.files.poll(crate::ui::view::FIRST, &|_| None, &work);
            }
        }
        if let Some(after) = self.files.compare_read() {
            self.files.current = Some(after);
            self.keep_comparisons();
            if let Some(open) = self.files.current_mut() {
                open.shared.begin_turn();
                open.shared.show_view(COMPARE);
            }
            return;
        }
        self.keep_comparisons();
    }

    fn keep_comparisons(&mut self) {
        for row in 0..self.files.entries.len() {
            let FileState::Open(open) = &self.files.entries[row].state else { continue };
            let Some(place) = &open.against else { continue };
            let other = self.files.entries.iter().find(|entry| entry.place() == *place);
            let before = match other.map(|entry| (entry, &entry.state)) {
                Some((entry, FileState::Open(other))) if !self.is_veiled(other) => {
                    let document = Arc::clone(&other.document);
                    Some(Before { name: self.name_of(entry), document })
                }
                _ if self.options.names_hidden => None,
                // What was closed meanwhile stays compared.
                _ => open.document.before.clone(),
            };
            let of = |before: &Option<Before>| {
                before.as_ref().map(|before| (Arc::as_ptr(&before.document.profile), before.name.clone()))
            };
            if of(&before) == of(&open.document.before) {
                continue;
            }
            // The document before is not compared with anything, so that no chain of them stays in memory.
            let plain = before.map(|before| Before {
                document: match before.document.before {
                    Some(_) => Arc::new(before.document.compared_with(None)),
                    None => before.document,
                },
                name: before.name,
            });
            if let FileState::Open(open) = &mut self.files.entries[row].state {
                open.document = Arc::new(open.document.compared_with(plain));
            }
        }
    }

    /// Ends the comparison of the file that is shown.
    pub(in crate::ui::app) fn end_comparison(&mut self) {
        if let Some(open) = self.files.current_mut() {
            open.against = None;
            open.document = Arc::new(open.document.compared_with(None));
            open.shared.show_view(crate::ui::view::FIRST);
        }
    }

    /// Exchanges before and after.
    pub(in crate::ui::app) fn swap_comparison(&mut self) {
        let Some(after) = self.files.current else { return };
        let place = self.files.current().and_then(|open| open.against);
        let before = place.and_then(|place| self.files.entries.iter().position(|entry| entry.place() == place));
        if let Some(before) = before {
            let work = self.work();
            self.files.compare(after, before, &work);
            self.poll();
        }
    }

    /// Offers to compare the file that was just dropped with the one that was shown before.
    pub(in crate::ui::app) fn comparison_offer(&mut self, ui: &Ui, theme: &Theme, body: Rect) {
        let Some((before, after, until)) = &self.offered else { return };
        let left = until - self.ctx.input(|input| input.time);
        if left <= 0.0 {
            self.offered = None;
            return;
        }
        self.ctx.request_repaint_after(std::time::Duration::from_secs_f64(left));
        let current = self.files.current.and_then(|row| self.files.entries.get(row)).map(FileEntry::place);
        let position = |place: &Place| self.files.entries.iter().position(|entry| entry.place() == *place);
        let (true, Some(row)) = (current.as_ref() == Some(after), position(before)) else { return };
        let name = self.name_of(&self.files.entries[row]);
        let words = format!("Compare with {name}?");
        if let Some(compares) = offer::show(ui, theme, body, [&words, "Compare", "No"]) {
            self.offered = None;
            if compares {
                self.compare_with(row);
            }
        }
    }

    /// Remembers what to offer: a single file was dropped while another one of the same kind was shown.
    pub(in crate::ui::app) fn offer_comparison(&mut self, shown_before: Option<Place>) {
        let current = self.files.current.and_then(|row| self.files.entries.get(row));
        let Some((entry, before)) = current.zip(shown_before) else { return };
        let after = entry.place();
        let document = |place: Place| {
            let entry = self.files.entries.iter().find(|entry| entry.place() == place);
            entry.and_then(|entry| match &entry.state {
                FileState::Open(open) => Some(&open.document),
                _ => None,
            })
        };
        if after != before
            && let Some((was, is)) = document(before).zip(document(after))
            && was.is_comparable_with(is)
        {
            self.offered = Some((before, after, self.ctx.input(|input| input.time) + OFFERED));
        }
    }
}
