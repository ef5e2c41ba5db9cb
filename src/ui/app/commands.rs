//! The list of all commands with their keys, used for shortcuts, palette, menus and help sheet.

use egui::{Key, Modifiers};

use super::help::state::HelpPage;
use crate::ui::session::ThemeChoice;
use crate::ui::widget::keys;

/// Everything the user can do from the keyboard, a menu or the palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Open files.
    Open,
    /// Open a folder.
    OpenFolder,
    /// Open a folder, and follow it.
    FollowFolder,
    /// Open a file, and compare it with what is shown.
    Compare,
    /// Follow the folder of what is shown, or stop following it.
    Follow,
    /// Read the file that is shown again.
    Reload,
    /// Open the bundled sample.
    Sample,
    /// Close the file that is shown.
    Close,
    /// Show the next file.
    NextFile,
    /// Show the previous file.
    PreviousFile,
    /// Show the view with this digit.
    View(u8),
    /// Go back in the history.
    Back,
    /// Go forward in the history.
    Forward,
    /// Open the command palette.
    Palette,
    /// Show or hide the right panel.
    Panel,
    /// Switch between light and dark.
    Theme,
    /// Use this theme.
    Look(ThemeChoice),
    /// Switch between binary and decimal units.
    Units,
    /// Zoom in.
    Larger,
    /// Zoom out.
    Smaller,
    /// Reset the zoom.
    Normal,
    /// Switch presenter mode on or off.
    Presenter,
    /// Hide or show names.
    HideNames,
    /// Find buffers.
    Find,
    /// Select the next match.
    NextHit,
    /// Select the previous match.
    PreviousHit,
    /// Pin the selected buffer, or the step.
    Pin,
    /// Copy the selected buffer's name.
    CopyName,
    /// Filter by the selected buffer's name.
    FilterToThis,
    /// Hide the selected buffer.
    HideThis,
    /// Show all hidden buffers.
    ShowHidden,
    /// Go back to the peak.
    Peak,
    /// Clear: filter, selection, step.
    Clear,
    /// Copy a command line that opens this view.
    Link,
    /// Save what is open and where the user looks.
    SaveSession,
    /// Copy a picture of the view.
    CopyPicture,
    /// Save a picture of the view.
    SavePicture,
    /// Move the focus to the next chart or table of the view.
    IntoView,
    /// Open the context menu of the selection.
    Menu,
    /// Show or hide a page of the help.
    Help(HelpPage),
    /// Show or hide what frames, stages and jobs take.
    Performance,
}

/// A command with its label and shortcut.
pub struct Entry {
    /// The command.
    pub command: Command,
    /// Its label.
    pub words: &'static str,
    /// Modifiers.
    pub modifiers: Modifiers,
    /// Key; `None` if it has no shortcut.
    pub key: Option<Key>,
    /// The shortcut as text.
    pub keys: &'static str,
}

const fn entry(command: Command, words: &'static str, modifiers: Modifiers, key: Key, keys: &'static str) -> Entry {
    Entry { command, words, modifiers, key: Some(key), keys }
}

const fn plain(command: Command, words: &'static str) -> Entry {
    Entry { command, words, modifiers: Modifiers::NONE, key: None, keys: "" }
}

const COMMAND_SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);

/// Whether a command is about the window itself rather than about what is in it.
pub const fn is_of_window(command: Command) -> bool {
    matches!(
        command,
        Command::Palette
            | Command::Clear
            | Command::Theme
            | Command::Larger
            | Command::Smaller
            | Command::Normal
            | Command::Presenter
            | Command::Help(_)
    )
}

