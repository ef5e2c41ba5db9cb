//! The top bar: logo, back and forward, program, memory space with its capacity.

use egui::{
    Align, Key, Layout, Popup, PopupCloseBehavior, Pos2, Response, Role, Sense, Stroke, StrokeKind, Ui, UiBuilder,
    Vec2, WidgetInfo,
};

use crate::analysis::Verdict;
use crate::model::{Bytes, Capacity, DeviceKind, MemorySpace, TPU_GENERATIONS, UnitSystem, parse_size, thousands};
use crate::open::Target;
use crate::ui::app::commands::keys_of;
use crate::ui::app::help::state::HelpPage;
use crate::ui::app::{App, Command};
use crate::ui::session::{Shared, ThemeChoice};
use crate::ui::widget::controls::{self, Mark, hairline, paint_mark};
use crate::ui::widget::cut::Cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, mix, size, space};

/// Space at the right end of the bar.
const EDGE: f32 = 16.0;
/// The button for help, with its key.
const HELP: (&str, &str) = ("Help", "?");
/// The button that shows names again.
const NAMES_HIDDEN: &str = "Names hidden";
/// Frequent commands from the right on, each with the room that it needs.
const QUICK: [(&str, Command, f32); 2] =
    [("Presenter", Command::Presenter, 470.0), ("Copy picture", Command::CopyPicture, 400.0)];

