//! Every command with its keys, in one list: the shortcuts and the help sheet come from it.

use egui::{Key, Modifiers};

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Open files.
    Open,
    /// Close the file that is shown.
    Close,
    /// Show a view by its number.
    View(usize),
    /// Where one was before.
    Back,
    /// The other way.
    Forward,
    /// Show or hide the right panel.
    Panel,
    /// Next theme.
    Theme,
    /// Larger type.
    Larger,
    /// Smaller type.
    Smaller,
    /// Filter buffers.
    Find,
    /// Pin the peak again.
    Peak,
    /// Clear: filter, selection, step.
    Clear,
    /// Copy the command line that leads here.
    Link,
    /// This sheet.
    Help,
}

/// A command with its words and keys.
pub struct Entry {
    /// The command.
    pub command: Command,
    /// What it does.
    pub words: &'static str,
    /// Modifiers.
    pub modifiers: Modifiers,
    /// Key.
    pub key: Key,
    /// How the keys are written.
    pub keys: &'static str,
}

const fn entry(command: Command, words: &'static str, modifiers: Modifiers, key: Key, keys: &'static str) -> Entry {
    Entry { command, words, modifiers, key, keys }
}

/// All commands. Those with more modifiers come first: egui lets `Ctrl+Shift+O` match `Ctrl+O` as well.
pub const COMMANDS: &[Entry] = &[
    entry(Command::Open, "Open files", Modifiers::COMMAND, Key::O, "Ctrl O"),
    entry(Command::Close, "Close this file", Modifiers::COMMAND, Key::W, "Ctrl W"),
    entry(Command::Find, "Filter buffers", Modifiers::COMMAND, Key::F, "Ctrl F"),
    entry(Command::Link, "Copy the command line that leads here", Modifiers::COMMAND, Key::L, "Ctrl L"),
    entry(Command::Panel, "Show or hide details", Modifiers::COMMAND, Key::D, "Ctrl D"),
    entry(Command::Theme, "Light or dark", Modifiers::COMMAND, Key::T, "Ctrl T"),
    entry(Command::Larger, "Larger", Modifiers::COMMAND, Key::Plus, "Ctrl +"),
    entry(Command::Smaller, "Smaller", Modifiers::COMMAND, Key::Minus, "Ctrl \u{2212}"),
    entry(Command::Back, "Back", Modifiers::ALT, Key::ArrowLeft, "Alt \u{2190}"),
    entry(Command::Forward, "Forward", Modifiers::ALT, Key::ArrowRight, "Alt \u{2192}"),
    entry(Command::Peak, "Go to the peak", Modifiers::NONE, Key::P, "P"),
    entry(Command::Clear, "Clear step, selection, filter", Modifiers::NONE, Key::Escape, "Esc"),
    entry(Command::Help, "Keys", Modifiers::NONE, Key::Questionmark, "?"),
    entry(Command::View(0), "First view", Modifiers::NONE, Key::Num1, "1"),
    entry(Command::View(1), "Second view", Modifiers::NONE, Key::Num2, "2"),
    entry(Command::View(2), "Third view", Modifiers::NONE, Key::Num3, "3"),
    entry(Command::View(3), "Fourth view", Modifiers::NONE, Key::Num4, "4"),
    entry(Command::View(4), "Fifth view", Modifiers::NONE, Key::Num5, "5"),
    entry(Command::View(5), "Sixth view", Modifiers::NONE, Key::Num6, "6"),
    entry(Command::View(6), "Seventh view", Modifiers::NONE, Key::Num7, "7"),
    entry(Command::View(7), "Eighth view", Modifiers::NONE, Key::Num8, "8"),
    entry(Command::View(8), "Ninth view", Modifiers::NONE, Key::Num9, "9"),
];

/// The commands whose keys were pressed in this frame. Keys without modifiers belong to a text field while one has the
/// focus.
pub fn pressed(ctx: &egui::Context) -> Vec<Command> {
    let typing = ctx.egui_wants_keyboard_input();
    ctx.input_mut(|input| {
        COMMANDS
            .iter()
            .filter(|entry| !typing || entry.modifiers.command || entry.modifiers.alt || entry.key == Key::Escape)
            .filter(|entry| input.consume_key(entry.modifiers, entry.key))
            .map(|entry| entry.command)
            .collect()
    })
}
