//! The most recently pressed keys in words, for viewers of a shared screen.

use egui::{Key, Modifiers};

/// Seconds for which pressed keys are shown.
pub const STAY: f64 = 1.8;

/// The most recently pressed keys.
#[derive(Debug, Default)]
pub struct PressedKeys {
    pub words: String,
    pub times: u32,
    pub until: f64,
}

impl PressedKeys {
    /// Records a key pressed at `now` seconds; repeated presses while it is shown are counted.
    pub fn note(&mut self, key: Key, modifiers: Modifiers, now: f64) {
        let words = words_of(key, modifiers);
        self.times = if self.words == words && now < self.until { self.times + 1 } else { 1 };
        self.words = words;
        self.until = now + STAY;
    }
}

fn words_of(key: Key, modifiers: Modifiers) -> String {
    let mut words = Vec::new();
    for (held, name) in [(modifiers.command, "Ctrl"), (modifiers.alt, "Alt"), (modifiers.shift, "Shift")] {
        if held {
            words.push(name);
        }
    }
    words.push(key.symbol_or_name());
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_in_the_sheet() {
        assert_eq!(words_of(Key::P, Modifiers::COMMAND), "Ctrl P");
        assert_eq!(words_of(Key::F5, Modifiers::NONE), "F5");
        assert_eq!(words_of(Key::Tab, Modifiers::COMMAND.plus(Modifiers::SHIFT)), "Ctrl Shift Tab");
    }
}