impl App {
    pub(in crate::ui::app) fn top_bar(&mut self, ui: &mut Ui, theme: &Theme) {
        hairline(ui, ui.max_rect(), theme.line);
        let mut commands = Vec::new();
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
            ui.add_space(16.0);
            let (sign, _) = ui.allocate_exact_size(Vec2::splat(18.0), Sense::hover());
            controls::paint_sign(ui.painter(), sign, theme);
            if ui.available_width() > WITH_NAME {
                ui.label(text("Highwater", size::LEAD, Weight::SemiBold, theme.text));
            }
            ui.add_space(12.0);
            let history = self.files.current().map(|open| open.shared.can_go());
            if let Some((back, forward)) = history {
                for (words, enabled, command, arrow) in
                    [("Back", back, Command::Back, "\u{2039}"), ("Forward", forward, Command::Forward, "\u{203a}")]
                {
                    if arrow_button(ui, theme, words, arrow, enabled).clicked() && enabled {
                        commands.push(command);
                    }
                }
                ui.add_space(8.0);
                self.file_picker(ui, theme);
                self.pickers(ui, theme);
            }
            self.right_end(ui, theme, &mut commands);
        });
        for command in commands {
            self.run(command);
        }
    }

    /// The field for finding, frequent commands and the menus. It is divided from the right, and drawn from the left: Tab
    /// goes through it in the order in which it is read.
    fn right_end(&mut self, ui: &mut Ui, theme: &Theme, commands: &mut Vec<Command>) {
        let gap = ui.spacing().item_spacing.x;
        let width_of = |ui: &Ui, words: &str, keys: &str| controls::button_width(ui, words, keys) + gap;
        let mut buttons = vec![("Open", ""), ("View", ""), HELP];
        if self.options.names_hidden {
            buttons.insert(0, (NAMES_HIDDEN, ""));
        }
        let has_file = self.files.current().is_some();
        let mut room = ui.available_width() - EDGE;
        room -= buttons.iter().map(|(words, keys)| width_of(ui, words, keys)).sum::<f32>();
        let mut quick = Vec::new();
        for (words, command, least) in QUICK.into_iter().filter(|_| has_file) {
            // The keys give way to the field for finding.
            let keys = if room > WITH_KEYS { keys_of(command) } else { "" };
            if room > least {
                room -= width_of(ui, words, keys);
                quick.insert(0, (words, keys, command));
            }
        }
        let all = ui.available_rect_before_wrap();
        let split = (all.left() + room).max(all.left());
        if has_file {
            let place = all.with_max_x(split);
            let layout = Layout::right_to_left(Align::Center);
            self.find_field(&mut ui.new_child(UiBuilder::new().max_rect(place).layout(layout).id_salt("find")), theme);
        }
        let place = all.with_min_x(split + gap);
        let layout = Layout::left_to_right(Align::Center);
        let ui = &mut ui.new_child(UiBuilder::new().max_rect(place).layout(layout).id_salt("right end"));
        for (words, keys, command) in quick {
            if controls::button(ui, words, keys, theme).clicked() {
                commands.push(command);
            }
        }
        if self.options.names_hidden
            && controls::toggle_button(ui, NAMES_HIDDEN, "", controls::On(true), theme)
                .on_hover_text("Scopes, operations, files and modules are shown as aliases. Click to show their names")
                .clicked()
        {
            commands.push(Command::HideNames);
        }
        self.open_menu(ui, theme, commands);
        self.look_menu(ui, theme, commands);
        let is_open = controls::On(self.help.is_some());
        if controls::toggle_button(ui, HELP.0, HELP.1, is_open, theme).clicked() {
            commands.push(Command::Help(HelpPage::Keys));
        }
    }

    /// Menu of theme, units, zoom and sharing.
    fn look_menu(&self, ui: &mut Ui, theme: &Theme, commands: &mut Vec<Command>) {
        let response = controls::button(ui, "View", "", theme);
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, "View options"));
        Popup::menu(&response).show(|ui| {
            ui.set_min_width(280.0);
            let mut row = |ui: &mut Ui, words: &str, command: Command, on: bool| {
                if controls::check_row(ui, words, keys_of(command), controls::On(on), theme).clicked() {
                    commands.push(command);
                }
            };
            for choice in ThemeChoice::ALL {
                row(ui, choice.name(), Command::Look(choice), self.options.theme == choice);
            }
            controls::rule(ui, theme);
            let decimal = self.options.units == UnitSystem::Decimal;
            let units = [("GiB: powers of 1024", false), ("GB: powers of 1000", true)];
            for (words, is_decimal) in units {
                let chosen = decimal == is_decimal;
                let response = controls::check_row(ui, words, "", controls::On(chosen), theme);
                if response.clicked() && !chosen {
                    commands.push(Command::Units);
                }
            }
            controls::rule(ui, theme);
            let mut row = |ui: &mut Ui, words: &str, command: Command, on: bool| {
                if controls::check_row(ui, words, keys_of(command), controls::On(on), theme).clicked() {
                    commands.push(command);
                }
            };
            row(ui, "Larger text", Command::Larger, false);
            row(ui, "Smaller text", Command::Smaller, false);
            row(ui, "Text of normal size", Command::Normal, false);
            controls::rule(ui, theme);
            row(ui, "Presenter mode", Command::Presenter, self.options.presenter);
            row(ui, "Hide names", Command::HideNames, self.options.names_hidden);
            row(ui, "Copy a picture of the view", Command::CopyPicture, false);
            row(ui, "Save a picture of the view\u{2026}", Command::SavePicture, false);
            row(ui, "Copy a command line that opens this view", Command::Link, false);
        });
    }

    /// Menu of the dialog, the sample and recent files.
    fn open_menu(&mut self, ui: &mut Ui, theme: &Theme, commands: &mut Vec<Command>) {
        let response = controls::button(ui, "Open", "", theme);
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, "Open menu"));
        let mut chosen = None;
        Popup::menu(&response).show(|ui| {
            ui.set_min_width(320.0);
            for (words, command) in [
                ("Open files\u{2026}", Command::Open),
                ("Open a folder\u{2026}", Command::OpenFolder),
                ("Compare with a file\u{2026}", Command::Compare),
                ("Follow a folder\u{2026}", Command::FollowFolder),
                ("Open the sample", Command::Sample),
                ("Go to\u{2026}", Command::Palette),
            ] {
                if controls::menu_row(ui, words, keys_of(command), theme).clicked() {
                    commands.push(command);
                }
            }
            let recent = self.recent();
            if !recent.is_empty() {
                controls::rule(ui, theme);
            }
            chosen = self.recent_rows(ui, theme, recent.into_iter().take(10));
        });
        if let Some(path) = chosen {
            self.open(Target::Path(path));
        }
    }

    /// Picker for the current file: what is shown is always named, shorter where the bar is narrow.
    fn file_picker(&mut self, ui: &mut Ui, theme: &Theme) {
        let room = ui.available_width();
        let Some(index) = self.files.current else { return };
        let width = if room > WIDE { 180.0 } else { (room * 0.16).clamp(64.0, 180.0) };
        let form = PickerForm { is_named: room > WIDE, width };
        let Some(current) = self.files.entries.get(index) else { return };
        let list = self.files.groups.iter().find(|group| Some(group.id) == current.group);
        let value = list.map_or_else(|| self.name_of(current), |list| self.listed_name(&list.name));
        let response = picker(ui, theme, "File", &value, form);
        let mut chosen = None;
        Popup::menu(&response).show(|ui| {
            ui.set_min_width(420.0);
            egui::ScrollArea::vertical().max_height(480.0).show(ui, |ui| {
                for (i, entry) in self.files.entries.iter().enumerate() {
                    let (mark, need) = self.standing_of(entry);
                    if row(ui, theme, mark, &self.distinct_name_of(entry), &need, i == index).clicked() {
                        chosen = Some(i);
                        ui.close();
                    }
                }
            });
        });
        if let Some(index) = chosen {
            let work = self.work();
            self.files.show(index, &work);
        }
    }

    fn pickers(&mut self, ui: &mut Ui, theme: &Theme) {
        if self.veiled() {
            return;
        }
        let units = self.options.units;
        let mut field = std::mem::take(&mut self.capacity_field);
        let room = ui.available_width() - RESERVED - if self.options.names_hidden { HIDDEN } else { 0.0 };
        if let Some(open) = self.files.current_mut() {
            let document = open.document.clone();
            let shared = &mut open.shared;
            let programs = &document.profile.programs;
            if let Some(tiles) = &document.profile.tiles {
                let name = document.profile.device.name.clone().unwrap_or_else(|| "IPU".to_owned());
                let limit = tiles.target.bytes_per_tile.map(|bytes| units.capacity(Bytes(bytes)));
                let limit = limit.map_or_else(String::new, |limit| format!("   {limit} per tile"));
                let words = format!("{name}   {} tiles{limit}", thousands(tiles.tile_count() as u64));
                controls::cut_label(ui, &words, Weight::Medium.at(size::BODY), theme.text, room);
            }
            let space = document.program(shared.program).and_then(|(_, analysis)| analysis.space(shared.color));
            let memory = space.map(|space| {
                let capacity = shared.capacity.get(&shared.color).or(space.capacity.as_ref());
                capacity.map_or_else(|| space.name.clone(), |c| format!("{}  {}", space.name, units.capacity(c.bytes)))
            });
            let shown = programs.get(shared.program).map(|program| ("Program", program.name.as_str()));
            let shown: Vec<(&str, &str)> = shown.into_iter().chain(memory.as_deref().map(|m| ("Memory", m))).collect();
            let form = PickerForm::fitting(ui, &shown, room);
            if let Some(current) = programs.get(shared.program) {
                let response = picker(ui, theme, "Program", &current.name, form);
                Popup::menu(&response).show(|ui| {
                    ui.set_min_width(320.0);
                    egui::ScrollArea::vertical().max_height(480.0).show(ui, |ui| {
                        for (i, program) in programs.iter().enumerate() {
                            let Some((_, analysis)) = document.program(i) else { continue };
                            let main = analysis.main_space();
                            let need = main.map(|space| units.short(space.xprof.allocated)).unwrap_or_default();
                            let mark = main.map_or(Mark::Unknown, |space| mark_of(space.verdict()));
                            if row(ui, theme, mark, &program.name, &need, i == shared.program).clicked() {
                                shared.choose(i, main.map_or(MemorySpace::HBM, |space| space.color));
                                ui.close();
                            }
                        }
                    });
                });
            }
            if let Some((_, analysis)) = document.program(shared.program)
                && let Some(value) = memory
            {
                let response = picker(ui, theme, "Memory", &value, form);
                let kind = document.profile.device.kind;
                Popup::menu(&response).close_behavior(PopupCloseBehavior::CloseOnClickOutside).show(|ui| {
                    ui.set_min_width(320.0);
                    for space in &analysis.spaces {
                        let capacity = shared.capacity.get(&space.color).or(space.capacity.as_ref()).map(|c| c.bytes);
                        let of = capacity.map(|c| format!(" of {}", units.capacity(c))).unwrap_or_default();
                        let need = space.xprof.allocated;
                        let need = capacity.map_or_else(|| units.short(need), |c| units.beside(need, c));
                        let need = format!("{need}{of}");
                        let mark = mark_of(space.verdict_against(capacity));
                        if row(ui, theme, mark, &space.name, &need, space.color == shared.color).clicked() {
                            shared.choose(shared.program, space.color);
                            ui.close();
                        }
                    }
                    if shared.color == MemorySpace::HBM {
                        capacity_choice(ui, theme, units, kind, shared, &mut field);
                    }
                });
            }
        }
        self.capacity_field = field;
    }
}

