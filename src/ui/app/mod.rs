//! The window: frame, files, commands.

mod chrome;
mod commands;
mod files;
mod settings_store;
mod share;
mod window;

use std::sync::Arc;

use egui::{CentralPanel, Frame, Margin, Panel, Pos2, Rect, Ui, Vec2};

pub use commands::{COMMANDS, Command};
pub use files::{FileState, Files, MAX_DECODED};
pub use settings_store::SettingsStore;
pub use share::link::DeepLink;
pub use share::picture::draw as draw_picture;
pub use window::{WindowError, run as run_window};

use super::part::{Action, ViewContext};
use super::session::{Options, PinOn, ThemeChoice};
use super::view;
use super::widget::theme::{Look, Theme, space};
use super::widget::{cut, keys, style};
use super::work::{FailedJobs, Work};
use crate::analysis::names::hide::Aliases;
use crate::model::UnitSystem;
use crate::open::Target;
use chrome::{command_palette, side_panel};
use files::dialog::{Dialog, Purpose};
use files::writing::Writing;
use share::presenter;

/// The whole program.
pub struct App {
    /// Files.
    pub files: Files,
    /// Options.
    pub options: Options,
    /// Where the next file that opens is to begin.
    pub link: Option<DeepLink>,
    dialog: Option<(Dialog, Purpose)>,
    writing: Option<Writing>,
    /// A path that is typed where the desktop has no dialog, and what for.
    path_field: Option<(String, Purpose)>,
    palette: Option<command_palette::CommandPalette>,
    settings_store: SettingsStore,
    keys: presenter::Keys,
    aliases: Arc<Aliases>,
    /// Whether the field to find something is to get the focus.
    focus_find: bool,
    /// Room of the view in the last frame.
    view_size: Vec2,
    /// Canvases beside the window that there were.
    canvas: u64,
    help: bool,
    /// Whether the right panel is open; `None` for: where there is room.
    panel: Option<bool>,
    errors: Vec<(String, String)>,
    message: Option<(String, f64)>,
    /// Text in the field for a capacity.
    capacity_field: String,
    /// Words that the list of programs must contain.
    search: String,
    /// Whether they are being typed.
    searching: bool,
    /// The entry that the list was last scrolled to.
    revealed: Option<usize>,
    /// Title of the window as it was set last.
    title: String,
    ctx: egui::Context,
    running: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    failed_jobs: FailedJobs,
}

impl App {
    /// A window with nothing open.
    #[must_use]
    pub fn new(ctx: &egui::Context, options: Options) -> Self {
        style::install(ctx);
        let app = Self {
            files: Files::default(),
            options,
            link: None,
            dialog: None,
            writing: None,
            path_field: None,
            palette: None,
            settings_store: SettingsStore::default(),
            keys: presenter::Keys::default(),
            aliases: Arc::default(),
            focus_find: false,
            view_size: Vec2::ZERO,
            canvas: 0,
            help: false,
            panel: None,
            errors: Vec::new(),
            message: None,
            capacity_field: String::new(),
            search: String::new(),
            searching: false,
            revealed: None,
            title: String::new(),
            ctx: ctx.clone(),
            running: std::sync::Arc::default(),
            failed_jobs: FailedJobs::default(),
        };
        app.apply_look();
        app
    }

    /// Makes theme, look and size those of the options.
    fn apply_look(&self) {
        let look = Look { contrast: self.options.theme.is_contrast(), presenter: self.options.presenter };
        style::apply(&self.ctx, look);
        self.ctx.set_theme(self.options.theme.preference());
        self.ctx.set_zoom_factor(self.options.scale());
    }

    /// Begins to open something; what is open stays.
    pub fn open(&mut self, target: Target) {
        let work = self.work();
        self.search.clear();
        self.files.open(target, &work);
        self.poll();
    }