/// All commands. Those with more modifiers come first: egui lets `Ctrl+Shift+O` match `Ctrl+O` as well.
pub const COMMANDS: &[Entry] = &[
    entry(Command::CopyPicture, "Copy a picture of the view", COMMAND_SHIFT, Key::C, "Ctrl Shift C"),
    entry(Command::SavePicture, "Save a picture of the view", COMMAND_SHIFT, Key::S, "Ctrl Shift S"),
    entry(Command::HideNames, "Hide names", COMMAND_SHIFT, Key::H, "Ctrl Shift H"),
    entry(Command::OpenFolder, "Open a folder", COMMAND_SHIFT, Key::O, "Ctrl Shift O"),
    entry(Command::PreviousFile, "Previous file", COMMAND_SHIFT, Key::Tab, "Ctrl Shift Tab"),
    entry(Command::PreviousHit, "Previous match", Modifiers::SHIFT, Key::F3, "Shift F3"),
    entry(Command::Palette, "Go to anything", Modifiers::COMMAND, Key::P, "Ctrl P"),
    entry(Command::Open, "Open files", Modifiers::COMMAND, Key::O, "Ctrl O"),
    entry(Command::Close, "Close this file", Modifiers::COMMAND, Key::W, "Ctrl W"),
    entry(Command::NextFile, "Next file", Modifiers::COMMAND, Key::Tab, "Ctrl Tab"),
    entry(Command::Find, "Find buffers", Modifiers::COMMAND, Key::F, "Ctrl F"),
    entry(Command::Menu, "Menu for the selection", Modifiers::SHIFT, Key::F10, "Shift F10"),
    entry(Command::IntoView, "Focus the view's charts and tables", Modifiers::NONE, Key::F6, "F6"),
    entry(Command::NextHit, "Next match", Modifiers::NONE, Key::F3, "F3"),
    entry(Command::Link, "Copy a command line that opens this view", Modifiers::COMMAND, Key::L, "Ctrl L"),
    entry(Command::Panel, "Show or hide details", Modifiers::COMMAND, Key::D, "Ctrl D"),
    entry(Command::Theme, "Light or dark", Modifiers::COMMAND, Key::T, "Ctrl T"),
    entry(Command::Larger, "Larger text", Modifiers::COMMAND, Key::Plus, "Ctrl +"),
    entry(Command::Smaller, "Smaller text", Modifiers::COMMAND, Key::Minus, "Ctrl \u{2212}"),
    entry(Command::Normal, "Text of normal size", Modifiers::COMMAND, Key::Num0, "Ctrl 0"),
    entry(Command::Presenter, "Presenter mode", Modifiers::NONE, Key::F5, "F5"),
    entry(Command::Back, "Back", Modifiers::ALT, Key::ArrowLeft, "Alt \u{2190}"),
    entry(Command::Forward, "Forward", Modifiers::ALT, Key::ArrowRight, "Alt \u{2192}"),
    entry(Command::Peak, "Go to the peak", Modifiers::NONE, Key::P, "P"),
    entry(Command::Pin, "Pin the selected buffer or the step", Modifiers::NONE, Key::B, "B"),
    entry(Command::Clear, "Clear step, selection, filter", Modifiers::NONE, Key::Escape, "Esc"),
    entry(Command::Help(HelpPage::Keys), "Keys", Modifiers::NONE, Key::Questionmark, "?"),
    entry(Command::Help(HelpPage::Glossary), "Glossary; of the word under the pointer", Modifiers::NONE, Key::F1, "F1"),
    entry(Command::Performance, "Performance: frames, stages and jobs", Modifiers::NONE, Key::F12, "F12"),
    entry(Command::View(1), "View 1", Modifiers::NONE, Key::Num1, "1"),
    entry(Command::View(2), "View 2", Modifiers::NONE, Key::Num2, "2"),
    entry(Command::View(3), "View 3", Modifiers::NONE, Key::Num3, "3"),
    entry(Command::View(4), "View 4", Modifiers::NONE, Key::Num4, "4"),
    entry(Command::View(5), "View 5", Modifiers::NONE, Key::Num5, "5"),
    entry(Command::View(6), "View 6", Modifiers::NONE, Key::Num6, "6"),
    entry(Command::View(7), "View 7", Modifiers::NONE, Key::Num7, "7"),
    entry(Command::View(8), "View 8", Modifiers::NONE, Key::Num8, "8"),
    entry(Command::View(9), "View 9", Modifiers::NONE, Key::Num9, "9"),
    plain(Command::CopyName, "Copy the selected buffer's name"),
    plain(Command::FilterToThis, "Filter to the selected buffer"),
    plain(Command::HideThis, "Hide the selected buffer"),
    plain(Command::ShowHidden, "Show all hidden buffers"),
    plain(Command::Units, "Units: powers of 1024 or 1000"),
    plain(Command::Look(ThemeChoice::System), "Theme: same as the desktop"),
    plain(Command::Look(ThemeChoice::Light), "Theme: light"),
    plain(Command::Look(ThemeChoice::Dark), "Theme: dark"),
    plain(Command::Look(ThemeChoice::ContrastLight), "Theme: high contrast, light"),
    plain(Command::Look(ThemeChoice::ContrastDark), "Theme: high contrast, dark"),
    plain(Command::Help(HelpPage::Dump), "How do I get a dump?"),
    plain(Command::Help(HelpPage::Problem), "Report a problem"),
    plain(Command::Help(HelpPage::About), "About Highwater: versions"),
    plain(Command::SaveSession, "Save session as\u{2026}"),
    plain(Command::Compare, "Compare with a file\u{2026}"),
    plain(Command::FollowFolder, "Follow a folder\u{2026}"),
    plain(Command::Follow, "Follow this folder, or stop following it"),
    plain(Command::Reload, "Read this file again"),
    plain(Command::Sample, "Open the sample"),
];

