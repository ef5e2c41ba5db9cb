//! Hides names on request: every open profile is replaced by a copy with aliases. Until that is done, nothing of it is
//! shown.

use std::sync::Arc;

use crate::analysis::names::hide::{Aliases, hide_names};
use crate::analysis::what_if::Edit;
use crate::ui::app::files::{FileEntry, FileState, OpenFile};
use crate::ui::app::{App, Command};
use crate::ui::session::{Document, Locals};
use crate::ui::work::{Derived, Job};

impl OpenFile {
    /// The document with its real names, even while names are hidden.
    #[must_use]
    pub fn original(&self) -> &Arc<Document> {
        self.named.as_ref().unwrap_or(&self.document)
    }

    /// Shows the profile with aliases, and names the changes of What if in them.
    fn hide(&mut self, document: Arc<Document>, aliases: &Aliases) {
        let hidden = |edit: &Edit| edit.renamed(|name| aliases.scope(name));
        let changes = &self.shared.changes;
        let all = changes.on.iter().chain(&changes.own).chain(changes.saved.iter().flat_map(|set| &set.edits));
        self.hidden_edits = all.map(|edit| (hidden(edit), edit.clone())).collect();
        self.named = Some(Arc::clone(&self.document));
        self.rename(document);
        self.shared.changes_mut().rename(|edit| Some(hidden(edit)));
    }

    /// Shows the profile with its own names again; changes that were written in aliases meanwhile are gone.
    fn unhide(&mut self, document: Arc<Document>, aliases: &Aliases) {
        self.rename(document);
        let hidden = std::mem::take(&mut self.hidden_edits);
        let own = |edit: &Edit| match hidden.iter().find(|row| row.0 == *edit) {
            Some(row) => Some(row.1.clone()),
            None => (edit.renamed(|name| aliases.scope(name)) == *edit).then(|| edit.clone()),
        };
        self.shared.changes_mut().rename(own);
    }

    /// Replaces the document by the same profile with other names. Results derived from the old one are dropped; the
    /// selection stays.
    fn rename(&mut self, document: Arc<Document>) {
        self.document = document;
        self.locals = Locals::default();
        self.derived = Derived::default();
        // Search text may contain names that are now hidden, or aliases that are now gone.
        self.shared.close_find();
    }
}

impl App {
    /// Whether names are to be hidden but the aliases are not ready yet.
    pub(in crate::ui::app) fn is_veiled(&self, open: &OpenFile) -> bool {
        self.options.names_hidden && open.named.is_none()
    }

    /// [`Self::is_veiled`] for the current file.
    pub(in crate::ui::app) fn veiled(&self) -> bool {
        self.files.current().is_some_and(|open| self.is_veiled(open))
    }

    /// Display name of a file.
    pub(in crate::ui::app) fn name_of(&self, entry: &FileEntry) -> String {
        let name = self.files.own_list(entry).map_or(&entry.name, |list| &list.name);
        if self.options.names_hidden { self.aliases.file(name) } else { name.clone() }
    }

    /// Display name of a file that tells it from every other one: where another has the same name, with the folder before
    /// it.
    pub(in crate::ui::app) fn distinct_name_of(&self, entry: &FileEntry) -> String {
        let name = self.name_of(entry);
        let place = self.files.place_of(entry).map(|place| self.listed_name(&place));
        place.map_or_else(|| name.clone(), |place| format!("{place}/{name}"))
    }

    /// Display names of two files that are compared: of programs in two folders that have the same name, with those folders.
    pub(in crate::ui::app) fn names_compared(&self, before: &FileEntry, after: &FileEntry) -> [String; 2] {
        let names = [before, after].map(|entry| self.distinct_name_of(entry));
        match [before, after].map(|entry| self.folder_of(entry)) {
            [Some(was), Some(is)] if names[0] == names[1] && was != is => {
                let [before, after] = names;
                [format!("{was}/{before}"), format!("{is}/{after}")]
            }
            _ => names,
        }
    }

    /// Display name of the folder or archive that an entry is a program of; `None` for a file.
    pub(in crate::ui::app) fn folder_of(&self, entry: &FileEntry) -> Option<String> {
        if self.files.own_list(entry).is_some() {
            return None;
        }
        let list = self.files.groups.iter().find(|group| Some(group.id) == entry.group)?;
        Some(self.listed_name(&list.name))
    }

    /// Display name of a folder or archive member.
    pub(in crate::ui::app) fn listed_name(&self, name: &str) -> String {
        if self.options.names_hidden { self.aliases.file(name) } else { name.to_owned() }
    }

    pub(in crate::ui::app) fn toggle_names(&mut self) {
        self.options.names_hidden = !self.options.names_hidden;
        self.errors.clear();
        self.hide_names();
        let words = if self.options.names_hidden { "Names are hidden" } else { "Names are shown" };
        self.say(words);
    }

    /// Hides or shows the names of every open file, according to the options.
    pub(in crate::ui::app) fn hide_names(&mut self) {
        let work = self.work();
        for entry in &mut self.files.entries {
            let FileState::Open(open) = &mut entry.state else { continue };
            if !self.options.names_hidden {
                open.hiding = None;
                if let Some(named) = open.named.take() {
                    open.unhide(named, &self.aliases);
                }
                continue;
            }
            if open.named.is_some() {
                continue;
            }
            let job = open.hiding.get_or_insert_with(|| {
                let (document, aliases) = (Arc::clone(&open.document), Arc::clone(&self.aliases));
                Job::start(&work, "hide names", move || {
                    let path = document.path.as_ref().map(|path| aliases.file(&path.display().to_string()).into());
                    Arc::new(Document::new(path, hide_names(&document.profile, &aliases)))
                })
            });
            if let Some(renamed) = job.poll().cloned() {
                open.hiding = None;
                open.hide(renamed, &self.aliases);
            } else if job.has_failed() {
                self.errors.push((self.aliases.file(&entry.name), "its names could not be hidden".to_owned()));
                open.hiding = None;
                self.options.names_hidden = false;
                return self.hide_names();
            }
        }
    }

    /// Placeholder for a view while its names are being hidden.
    pub(in crate::ui::app) fn veil(&mut self, ui: &mut egui::Ui, theme: &crate::ui::widget::theme::Theme) {
        use crate::ui::widget::controls;
        use crate::ui::widget::fonts::{Weight, text};
        use crate::ui::widget::theme::size;
        ui.add_space(80.0);
        let shown = ui.vertical_centered(|ui| {
            ui.label(text("Hiding names", size::VERDICT_SMALL, Weight::SemiBold, theme.text));
            ui.label(text(
                "The view returns as soon as the aliases are ready.",
                size::LEAD,
                Weight::Regular,
                theme.text2,
            ));
            controls::link_sized(ui, "Show the names instead", size::BODY, theme).clicked()
        });
        if shown.inner {
            self.run(Command::HideNames);
        }
    }
}
