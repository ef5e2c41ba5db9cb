//! The labels of the entry's arguments whose paths say too little.

use super::argument_use::{ArgumentUses, argument_uses, is_of_numbers};
use super::label::{Label, Labels};
use crate::analysis::once::once;
use crate::model::{BufferId, InstructionId, Program};

impl Labels {
    /// The label of an argument of the entry: its place where it has no path, and what it serves where its path does not
    /// say it; `None` if its path is good enough.
    pub(super) fn of_argument(&self, program: &Program, at: InstructionId, buffer: BufferId) -> Option<Label> {
        let place = program.buffer_index(buffer).first().copied().filter(|_| program.are_arguments_in_tuple);
        let path = place.map_or_else(|| program.text.op_name(at), |place| format!("args[{place}]"));
        let number = place.or_else(|| program.instructions.argument.get(at.index()).copied().map(i64::from))?;
        let of = |uses: &ArgumentUses| uses.get(&number).map(|of| format!("{path} ({of})"));
        let used = is_of_numbers(&path).then(|| of(once(&self.uses, || argument_uses(program)))).flatten();
        match (used, place) {
            (Some(text), _) => Some(Label { borrowed: path, ..Label::plain(text) }),
            (None, Some(_)) => Some(Label::plain(path)),
            (None, None) => None,
        }
    }
}

impl Label {
    /// For several equal arguments, each of which serves something else: `state[2][…]`; `None` for what is no such argument.
    #[must_use]
    pub fn of_several(&self) -> Option<String> {
        let is_used = self.text.strip_prefix(&self.borrowed).is_some_and(|rest| rest.starts_with(" ("));
        let (path, _) = self.borrowed.rsplit_once('[').filter(|_| is_used)?;
        Some(format!("{path}[\u{2026}]"))
    }
}