/// Other words by which a command is looked for.
#[must_use]
pub const fn also_called(command: Command) -> &'static str {
    match command {
        Command::Compare => "diff, difference, against, before and after",
        _ => "",
    }
}

/// A command's shortcut as text; empty if it has none.
#[must_use]
pub fn keys_of(command: Command) -> &'static str {
    COMMANDS.iter().find(|entry| entry.command == command).map_or("", |entry| entry.keys)
}

/// The commands whose shortcuts were pressed in this frame. Keys without modifiers belong to a text field while it has
/// the focus; function keys and Esc never do.
pub fn pressed(ctx: &egui::Context) -> Vec<Command> {
    let typing = !keys::are_free(ctx);
    let is_free = |entry: &&Entry| {
        !typing
            || entry.modifiers.command
            || entry.modifiers.alt
            || matches!(entry.key, Some(Key::Escape | Key::F1 | Key::F3 | Key::F5 | Key::F6 | Key::F12))
    };
    ctx.input_mut(|input| {
        let entries = COMMANDS.iter().filter(is_free);
        let pressed = entries.filter(|entry| entry.key.is_some_and(|key| input.consume_key(entry.modifiers, key)));
        let mut pressed: Vec<Command> = pressed.map(|entry| entry.command).collect();
        // A letter typed in the same frame as the key that opens a field belongs to that field.
        if pressed.iter().any(|command| matches!(command, Command::Palette | Command::Find)) {
            let is_letter = |command: &Command| {
                COMMANDS.iter().any(|entry| {
                    entry.command == *command
                        && entry.modifiers.is_none()
                        && entry.key.is_some_and(|key| key.name().chars().count() == 1)
                })
            };
            pressed.retain(|command| !is_letter(command));
        }
        if !typing && input.consume_key(Modifiers::NONE, Key::Menu) {
            pressed.push(Command::Menu);
        }
        pressed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_commands_have_the_same_keys_and_no_later_one_is_shadowed() {
        for (i, entry) in COMMANDS.iter().enumerate() {
            for later in &COMMANDS[i + 1..] {
                assert_ne!(entry.command, later.command);
                assert_ne!(entry.words, later.words);
                if entry.key.is_some() && entry.key == later.key {
                    assert!(!later.modifiers.matches_logically(entry.modifiers), "{} takes {}", entry.keys, later.keys);
                }
            }
        }
    }
}
