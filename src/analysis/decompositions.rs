//! Decompositions of matrices that the compiler has of its own: it chooses the layout of what they take and make, and the
//! shape of a matrix is not for them to change.

use crate::model::{BufferId, FastMap, InstructionId, NO_ROW, Opcode, Program};

/// By the targets of their calls, in words.
const TARGETS: [(&str, &str); 4] = [
    ("Cholesky", "the Cholesky decomposition"),
    ("TriangularSolve", "the triangular solve"),
    ("Qr", "the QR decomposition"),
    ("LuDecompositionBlock", "the LU decomposition"),
];

/// The decompositions of a program.
#[derive(Debug, Default)]
pub struct Decompositions {
    /// What makes an array or takes it as it is, in words, by the instruction that computes the array.
    of: FastMap<InstructionId, &'static str>,
}

impl Decompositions {
    /// Looks for the calls of a program.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let mut of = FastMap::default();
        for at in program.instructions.ids() {
            let Some(words) = decomposes(program, at) else { continue };
            of.insert(at, words);
            for &row in program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW) {
                of.entry(InstructionId(row)).or_insert(words);
            }
        }
        Self { of }
    }

    /// The decomposition that makes a buffer or takes it as it is, in words.
    #[must_use]
    pub fn of_buffer(&self, program: &Program, buffer: BufferId) -> Option<&'static str> {
        self.of.get(&program.buffers.instruction_of(buffer)?).copied()
    }

    /// The decomposition that makes or takes most of some buffers, in words.
    #[must_use]
    pub fn of_most(&self, program: &Program, buffers: &[BufferId]) -> Option<&'static str> {
        let mut found = buffers.iter().filter_map(|&buffer| self.of_buffer(program, buffer));
        let first = found.next()?;
        (2 * (1 + found.count()) > buffers.len()).then_some(first)
    }
}

/// What a call of a decomposition is, in words.
fn decomposes(program: &Program, at: InstructionId) -> Option<&'static str> {
    if program.instructions.opcode.get(at.index()) != Some(&Opcode::CUSTOM_CALL) {
        return None;
    }
    let target = program.text.custom_call_target(at);
    TARGETS.iter().find(|known| known.0.eq_ignore_ascii_case(&target)).map(|known| known.1)
}
