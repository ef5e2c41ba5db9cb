//! One frame of the window: opened and dropped files, bars, view, side panel and overlays.

use std::path::Path;

use egui::{CentralPanel, Frame, Margin, Panel, Pos2, Rect, Ui, Vec2};

use super::chrome::side_panel::{self, Shown};
use super::commands;
use super::files::program_row::ListStyle;
use super::files::writing::Writing;
use super::files::{FileEntry, FileState};
use super::help;
use super::milestones::Reached;
use super::state::App;
use crate::open::Target;
use crate::ui::part::{Action, ViewContext};
use crate::ui::session::Shared;
use crate::ui::view::{FIRST, VIEWS};
use crate::ui::widget::theme::{Theme, space};
use crate::ui::widget::{cut, keys};
use crate::ui::work::Derived;

impl App {
    /// Starts opening something; open files stay open.
    pub fn open(&mut self, target: Target) {
        self.errors_before = self.errors.len();
        self.open_one(target);
    }

    /// As [`Self::open`], together with others.
    pub(super) fn open_one(&mut self, target: Target) {
        let work = self.work();
        self.search.clear();
        if let Some(milestones) = &mut self.milestones {
            milestones.open();
        }
        if !target.path().is_some_and(|path| self.open_if_session(path)) {
            self.files.open(target, &work);
        }
        self.poll();
    }

    /// Starts opening paths that were given together; of several, the worst is shown once all are read.
    pub fn open_together(&mut self, paths: Vec<std::path::PathBuf>) {
        let targets = Target::together(paths);
        self.files.begin_batch(targets.len());
        self.errors_before = self.errors.len();
        for target in targets {
            self.open_one(target);
        }
        self.poll();
    }

    /// Follows [`Self::link`] in the current file.
    pub fn follow_link(&mut self) {
        self.begin();
    }

    pub(super) fn poll(&mut self) {
        let before = self.files.current;
        let decoded = self.files.decoded();
        let work = self.work();
        let (link, places) = (&self.link, &self.places);
        let program = |path: &Path| {
            let place = places.iter().find(|place| place.0.path() == Some(path)).map(|place| &place.1);
            place.or(link.as_ref()).and_then(|link| link.program.clone())
        };
        self.files.poll(FIRST, &program, &work);
        self.take_reread(&work);
        self.tell_newest_failure();
        self.errors.extend(self.files.take_errors());
        for index in (0..self.files.entries.len()).rev() {
            let entry = &self.files.entries[index];
            match &entry.state {
                FileState::Failed(error) => self.errors.push((entry.name.clone(), error.clone())),
                FileState::Cancelled => {}
                _ => continue,
            }
            self.files.close(index);
        }
        if self.files.decoded() > decoded {
            // What failed before this was opened is old.
            self.folded_errors = self.errors_before.min(self.errors.len());
        }
        self.recall();
        if before.is_none() && self.files.current.is_some() {
            self.begin();
        }
        self.go_to_places();
        if self.options.names_hidden {
            self.hide_names();
        }
        self.poll_comparisons();
        if let Some(shown_before) = self.opened_beside.take_if(|_| !self.files.is_loading()) {
            self.offer_comparison(shown_before);
        }
    }