    /// Whether something is being read or computed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.files.is_loading() || self.running.load(std::sync::atomic::Ordering::Relaxed) > 0
    }

    /// Goes to [`Self::link`] in the file that is shown.
    pub fn follow_link(&mut self) {
        self.begin();
    }

    /// Files that could not be read since the last call: name and reason.
    pub fn take_errors(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.errors)
    }

    /// How work is to be done in this window.
    #[must_use]
    pub fn work(&self) -> Work {
        Work {
            ctx: self.ctx.clone(),
            synchronous: self.options.synchronous,
            running: self.running.clone(),
            failed: self.failed_jobs.clone(),
        }
    }

    fn poll(&mut self) {
        let before = self.files.current;
        let work = self.work();
        let program = self.link.as_ref().and_then(|link| link.program.clone());
        self.files.poll(view::FIRST, program.as_deref(), &work);
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
        self.recall();
        if before.is_none() && self.files.current.is_some() {
            self.begin();
        }
        if self.options.names_hidden {
            self.hide_names();
        }
    }

    /// Draws a frame.
    pub fn show(&mut self, ui: &mut Ui) {
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
            self.run(command);
        }
        if let Some(open) = self.files.current_mut() {
            open.shared.begin_turn();
        }
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
            let rail = width <= 1000.0 || self.options.presenter;
            let list = if rail { space::PROGRAM_RAIL } else { space::PROGRAM_LIST };
            Panel::left("session")
                .exact_size(list)
                .resizable(false)
                .frame(bar(theme.chrome))
                .show(ui, |ui| self.program_list(ui, &theme, rail));
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
        self.overlays(ui, &theme);
        keys::ring(ui, &theme);
        cut::show(ui.ctx(), &theme);
        self.presenter_marks(ui, &theme);
        self.note_settings();
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
        self.view_size = body.size();
        if self.veiled() {
            let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body));
            return self.veil(&mut child, theme);
        }
        let work = self.work();
        let options = self.options.clone();
        let kept = &mut self.settings_store.settings.kept;
        let Some(open) = self.files.current_mut() else { return };
        let entry = view::VIEWS.shown_or_first(open.shared.view, &open.document);
        let hovered_before = open.shared.hovered;
        open.shared.clear_hover();
        let shared = &open.shared;
        let hits = open.derived.hits(&work, &open.document, shared.program, shared.color, &shared.filter);
        let mut context = ViewContext {
            document: &open.document.clone(),
            theme,
            views: view::VIEWS,
            shared: &mut open.shared,
            locals: &mut open.locals,
            derived: &mut open.derived,
            options: &options,
            work: &work,
            actions,
            hits,
            kept,
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
        self.find_bar(ui, theme, body);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::View(view) => {
                if let Some(open) = self.files.current_mut() {
                    open.shared.show_view(view);
                }
            }
            Action::Copy(text) => {
                self.ctx.copy_text(text);
                self.say("Copied");
            }
            Action::Open(path) => self.open(Target::Path(path)),
            Action::Save(file) => self.ask(Purpose::Text(file)),
            Action::ReadSets => self.ask(Purpose::ReadSets),
            Action::Panel(panel) => {
                self.panel = Some(true);
                if let Some(open) = self.files.current_mut() {
                    side_panel::choose(&mut open.locals, panel);
                }
            }
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
            Command::OpenFolder => self.ask(Purpose::Folder),
            Command::Close => self.files.close_current(),
            Command::Panel => {
                let open = self.panel_open();
                self.panel = Some(!open);
            }
            Command::Theme => {
                let dark = self.ctx.theme() == egui::Theme::Dark;
                let next = match (dark, self.options.theme.is_contrast()) {
                    (true, false) => ThemeChoice::Light,
                    (false, false) => ThemeChoice::Dark,
                    (true, true) => ThemeChoice::ContrastLight,
                    (false, true) => ThemeChoice::ContrastDark,
                };
                self.run(Command::Look(next));
            }
            Command::Look(theme) => {
                self.options.theme = theme;
                self.apply_look();
            }
            Command::Units => {
                self.options.units = match self.options.units {
                    UnitSystem::Binary => UnitSystem::Decimal,
                    UnitSystem::Decimal => UnitSystem::Binary,
                };
            }
            Command::Larger => self.zoom(self.options.zoom + 0.1),
            Command::Smaller => self.zoom(self.options.zoom - 0.1),
            Command::Normal => self.zoom(1.0),
            Command::Presenter => {
                self.options.presenter = !self.options.presenter;
                self.apply_look();
            }
            Command::HideNames => self.toggle_names(),
            Command::Palette => {
                self.help = false;
                self.palette =
                    if self.palette.is_some() { None } else { Some(command_palette::CommandPalette::default()) };
            }
            Command::Sample => self.open_sample(),
            Command::NextFile => self.files.show_next(false),
            Command::PreviousFile => self.files.show_next(true),
            Command::Find => self.find(),
            Command::NextHit => self.next_hit(false),
            Command::PreviousHit => self.next_hit(true),
            Command::CopyPicture => self.copy_picture(),
            Command::SavePicture => self.save_picture(),
            Command::IntoView => keys::next_field(&self.ctx),
            Command::Menu => keys::request_menu(&self.ctx),
            Command::Help => self.help = !self.help,
            Command::Link => {
                if let Some(link) = self.link() {
                    self.ctx.copy_text(link);
                    self.say("Command line copied");
                } else {
                    self.say("What was pasted has no file to lead to");
                }
            }
            Command::Clear if self.help => self.help = false,
            Command::Clear if egui::Popup::is_any_open(&self.ctx) => egui::Popup::close_all(&self.ctx),
            Command::Clear if self.palette.is_some() => self.palette = None,
            Command::Clear if self.path_field.is_some() => self.path_field = None,
            Command::Clear if self.searching => self.search.clear(),
            Command::View(_)
            | Command::Back
            | Command::Forward
            | Command::Pin
            | Command::CopyName
            | Command::FilterToThis
            | Command::HideThis
            | Command::ShowHidden
            | Command::Peak
            | Command::Clear => self.run_in_file(command),
        }
    }

    /// Title of the window: what is shown, by folder and program.
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

    fn zoom(&mut self, zoom: f32) {
        self.options.zoom = ((zoom * 10.0).round() / 10.0).clamp(0.6, 2.5);
        self.apply_look();
    }

    /// Pins what is selected, or the step.
    fn pin(&mut self) {
        let Some(open) = self.files.current_mut() else { return };
        let Some((program, analysis)) = open.document.program(open.shared.program) else { return };
        let selected = open.shared.selected.and_then(|buffer| program.buffers.number.get(buffer.index()).copied());
        let peak = || analysis.space(open.shared.color).map(crate::analysis::SpaceAnalysis::peak_point);
        let on = match selected {
            Some(number) => Some(PinOn::Buffer(number)),
            None => open.shared.step.or_else(peak).map(PinOn::Step),
        };
        let Some(pin) = on.and_then(|on| open.shared.pin(on)) else { return };
        open.locals.get::<super::session::pins::Asked>().0 = Some(pin);
        self.act(Action::Panel("pins"));
    }

    fn run_in_file(&mut self, command: Command) {
        let Some(open) = self.files.current_mut() else { return };
        open.shared.begin_turn();
        match command {
            Command::Back => open.shared.go_back(),
            Command::Forward => open.shared.go_forward(),
            Command::View(digit) => {
                if let Some(entry) = view::VIEWS.of_digit(digit, &open.document) {
                    open.shared.show_view(entry.id);
                }
            }
            Command::Pin => self.pin(),
            Command::CopyName | Command::FilterToThis | Command::HideThis => {
                let Some(buffer) = open.shared.selected else { return self.say("No buffer is selected") };
                let Some((program, _)) = open.document.program(open.shared.program) else { return };
                let name = program.buffer_name(buffer);
                match command {
                    Command::CopyName => self.act(Action::Copy(name)),
                    Command::HideThis => {
                        open.shared.hide(buffer);
                    }
                    _ => open.shared.find(name),
                }
            }
            Command::ShowHidden => open.shared.show_hidden(),
            Command::Peak => open.shared.choose_step(None),
            Command::Clear
                if (view::VIEWS.shown_or_first(open.shared.view, &open.document).clear)(&mut open.locals) => {}
            Command::Clear => open.shared.clear(),
            _ => {}
        }
    }

    /// Asks where to save a picture of the view.
    fn save_picture(&mut self) {
        let Some(picture) = self.picture_of_view() else { return self.say("There is no view to save") };
        let view = self.files.current().map_or("view", |open| open.shared.view);
        self.ask(Purpose::Picture(format!("highwater-{view}.png"), picture));
    }

    fn open_dialog(&mut self) {
        self.ask(Purpose::Profiles);
    }

    fn take_drops(&mut self, ctx: &egui::Context) {
        let dropped = ctx.input(|i| i.raw.dropped_files.clone());
        for file in dropped {
            self.open(Target::Path(file.path().to_owned()));
        }
        // A text pasted into the window is opened, one pasted into a field is not.
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

/// Frame of a bar.
fn bar(fill: egui::Color32) -> Frame {
    Frame::new().fill(fill).inner_margin(Margin::ZERO)
}