/// Room from which the buttons of the bar show their keys.
const WITH_KEYS: f32 = 700.0;

/// The mark for a memory space's verdict.
pub fn mark_of(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Over { .. } => Mark::Over,
        Verdict::Fits { .. } => Mark::Fits,
        Verdict::Unknown => Mark::Unknown,
    }
}

fn arrow_button(ui: &mut Ui, theme: &Theme, words: &str, arrow: &str, enabled: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(22.0, space::CONTROL), Sense::click());
    if response.hovered() && enabled {
        ui.painter().rect_filled(rect, space::RADIUS, theme.hover);
    }
    let color = if enabled { theme.text } else { mix(theme.text, theme.chrome, 0.7) };
    ui.painter().text(rect.center(), egui::Align2::CENTER_CENTER, arrow, Weight::Medium.at(size::HEADLINE), color);
    response.widget_info(|| WidgetInfo::labeled(Role::Button, enabled, words));
    response
}

/// Width of the bar from which Highwater's name is in it, and from which the file is called one.
const WITH_NAME: f32 = 1000.0;
const WIDE: f32 = 1150.0;
/// Room for the menus at the right end of the bar, and for the sign of hidden names.
const RESERVED: f32 = 184.0;
const HIDDEN: f32 = 120.0;
/// What a button that opens a list takes beside its words, and the longest of these.
const PICKER: f32 = 42.0;
const LONGEST: f32 = 220.0;

