//! Custom calls whose results alias their operands: such an operand is live as long as the result.

use super::LiveRanges;
use crate::model::{FastMap, InstructionId, NO_ROW, Program};

impl LiveRanges {
    /// Last point of each buffer kept live by such a call, by buffer row.
    #[must_use]
    pub fn view_ends(&self, program: &Program) -> FastMap<u32, u32> {
        let mut ends = FastMap::default();
        let calls: Vec<u32> =
            self.flat.sequence.iter().copied().filter(|&row| program.joins_slices(InstructionId(row))).collect();
        if calls.is_empty() {
            return ends;
        }
        let buffer_of = |row: u32| {
            let position = self.values.position(&self.flat, row, 0)?;
            let buffer = self.buffer_at.get(self.values.value[position as usize] as usize).copied();
            buffer.filter(|&buffer| buffer != NO_ROW)
        };
        // Backwards, so that views of views are processed before their operands.
        for &call in calls.iter().rev() {
            let Some(result) = buffer_of(call) else { continue };
            let end = ends.get(&result).copied().unwrap_or(0).max(self.end[result as usize]);
            for &operand in program.instructions.operands_of(InstructionId(call)) {
                if operand == NO_ROW {
                    continue;
                }
                if let Some(buffer) = buffer_of(operand) {
                    let known = ends.entry(buffer).or_insert(0);
                    *known = (*known).max(end);
                }
            }
        }
        ends
    }
}
