//! Walking through a view in a test, by mouse and by keyboard.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use egui::{Key, Modifiers, PointerButton, Pos2, Rect, Role};
use egui_kittest::kittest::{NodeT as _, Queryable as _, by};
use egui_kittest::{Harness, Node};
use highwater::model::BufferId;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::{Shared, ThemeChoice};

use crate::gui;

/// A window that is walked through.
pub struct Walk {
    /// The window.
    pub harness: Harness<'static, App>,
    /// What the last click put on the clipboard.
    clipboard: Option<String>,
}

impl Walk {
    /// Files open, at a view.
    pub fn new(paths: &[PathBuf], view: &str) -> Self {
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
        Self { harness: gui::window(&paths, [1600.0, 1000.0], ThemeChoice::Light, link), clipboard: None }
    }

    /// Everything that is said.
    pub fn words(&self) -> Vec<String> {
        gui::words(&self.harness)
    }

    /// Whether something that is said contains some words.
    pub fn says(&self, part: &str) -> bool {
        gui::says(&self.harness, part)
    }

    /// Labels of a role that begin with some words.
    pub fn all(&self, role: Role, start: &str) -> Vec<String> {
        let labels = self.harness.get_all_by_role(role).filter_map(|node| node.accesskit_node().label());
        labels.filter(|label| label.starts_with(start)).collect()
    }

    /// The first of them.
    pub fn first(&self, role: Role, start: &str) -> String {
        let nodes = self.harness.query_all_by_role(role).filter_map(|node| node.accesskit_node().label());
        let mut found = nodes.into_iter().filter(|label| label.starts_with(start));
        found.next().unwrap_or_else(|| panic!("no {role:?} '{start}': {:?}", self.words()))
    }

    /// A label that begins with some words.
    pub fn starting(&self, start: &str) -> String {
        let found = self.words().into_iter().find(|label| label.starts_with(start));
        found.unwrap_or_else(|| panic!("nothing begins with '{start}': {:?}", self.words()))
    }

