//! The window: frame, files, commands.

mod cards;
mod commands;
mod dialog;
mod files;
mod loading;
mod picture;
mod session_list;
mod session_row;
mod side_panel;
mod status_bar;
mod top_bar;
mod window;

use egui::{CentralPanel, Frame, Margin, Panel, Pos2, Rect, Ui, Vec2};

pub use commands::{COMMANDS, Command};
pub use files::{FileState, Files, MAX_DECODED};
pub use loading::Source;
pub use picture::draw as draw_picture;
pub use window::{WindowError, run as run_window};

use super::session::{Action, Options, ThemeChoice, ViewContext, Work};
use super::view;
use super::widget::style;
use super::widget::theme::{Theme, space};
use crate::model::{BufferId, Capacity, MemorySpace};
use dialog::{Answer, Dialog};

/// Where to begin, as the command line says it.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// View.
    pub view: Option<String>,
    /// Program.
    pub program: Option<String>,
    /// Memory space.
    pub space: Option<String>,
    /// Buffer: its number or its name.
    pub select: Option<String>,
    /// Step.
    pub step: Option<u32>,
    /// Capacity of the device's memory.
    pub capacity: Option<crate::model::Bytes>,
    /// Changes to try out.
    pub edits: Vec<crate::analysis::what_if::Edit>,
}

/// The whole program.
pub struct App {
    /// Files.
    pub files: Files,
    /// Options.
    pub options: Options,
    /// Where the next file that opens is to begin.
    pub place: Option<Place>,
    dialog: Option<Dialog>,
    path_field: Option<String>,
    help: bool,
    /// Whether the right panel is open; `None` for: where there is room.
    panel: Option<bool>,
    errors: Vec<(String, String)>,
    message: Option<(String, f64)>,
    /// Text in the field for a capacity.
    capacity_field: String,
    /// Words that the list of programs must contain.
    search: String,
    ctx: egui::Context,
}

impl App {
    /// A window with nothing open.
    #[must_use]
    pub fn new(ctx: &egui::Context, options: Options) -> Self {
        style::install(ctx);
        ctx.set_theme(options.theme.preference());
        Self {
            files: Files::default(),
            options,
            place: None,
            dialog: None,
            path_field: None,
            help: false,
            panel: None,
            errors: Vec::new(),
            message: None,
            capacity_field: String::new(),
            search: String::new(),
            ctx: ctx.clone(),
        }
    }

    /// Begins to open something; what is open stays.
    pub fn open(&mut self, source: Source) {
        let work = self.work();
        self.files.open(source, &work);
        self.poll();
    }