    /// Draws a frame.
    pub fn show(&mut self, ui: &mut Ui) {
        let began = std::time::Instant::now();
        if let Some(milestones) = &mut self.milestones {
            for line in milestones.begin() {
                eprintln!("{line}");
            }
        }
        let theme = Theme::of(ui.ctx());
        self.poll();
        self.poll_dialog();
        if let Some(words) = self.writing.as_ref().and_then(Writing::poll) {
            self.writing = None;
            self.say(&words);
        }
        self.take_drops(ui.ctx());
        self.note_keys();
        for command in commands::pressed(ui.ctx()) {
            // What is behind the palette does not change while one types in it.
            if self.palette.is_none() || commands::is_of_window(command) {
                self.run(command);
            }
        }
        if let Some(open) = self.files.current_mut() {
            open.shared.begin_turn();
        }
        let width = ui.available_width();
        // Below a sheet nothing is pointed at: a tooltip that was open would otherwise stay, above the sheet.
        let pointer = self.has_sheet().then(|| self.ctx.input_mut(|input| std::mem::take(&mut input.pointer)));
        Panel::top("top bar")
            .exact_size(space::TOP_BAR)
            .frame(bar(theme.chrome))
            .show(ui, |ui| self.top_bar(ui, &theme));
        Panel::bottom("status bar")
            .exact_size(space::STATUS)
            .frame(bar(theme.chrome))
            .show(ui, |ui| self.status_bar(ui, &theme));
        if !self.files.entries.is_empty() || !self.files.groups.is_empty() {
            let rail = width < 1000.0 || self.options.presenter;
            let list = if rail { space::PROGRAM_RAIL } else { space::PROGRAM_LIST };
            Panel::left("session")
                .exact_size(list)
                .resizable(false)
                .frame(bar(theme.chrome))
                .show(ui, |ui| self.program_list(ui, ListStyle { theme: &theme, rail }));
        }
        let mut actions = Vec::new();
        let frame = Frame::new().fill(theme.canvas);
        self.error_cards(ui, &theme);
        CentralPanel::default().frame(frame).show(ui, |ui| {
            if self.files.current().is_some() {
                self.workspace(ui, &theme, &mut actions);
            } else {
                self.welcome(ui, &theme);
            }
        });
        for action in actions {
            self.act(action);
        }
        if let Some(pointer) = pointer {
            self.ctx.input_mut(|input| input.pointer = pointer);
        }
        self.overlays(ui, &theme);
        keys::ring(ui, &theme);
        cut::show(ui.ctx(), &theme);
        help::note_term(ui.ctx(), &theme);
        self.note_pointer();
        self.presenter_marks(ui, &theme);
        self.note_settings();
        self.performance.add(began);
        self.note_milestones(ui.ctx());
        if self.files.is_loading() {
            ui.ctx().request_repaint_after(std::time::Duration::from_millis(60));
        }
    }

    /// Whether a sheet lies over the window: help, palette or the field for a path.
    const fn has_sheet(&self) -> bool {
        self.help.is_some() || self.palette.is_some() || self.path_field.is_some()
    }

    /// Notes what this frame shows for the first time; asks for one more frame then, which tells that this one was drawn.
    fn note_milestones(&mut self, ctx: &egui::Context) {
        let is_whole = !self.is_busy();
        let open = self.files.current();
        let (verdict, derived) = (open.is_some(), open.map(|open| &open.derived));
        let reached = Reached {
            verdict,
            picture: derived.is_some_and(Derived::has_space),
            advice: derived.is_some_and(Derived::has_advice),
            is_whole,
        };
        let Some(milestones) = &mut self.milestones else { return };
        if milestones.end(reached) {
            ctx.request_repaint();
        }
    }