/// How buttons that show a choice are written.
#[derive(Clone, Copy)]
struct PickerForm {
    /// Whether what is chosen has its name before it.
    is_named: bool,
    /// Width of the words of the choice.
    width: f32,
}

impl PickerForm {
    /// The form in which all of some buttons, by name and choice, have room.
    fn fitting(ui: &Ui, shown: &[(&str, &str)], room: f32) -> Self {
        let wide = |words: &str, font: egui::FontId| {
            ui.painter().layout_no_wrap(words.to_owned(), font, egui::Color32::PLACEHOLDER).size().x
        };
        let gap = ui.spacing().item_spacing.x;
        let (name, value) = (Weight::Regular.at(size::SMALL), Weight::Medium.at(size::BODY));
        let values = shown.iter().map(|(_, words)| wide(words, value.clone()).min(LONGEST) + PICKER + gap).sum::<f32>();
        let names = shown.iter().map(|(words, _)| wide(words, name.clone())).sum::<f32>();
        if values + names <= room {
            return Self { is_named: true, width: LONGEST };
        }
        let width = if values <= room { LONGEST } else { room / shown.len().max(1) as f32 - PICKER - gap };
        Self { is_named: false, width }
    }
}

/// A button that shows the current choice and opens a menu.
fn picker(ui: &mut Ui, theme: &Theme, name: &str, value: &str, form: PickerForm) -> Response {
    let label = if form.is_named { name } else { "" };
    let label = ui.painter().layout_no_wrap(label.to_owned(), Weight::Regular.at(size::SMALL), theme.text2);
    let shown = Cut::new(ui.painter(), value, Weight::Medium.at(size::BODY), theme.text, form.width);
    let before = if form.is_named { PICKER } else { PICKER - 8.0 };
    let size = Vec2::new(label.size().x + shown.size().x + before, 28.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    let fill = if response.hovered() { theme.hover } else { theme.canvas };
    ui.painter().rect(rect, space::RADIUS, fill, Stroke::new(theme.outline, theme.line2), StrokeKind::Inside);
    let y = rect.center().y;
    ui.painter().galley(Pos2::new(rect.left() + 10.0, y - label.size().y / 2.0), label.clone(), theme.text2);
    let x = rect.left() + if form.is_named { 18.0 } else { 10.0 } + label.size().x;
    let at = Pos2::new(x, y - shown.size().y / 2.0);
    shown.paint(ui.painter(), at);
    controls::paint_chevron(ui.painter(), Pos2::new(rect.right() - 12.0, y + 2.5), theme.text2);
    response.widget_info(|| WidgetInfo::labeled(Role::ComboBox, true, format!("{name}: {value}")));
    response
}

/// A row of a menu.
fn row(ui: &mut Ui, theme: &Theme, mark: Mark, name: &str, value: &str, chosen: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 26.0), Sense::click());
    if chosen {
        ui.painter().rect_filled(rect, space::RADIUS, theme.accent_bg);
    } else if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, space::RADIUS, theme.hover);
    }
    let y = rect.center().y;
    paint_mark(ui.painter(), Pos2::new(rect.left() + 14.0, y), mark, theme);
    let value_rect = ui.painter().text(
        Pos2::new(rect.right() - 8.0, y),
        egui::Align2::RIGHT_CENTER,
        value,
        Weight::Regular.at(size::SMALL),
        theme.text2,
    );
    let width = value_rect.left() - rect.left() - 40.0;
    let at = Pos2::new(rect.left() + 28.0, y);
    controls::paint_cut(
        ui.painter(),
        (at, egui::Align2::LEFT_CENTER),
        name,
        Weight::Medium.at(size::BODY),
        theme.text,
        width,
    );
    response.widget_info(|| WidgetInfo::selected(Role::MenuItem, true, chosen, format!("{name} {value}")));
    response
}