    /// Files that could not be read since the last call: name and reason.
    pub fn take_errors(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.errors)
    }

    /// Whether the file that is shown has what was asked for.
    ///
    /// # Errors
    /// A sentence that says what it has instead.
    pub fn check_place(&self, place: &Place) -> Result<(), String> {
        let Some(open) = self.files.current() else { return Err("nothing to show".to_owned()) };
        let document = &open.document;
        if let Some(id) = &place.view
            && !view::shown_for(document).any(|view| view.id == id)
        {
            let have: Vec<&str> = view::shown_for(document).map(|view| view.id).collect();
            return Err(format!("{} has no view '{id}'; it has: {}", document.profile.name, have.join(", ")));
        }
        if let Some(name) = &place.program
            && !document.profile.programs.iter().any(|program| program.name == *name)
        {
            return Err(format!("{} has no program '{name}'", document.profile.name));
        }
        if let (Some(name), Some((_, analysis))) = (&place.space, document.program(open.shared.program)) {
            let kind = document.profile.device.kind;
            if !analysis.spaces.iter().any(|space| MemorySpace(space.color).is_named(name, kind)) {
                let have: Vec<&str> = analysis.spaces.iter().map(|space| space.name.as_str()).collect();
                return Err(format!(
                    "{} has no memory space '{name}'; it has: {}",
                    document.profile.name,
                    have.join(", ")
                ));
            }
        }
        if let (Some(text), None, true) = (&place.select, open.shared.selected, open.shared.tiles.is_empty()) {
            return Err(format!("{} has no buffer '{text}'", document.profile.name));
        }
        Ok(())
    }

    fn work(&self) -> Work {
        Work { ctx: self.ctx.clone(), synchronous: self.options.synchronous }
    }

    fn poll(&mut self) {
        let before = self.files.current;
        let work = self.work();
        let program = self.place.as_ref().and_then(|place| place.program.clone());
        self.files.poll(view::FIRST, program.as_deref(), &work);
        self.errors.extend(self.files.take_errors());
        for index in (0..self.files.entries.len()).rev() {
            let entry = &self.files.entries[index];
            if let FileState::Failed(error) = &entry.state {
                if *error != crate::source::Cancelled.to_string() {
                    self.errors.push((entry.name.clone(), error.clone()));
                }
                self.files.close(index);
            }
        }
        if before.is_none() && self.files.current.is_some() {
            self.begin();
        }
    }

    /// Goes where the command line said.
    fn begin(&mut self) {
        let Some(place) = self.place.take() else { return };
        let Some(open) = self.files.current_mut() else { return };
        if let Some(name) = &place.program
            && let Some(index) = open.document.profile.programs.iter().position(|program| program.name == *name)
        {
            let color = open.document.program(index).and_then(|(_, analysis)| analysis.main_space()).map(|s| s.color);
            open.shared.choose(index, color.unwrap_or(0));
        }
        let kind = open.document.profile.device.kind;
        if let (Some(name), Some((_, analysis))) = (&place.space, open.document.program(open.shared.program))
            && let Some(space) = analysis.spaces.iter().find(|space| MemorySpace(space.color).is_named(name, kind))
        {
            open.shared.choose(open.shared.program, space.color);
        }
        if let Some(bytes) = place.capacity {
            let evidence = "given with --capacity".to_owned();
            open.shared.capacity.insert(0, Capacity { color: 0, bytes, evidence });
        }
        open.shared.changes.own.clone_from(&place.edits);
        open.shared.changes.on.clone_from(&place.edits);
        if let (Some(text), Some((program, _))) = (&place.select, open.document.program(open.shared.program)) {
            let rows = (0..program.buffers.len()).map(BufferId::from_index);
            let number: Option<i64> = text.parse().ok();
            open.shared.selected = rows.into_iter().find(|b| {
                number == Some(program.buffers.number[b.index()])
                    || (number.is_none() && program.buffer_name(*b) == *text)
            });
        }
        if let (Some(tile), Some(tiles)) =
            (place.select.as_ref().and_then(|text| text.parse::<u32>().ok()), &open.document.profile.tiles)
            && (tile as usize) < tiles.tile_count()
        {
            open.shared.tiles = vec![tile];
        }
        open.shared.step = place.step.or(open.shared.step);
        if let Some(entry) = place.view.as_deref().and_then(view::by_id)
            && (entry.has)(&open.document)
        {
            open.shared.view = entry.id;
        }
    }

    /// Draws a frame.
    pub fn show(&mut self, ui: &mut Ui) {
        let theme = Theme::of(ui.ctx());
        self.poll();
        self.poll_dialog();
        self.take_drops(ui.ctx());
        for command in commands::pressed(ui.ctx()) {
            self.run(command);
        }
        let before = self.files.current().map(|open| open.shared.spot());
        let width = ui.available_width();
        Panel::top("top bar")
            .exact_size(space::TOP_BAR)
            .frame(bar(theme.chrome))
            .show(ui, |ui| self.top_bar(ui, &theme));
        Panel::bottom("status bar")
            .exact_size(space::STATUS)
            .frame(bar(theme.chrome))
            .show(ui, |ui| self.status_bar(ui, &theme));
        if !self.files.entries.is_empty() {
            let list = if width <= 1000.0 { space::SESSION_RAIL } else { space::SESSION_LIST };
            Panel::left("session")
                .exact_size(list)
                .resizable(false)
                .frame(bar(theme.chrome))
                .show(ui, |ui| self.session_list(ui, &theme, width <= 1000.0));
        }
        let mut actions = Vec::new();
        let frame = Frame::new().fill(theme.canvas);
        CentralPanel::default().frame(frame).show(ui, |ui| {
            let rect = ui.max_rect();
            if self.files.current().is_some() {
                self.workspace(ui, &theme, &mut actions);
            } else {
                self.welcome(ui, &theme);
            }
            self.error_cards(ui, &theme, rect);
        });
        for action in actions {
            self.act(action);
        }
        if let (Some(before), Some(open)) = (before, self.files.current_mut()) {
            open.remember(before);
        }
        self.overlays(ui, &theme);
        if self.files.is_loading() {
            ui.ctx().request_repaint_after(std::time::Duration::from_millis(60));
        }
    }

    /// Whether the right panel is open.
    fn panel_open(&self) -> bool {
        self.panel.unwrap_or_else(|| self.ctx.content_rect().width() >= 1280.0)
    }

    /// Tabs, view and side panel of the file that is shown.
    fn workspace(&mut self, ui: &mut Ui, theme: &Theme, actions: &mut Vec<Action>) {
        let full = ui.max_rect();
        let panel = self.panel_open();
        let side = if !panel {
            space::SIDE_RAIL
        } else if full.width() < 700.0 {
            (full.width() * 0.45).max(280.0)
        } else {
            space::SIDE_PANEL
        };
        let split = (full.right() - side).max(full.left());
        let overlay = panel && full.width() < 1000.0;
        let main = if overlay {
            Rect::from_min_max(full.min, Pos2::new(full.right() - space::SIDE_RAIL, full.bottom()))
        } else {
            Rect::from_min_max(full.min, Pos2::new(split, full.bottom()))
        };
        let tabs = Rect::from_min_size(main.min, Vec2::new(main.width(), space::TABS));
        self.tabs(ui, theme, tabs);
        let body = Rect::from_min_max(Pos2::new(main.left(), tabs.bottom()), main.max);
        let work = self.work();
        let options = self.options.clone();
        let Some(open) = self.files.current_mut() else { return };
        let entry = view::by_id(open.shared.view).filter(|entry| (entry.has)(&open.document));
        let entry = entry.unwrap_or_else(|| view::first_for(&open.document));
        let hovered_before = open.shared.hovered;
        open.shared.hovered = None;
        open.shared.tile_hovered = None;
        open.shared.cursor = None;
        let mut context = ViewContext {
            document: &open.document.clone(),
            shared: &mut open.shared,
            locals: &mut open.locals,
            derived: &mut open.derived,
            options: &options,
            work: &work,
            actions,
        };
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt((entry.id, "view")));
        child.set_clip_rect(body.intersect(ui.clip_rect()));
        (entry.show)(&mut child, &mut context);
        let side_rect = Rect::from_min_max(Pos2::new(if panel { split } else { main.right() }, full.top()), full.max);
        let toggled = side_panel::show(ui, &mut context, theme, side_rect, panel);
        if hovered_before != open.shared.hovered {
            ui.ctx().request_repaint();
        }
        if toggled {
            self.panel = Some(!panel);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::View(view) => {
                if let Some(open) = self.files.current_mut() {
                    open.shared.view = view;
                }
            }
            Action::Copy(text) => {
                self.ctx.copy_text(text);
                self.say("Copied");
            }
            Action::Open(path) => self.open(Source::Path(path)),
        }
    }

    /// Shows a short message in the status bar.
    fn say(&mut self, words: &str) {
        let now = self.ctx.input(|i| i.time);
        self.message = Some((words.to_owned(), now + 3.0));
        self.ctx.request_repaint_after(std::time::Duration::from_secs(3));
    }

    /// Does what a command says.
    pub fn run(&mut self, command: Command) {
        match command {
            Command::Open => self.open_dialog(),
            Command::Close => {
                if let Some(index) = self.files.current {
                    self.files.close(index);
                }
            }
            Command::Panel => {
                let open = self.panel_open();
                self.panel = Some(!open);
            }
            Command::Theme => {
                let dark = self.ctx.theme() == egui::Theme::Dark;
                self.options.theme = if dark { ThemeChoice::Light } else { ThemeChoice::Dark };
                self.ctx.set_theme(self.options.theme.preference());
            }
            Command::Larger => self.ctx.set_zoom_factor((self.ctx.zoom_factor() + 0.1).min(2.5)),
            Command::Smaller => self.ctx.set_zoom_factor((self.ctx.zoom_factor() - 0.1).max(0.6)),
            Command::Help => self.help = !self.help,
            Command::Link => {
                if let Some(link) = self.link() {
                    self.ctx.copy_text(link);
                    self.say("Command line copied");
                }
            }
            Command::Clear if self.help => self.help = false,
            Command::Clear if self.path_field.is_some() => self.path_field = None,
            Command::View(_) | Command::Back | Command::Forward | Command::Find | Command::Peak | Command::Clear => {
                self.run_in_file(command);
            }
        }
    }

    fn run_in_file(&mut self, command: Command) {
        let Some(open) = self.files.current_mut() else { return };
        let before = open.shared.spot();
        match command {
            Command::Back => return open.go_back(),
            Command::Forward => return open.go_forward(),
            Command::View(number) => {
                if let Some(entry) = view::shown_for(&open.document).nth(number) {
                    open.shared.view = entry.id;
                }
            }
            Command::Find if open.document.profile.tiles.is_some() => {
                view::liveness::focus_filter(&mut open.shared, &mut open.locals);
            }
            Command::Find if view::live::has(&open.document) && open.document.profile.programs.is_empty() => {
                view::live::focus_search(&mut open.shared, &mut open.locals);
            }
            Command::Find => view::buffers::focus_filter(&mut open.shared, &mut open.locals),
            Command::Peak => open.shared.step = None,
            Command::Clear if open.shared.view == "runtime" && view::runtime::clear(&mut open.locals) => {}
            Command::Clear => {
                let shared = &mut open.shared;
                if shared.step.is_some() {
                    shared.step = None;
                } else if shared.selected.is_some() || !shared.tiles.is_empty() {
                    shared.selected = None;
                    shared.tiles.clear();
                } else {
                    shared.filter.clear();
                }
            }
            _ => {}
        }
        open.remember(before);
    }

    /// The command line that shows what is shown now.
    fn link(&self) -> Option<String> {
        let open = self.files.current()?;
        let shared = &open.shared;
        let path = open.document.path.as_ref()?.display().to_string();
        let (program, analysis) = open.document.program(shared.program)?;
        let mut words = vec!["highwater".to_owned(), quoted(&path), "--view".to_owned(), shared.view.to_owned()];
        if open.document.profile.programs.len() > 1 {
            words.extend(["--program".to_owned(), quoted(&program.name)]);
        }
        if let Some(space) = analysis.space(shared.color).filter(|space| space.color != 0) {
            words.extend(["--space".to_owned(), quoted(&space.name)]);
        }
        if let Some(buffer) = shared.selected {
            words.extend(["--select".to_owned(), program.buffers.number[buffer.index()].to_string()]);
        }
        if let Some(step) = shared.step {
            words.extend(["--step".to_owned(), step.to_string()]);
        }
        Some(words.join(" "))
    }

    fn open_dialog(&mut self) {
        if self.dialog.is_none() {
            self.dialog = Some(Dialog::open(&self.ctx));
        }
    }

    fn poll_dialog(&mut self) {
        let Some(dialog) = &self.dialog else { return };
        match dialog.poll() {
            Answer::Waiting => return self.ctx.request_repaint_after(std::time::Duration::from_millis(100)),
            Answer::Files(paths) => {
                for path in paths {
                    self.open(Source::Path(path));
                }
            }
            Answer::Cancelled => {}
            Answer::Missing => self.path_field = Some(String::new()),
        }
        self.dialog = None;
    }

    fn take_drops(&mut self, ctx: &egui::Context) {
        let dropped = ctx.input(|i| i.raw.dropped_files.clone());
        for file in dropped {
            self.open(Source::Path(file.path().to_owned()));
        }
        // A text pasted into the window is opened, one pasted into a field is not.
        if !ctx.egui_wants_keyboard_input() {
            let pasted: Vec<String> = ctx.input(|input| {
                let pasted = input.events.iter().filter_map(|event| match event {
                    egui::Event::Paste(text) if !text.trim().is_empty() => Some(text.clone()),
                    _ => None,
                });
                pasted.collect()
            });
            for text in pasted {
                self.open(Source::Bytes("pasted text".to_owned(), text.into_bytes().into()));
            }
        }
    }
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        self.show(ui);
    }
}

/// Frame of a bar.
fn bar(fill: egui::Color32) -> Frame {
    Frame::new().fill(fill).inner_margin(Margin::ZERO)
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