    fn node(&self, role: Role, label: &str) -> Node<'_> {
        let mut nodes = self.harness.query_all_by_role(role);
        nodes
            .find(|node| node.accesskit_node().label().as_deref() == Some(label))
            .unwrap_or_else(|| panic!("no {role:?} '{label}': {:?}", self.words()))
    }

    /// Where something is.
    pub fn rect(&self, label: &str) -> Rect {
        self.harness.query_all_by_label(label).next().unwrap_or_else(|| panic!("no '{label}'")).rect()
    }

    /// Top of a label.
    pub fn top_of(&self, label: &str) -> f32 {
        self.rect(label).top()
    }

    /// Top of the text of the report.
    pub fn report_top(&self) -> f32 {
        let nodes = self.harness.get_all(by());
        let longest = nodes.max_by_key(|node| {
            let node = node.accesskit_node();
            node.label().or_else(|| node.value()).map_or(0, |words| words.len())
        });
        longest.expect("a text").rect().top()
    }

    /// Clicks something.
    pub fn click(&mut self, role: Role, label: &str) {
        let at = self.node(role, label).rect().center();
        self.click_pos(at, PointerButton::Primary);
    }

    /// Clicks one of several of the same name.
    pub fn click_nth(&mut self, role: Role, label: &str, nth: usize) {
        let at = {
            let nodes = self.harness.query_all_by_role(role);
            let mut nodes = nodes.filter(|node| node.accesskit_node().label().as_deref() == Some(label));
            nodes.nth(nth).unwrap_or_else(|| panic!("no {role:?} '{label}'")).rect().center()
        };
        self.click_pos(at, PointerButton::Primary);
    }

    /// Opens the menu of something.
    pub fn right_click(&mut self, role: Role, label: &str) {
        let at = self.node(role, label).rect().center();
        self.click_pos(at, PointerButton::Secondary);
    }

    /// Opens the menu at a place of a picture, in shares of its width and height.
    pub fn right_click_at(&mut self, label: &str, x: f32, y: f32) {
        let rect = self.rect(label);
        let at = Pos2::new(rect.left() + rect.width() * x, rect.top() + rect.height() * y);
        self.click_pos(at, PointerButton::Secondary);
    }

    /// Clicks at a place of a picture, in shares of its width and height.
    pub fn click_at(&mut self, label: &str, x: f32, y: f32) {
        let rect = self.rect(label);
        let at = Pos2::new(rect.left() + rect.width() * x, rect.top() + rect.height() * y);
        self.click_pos(at, PointerButton::Primary);
    }

    /// Turns the wheel by some points over a place of what has a label; its smoothing is waited for.
    pub fn wheel_at(&mut self, label: &str, (x, y): (f32, f32), by: f32) {
        let rect = self.rect(label);
        self.harness.hover_at(Pos2::new(rect.left() + rect.width() * x, rect.top() + rect.height() * y));
        self.harness.run_ok();
        self.harness.event(egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: egui::Vec2::new(0.0, by),
            modifiers: Modifiers::NONE,
            phase: egui::TouchPhase::Move,
            source: egui::MouseWheelSource::Wheel,
        });
        for _ in 0..40 {
            self.harness.step();
        }
        self.harness.run_ok();
    }

    /// Clicks the head of a frame: below it lies what it encloses.
    pub fn click_head(&mut self, label: &str) {
        let rect = self.rect(label);
        self.click_pos(Pos2::new(rect.center().x, rect.top() + 7.0), PointerButton::Primary);
    }

    fn click_pos(&mut self, at: Pos2, button: PointerButton) {
        self.harness.hover_at(at);
        self.harness.run_ok();
        for pressed in [true, false] {
            self.harness.event(egui::Event::PointerButton { pos: at, button, pressed, modifiers: Modifiers::NONE });
        }
        self.harness.step();
        self.clipboard = self.on_clipboard();
        self.harness.run_ok();
    }

    fn on_clipboard(&self) -> Option<String> {
        let commands = &self.harness.output().platform_output.commands;
        commands.iter().find_map(|command| match command {
            egui::OutputCommand::CopyText(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// Presses a key.
    pub fn key(&mut self, key: Key) {
        self.modified(Modifiers::NONE, key);
    }

    /// Presses a key with Shift.
    pub fn shift(&mut self, key: Key) {
        self.modified(Modifiers::SHIFT, key);
    }

    /// Presses a key with others.
    pub fn modified(&mut self, modifiers: Modifiers, key: Key) {
        self.harness.key_press_modifiers(modifiers, key);
        self.harness.run_ok();
    }

    /// Presses a key for the very next frame.
    pub fn press(&mut self, modifiers: Modifiers, key: Key) {
        for pressed in [true, false] {
            let event = egui::Event::Key { key, physical_key: None, pressed, repeat: false, modifiers };
            self.harness.input_mut().events.push(event);
        }
    }

    /// Opens the menu of what the keyboard is at.
    pub fn menu(&mut self) {
        self.shift(Key::F10);
    }

    /// Text that goes to the clipboard in one of the next frames.
    pub fn copied(&mut self) -> String {
        if let Some(text) = self.clipboard.take() {
            return text;
        }
        for _ in 0..8 {
            self.harness.step();
            if let Some(text) = self.on_clipboard() {
                self.harness.run_ok();
                return text;
            }
        }
        panic!("no text was copied")
    }

    /// What is said of what has the focus.
    pub fn focused(&self) -> String {
        let mut all = self.harness.get_all(by());
        let node = all.find(|node| node.accesskit_node().is_focused());
        node.and_then(|node| node.accesskit_node().label()).unwrap_or_default()
    }

    /// Presses Tab until something of a role has the focus whose name begins with some words, or is those before a stop.
    pub fn tab_to(&mut self, role: Role, start: &str) {
        let mut seen = Vec::new();
        for _ in 0..400 {
            self.key(Key::Tab);
            let found = {
                let mut all = self.harness.get_all(by());
                let focused = all.find(|node| node.accesskit_node().is_focused());
                focused.is_some_and(|node| {
                    let node = node.accesskit_node();
                    // A name that ends with a stop is meant whole.
                    let is_meant =
                        |label: &str| start.strip_suffix('.').map_or(label.starts_with(start), |whole| label == whole);
                    node.role() == role && node.label().is_some_and(|label| is_meant(&label))
                })
            };
            if found {
                return;
            }
            seen.push(self.focused());
        }
        panic!("Tab does not come to '{start}': {seen:?}");
    }

    /// Presses F6 until a picture or table has the focus whose name begins with some words; returns what is said of it.
    pub fn go_to_field(&mut self, start: &str) -> String {
        let mut seen = Vec::new();
        for _ in 0..12 {
            self.key(Key::F6);
            let focused = self.focused();
            if focused.starts_with(start) {
                return focused;
            }
            seen.push(focused);
        }
        panic!("F6 does not come to '{start}': {seen:?}");
    }

    /// Types into a field.
    pub fn type_text(&mut self, label: &str, text: &str) {
        self.harness.get_by_label(label).type_text(text);
        self.harness.run_ok();
    }

    /// What the views share.
    pub fn shared(&self) -> &Shared {
        &self.harness.state().files.current().expect("open").shared
    }

    /// The view that is shown.
    pub fn view(&self) -> &'static str {
        self.shared().view
    }

    /// The selected buffer.
    pub fn selected(&self) -> Option<BufferId> {
        self.shared().selected
    }

    /// The chosen step.
    pub fn step(&self) -> Option<u32> {
        self.shared().step
    }

    /// The place in the tree.
    pub fn path(&self) -> Vec<String> {
        self.shared().tree.path.clone()
    }

    /// Name of a buffer.
    pub fn name_of(&self, buffer: BufferId) -> String {
        let open = self.harness.state().files.current().expect("open");
        open.document.program(self.shared().program).expect("a program").0.buffer_name(buffer)
    }
}