/// Menu to set the capacity: a TPU generation or a size.
fn capacity_choice(
    ui: &mut Ui,
    theme: &Theme,
    units: UnitSystem,
    kind: Option<DeviceKind>,
    shared: &mut Shared,
    field: &mut String,
) {
    controls::rule(ui, theme);
    ui.label(text("Would it fit on", size::SMALL, Weight::Medium, theme.text2));
    let mut set = |bytes: Bytes, evidence: String| {
        shared.set_capacity(Some(Capacity { color: MemorySpace::HBM, bytes, evidence }));
    };
    if matches!(kind, Some(DeviceKind::Tpu) | None) {
        ui.horizontal_wrapped(|ui| {
            for generation in TPU_GENERATIONS {
                let Some(bytes) = generation.available_hbm() else { continue };
                let words = format!("{}  {}", generation.name, units.capacity(bytes));
                if controls::button(ui, &words, "", theme).clicked() {
                    set(bytes, format!("chosen: TPU {}", generation.name));
                }
            }
        });
    }
    ui.horizontal(|ui| {
        ui.label(text("or", size::SMALL, Weight::Regular, theme.text2));
        let edit = egui::TextEdit::singleline(field).hint_text("15.75GiB").desired_width(110.0);
        let response = ui.add(edit);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Capacity"));
        let entered = response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
        match parse_size(field) {
            Ok(bytes) if entered || controls::button(ui, "Use", "", theme).clicked() => {
                set(bytes, "chosen in the window".to_owned());
            }
            Err(error) if !field.is_empty() => {
                ui.label(text(error, size::SMALL, Weight::Regular, theme.danger));
            }
            _ => {}
        }
    });
    if shared.capacity.contains_key(&MemorySpace::HBM)
        && controls::link(ui, "Reset to the capacity in the dump", theme).clicked()
    {
        shared.set_capacity(None);
    }
}