    /// Tabs, view and side panel of the current file.
    fn workspace(&mut self, ui: &mut Ui, theme: &Theme, actions: &mut Vec<Action>) {
        let full = ui.max_rect();
        if let Some(open) = self.files.current() {
            let view = VIEWS.shown_or_first(open.shared.view, &open.document).id;
            self.fold_over_new_view(view);
        }
        let panel = self.panel_open();
        let side = if !panel {
            space::SIDE_RAIL
        } else if full.width() < 700.0 {
            (full.width() * 0.45).max(280.0)
        } else {
            space::SIDE_PANEL
        };
        let split = (full.right() - side).max(full.left());
        let covers = self.panel_covers();
        let overlay = covers || panel && self.panel_overlays();
        let main = if overlay {
            Rect::from_min_max(full.min, Pos2::new(full.right() - space::SIDE_RAIL, full.bottom()))
        } else {
            Rect::from_min_max(full.min, Pos2::new(split, full.bottom()))
        };
        let tabs = Rect::from_min_size(main.min, Vec2::new(main.width(), space::TABS));
        self.tabs(ui, theme, tabs);
        let body = Rect::from_min_max(Pos2::new(main.left(), tabs.bottom()), main.max);
        self.view_size = body.size();
        if self.veiled() {
            let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body));
            return self.veil(&mut child, theme);
        }
        let work = self.work();
        let options = self.options.clone();
        // Each file scrolls by itself.
        let shown = self.files.current.and_then(|row| self.files.entries.get(row)).map(FileEntry::id);
        let kept = &mut self.settings_store.settings.kept;
        let Some(open) = self.files.current_mut() else { return };
        let entry = VIEWS.shown_or_first(open.shared.view, &open.document);
        let hovered_before = open.shared.hovered;
        let chosen = |shared: &Shared| (shared.selected, shared.step, shared.tiles.len());
        let chosen_before = chosen(&open.shared);
        open.shared.clear_hover();
        let hits = open.derived.hits(&work, &open.document, &open.shared);
        let mut context = ViewContext {
            document: &open.document.clone(),
            theme,
            views: VIEWS,
            shared: &mut open.shared,
            locals: &mut open.locals,
            derived: &mut open.derived,
            options: &options,
            work: &work,
            actions,
            hits,
            kept,
        };
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt((entry.id, shown, "view")));
        child.set_clip_rect(body.intersect(ui.clip_rect()));
        (entry.show)(&mut child, &mut context);
        let side_rect = Rect::from_min_max(Pos2::new(if panel { split } else { main.right() }, full.top()), full.max);
        let toggled = side_panel::show(ui, &mut context, side_rect, if panel { Shown::Whole } else { Shown::Rail });
        if hovered_before != open.shared.hovered {
            ui.ctx().request_repaint();
        }
        let is_clicked_beside = covers && chosen(&open.shared) == chosen_before && clicked_in(ui, full, side_rect);
        if toggled {
            self.panel = Some(!panel);
        } else if is_clicked_beside {
            // A click that chooses something else leaves its details open.
            self.panel = None;
        }
        self.find_bar(ui, theme, body);
        if !self.reading_offer(ui, theme, body) {
            self.comparison_offer(ui, theme, body);
        }
    }

    fn take_drops(&mut self, ctx: &egui::Context) {
        let mut dropped: Vec<_> =
            ctx.input(|input| input.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect());
        dropped.extend(self.refused_drops.iter().flat_map(|drops| drops.try_iter().flatten()));
        if !dropped.is_empty() {
            self.open_beside(dropped);
        }
        // Text pasted into the window is opened; text pasted into a field is not.
        if !ctx.text_edit_focused() {
            let pasted: Vec<String> = ctx.input(|input| {
                let pasted = input.events.iter().filter_map(|event| match event {
                    egui::Event::Paste(text) if !text.trim().is_empty() => Some(text.clone()),
                    _ => None,
                });
                pasted.collect()
            });
            for text in pasted {
                self.open(Target::Bytes("pasted text".to_owned(), text.into_bytes().into()));
            }
        }
    }
}

impl App {
    /// Title of the window: folder and program.
    #[must_use]
    pub fn window_title(&self) -> String {
        let Some(entry) = self.files.current.and_then(|index| self.files.entries.get(index)) else {
            return "Highwater".to_owned();
        };
        let list = self.files.groups.iter().find(|group| Some(group.id) == entry.group);
        match list.filter(|_| self.files.own_list(entry).is_none()) {
            Some(list) => {
                format!("{} / {} \u{2013} Highwater", self.listed_name(&list.name), self.name_of(entry))
            }
            None => format!("{} \u{2013} Highwater", self.name_of(entry)),
        }
    }
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        self.show(ui);
        let title = self.window_title();
        if title != self.title {
            ui.ctx().send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }
}

/// Whether a place of the window's own layer was clicked that is not in another.
fn clicked_in(ui: &Ui, place: Rect, except: Rect) -> bool {
    let at = ui.input(|input| input.pointer.any_click().then(|| input.pointer.interact_pos()).flatten());
    let is_here = |at: Pos2| place.contains(at) && !except.contains(at);
    at.is_some_and(|at| is_here(at) && ui.ctx().layer_id_at(at) == Some(ui.layer_id()))
}

/// Frame of the top and status bars.
fn bar(fill: egui::Color32) -> Frame {
    Frame::new().fill(fill).inner_margin(Margin::ZERO)
}
