//! Runs commands, and the actions that views request.

use super::chrome::palette_matches::CommandPalette;
use super::chrome::side_panel;
use super::commands::Command;
use super::files::dialog::Purpose;
use super::state::App;
use crate::analysis::SpaceAnalysis;
use crate::model::UnitSystem;
use crate::open::Target;
use crate::ui::part::Action;
use crate::ui::session::pins::Asked;
use crate::ui::session::{PinOn, ThemeChoice};
use crate::ui::view::VIEWS;
use crate::ui::widget::keys;
use crate::ui::work::Direction;

impl App {
    /// Runs a command.
    pub fn run(&mut self, command: Command) {
        match command {
            Command::Open => self.open_dialog(),
            Command::OpenFolder => self.ask(Purpose::Folder),
            Command::Compare => self.ask(Purpose::Compare),
            Command::FollowFolder => self.ask(Purpose::Follow),
            Command::Follow => self.toggle_following(),
            Command::Reload => self.read_again(),
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
                self.help = None;
                // A menu behind the palette would take its keys.
                egui::Popup::close_all(&self.ctx);
                self.palette = if self.palette.is_some() { None } else { Some(CommandPalette::default()) };
            }
            Command::Sample => self.open_sample(),
            Command::NextFile => self.files.show_next(Direction::Forward),
            Command::PreviousFile => self.files.show_next(Direction::Back),
            Command::Find => self.find(),
            Command::NextHit => self.next_hit(Direction::Forward),
            Command::PreviousHit => self.next_hit(Direction::Back),
            Command::CopyPicture => self.copy_picture(),
            Command::SavePicture => self.save_picture(),
            Command::IntoView => keys::next_field(&self.ctx),
            Command::Menu => keys::request_menu(&self.ctx),
            Command::Performance => self.performance.is_open = !self.performance.is_open,
            Command::Help(page) => self.toggle_help(page),
            Command::SaveSession => self.save_session(),
            Command::Link => {
                if let Some(link) = self.link() {
                    self.ctx.copy_text(link);
                    self.say(if self.options.names_hidden {
                        "Command line copied. Names are hidden in it, so it cannot be run"
                    } else {
                        "Command line copied"
                    });
                } else {
                    self.say("Pasted text is not in a file, so no command line can open it");
                }
            }
            Command::Clear if self.help.is_some() => self.help = None,
            Command::Clear if egui::Popup::is_any_open(&self.ctx) => egui::Popup::close_all(&self.ctx),
            Command::Clear if self.palette.is_some() => self.palette = None,
            Command::Clear if self.path_field.is_some() => self.path_field = None,
            Command::Clear if self.searching => self.search.clear(),
            Command::Clear if self.panel_covers() => self.panel = None,
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

    pub(super) fn act(&mut self, action: Action) {
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
            Action::SwapCompared => self.swap_comparison(),
            Action::EndComparison => self.end_comparison(),
            Action::CompareColumn(id) => self.compare_column(id),
            Action::ComparePrograms(before, after) => self.compare_programs(before, after),
            Action::Open(path) => self.open(Target::Path(path)),
            Action::Save(file) => self.ask(Purpose::Text(file)),
            Action::ReadSets => self.ask(Purpose::ReadSets),
            Action::Panel(panel) => {
                self.panel = Some(true);
                self.panel_over = None;
                if let Some(open) = self.files.current_mut() {
                    side_panel::choose(&mut open.locals, panel);
                }
            }
        }
    }

    fn zoom(&mut self, zoom: f32) {
        self.options.zoom = ((zoom * 10.0).round() / 10.0).clamp(0.6, 2.5);
        self.apply_look();
    }

    /// Pins the selected buffer or the step.
    fn pin(&mut self) {
        let Some(open) = self.files.current_mut() else { return };
        let Some((program, analysis)) = open.document.program(open.shared.program) else { return };
        let selected = open.shared.selected.and_then(|buffer| program.buffers.number.get(buffer.index()).copied());
        let peak = || analysis.space(open.shared.color).map(SpaceAnalysis::peak_point);
        let on = match selected {
            Some(number) => Some(PinOn::Buffer(number)),
            None => open.shared.step.or_else(peak).map(PinOn::Step),
        };
        let Some(pin) = on.and_then(|on| open.shared.pin(on)) else { return };
        open.locals.get::<Asked>().0 = Some(pin);
        self.act(Action::Panel("pins"));
    }

    fn run_in_file(&mut self, command: Command) {
        let Some(open) = self.files.current_mut() else { return };
        open.shared.begin_turn();
        match command {
            Command::Back => open.shared.go_back(),
            Command::Forward => open.shared.go_forward(),
            Command::View(digit) => {
                if let Some(entry) = VIEWS.of_digit(digit, &open.document) {
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
            Command::Clear if (VIEWS.shown_or_first(open.shared.view, &open.document).clear)(&mut open.locals) => {}
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
}
