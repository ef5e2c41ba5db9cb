//! Arrays in a layout that a program can hardly change: what the compiler's decompositions of matrices, convolutions,
//! kernels and attention take and make.

use crate::analysis::flow::product::is_kernel;
use crate::analysis::flow::softmax::Softmax;
use crate::analysis::flow::{Value, handed_on};
use crate::analysis::names::lookup::is_convolution;
use crate::model::{BufferId, FastMap, InstructionId, NO_ROW, Opcode, Program, outline};

/// Decompositions by the targets of their calls, in words.
const TARGETS: [(&str, &str); 4] = [
    ("Cholesky", "the Cholesky decomposition"),
    ("TriangularSolve", "the triangular solve"),
    ("Qr", "the QR decomposition"),
    ("LuDecompositionBlock", "the LU decomposition"),
];

/// Most copies and views between what is computed and what takes it.
const MOST_COPIES: usize = 8;

/// What a convolution is called in words.
pub const CONVOLUTION: &str = "a convolution";

/// What a kernel of the program's own is called in words.
pub const KERNEL: &str = "a kernel";

/// What attention is called in words.
pub const ATTENTION: &str = "attention";

/// The arrays of a program whose layout the compiler chooses.
#[derive(Debug)]
pub struct ChosenLayouts {
    /// What decomposes an array, in words, by the instruction that computes the array.
    decomposed: FastMap<InstructionId, &'static str>,
    /// Instructions whose results a convolution or a kernel makes or takes, with which it is.
    fixed: FastMap<InstructionId, &'static str>,
}

impl ChosenLayouts {
    /// Looks for them. It reads the name of every operation, which takes some milliseconds for a large program.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let (mut decomposed, mut fixed) = (FastMap::default(), FastMap::default());
        for at in program.instructions.ids() {
            let decomposes = decomposes(program, at);
            let words = match decomposes {
                Some(words) => words,
                // Its operands and results are in rows, whatever that takes.
                None if is_kernel(program, at) => KERNEL,
                None if is_convolution(&program.text.op_name(at)) => CONVOLUTION,
                None => continue,
            };
            let of = if decomposes.is_some() { &mut decomposed } else { &mut fixed };
            of.insert(at, words);
            for &row in program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW) {
                // What is taken, and what it is a copy of, step by step.
                let mut taken = Some(Value::whole(InstructionId(row)));
                for _ in 0..MOST_COPIES {
                    let Some(value) = taken else { break };
                    of.entry(value.at).or_insert(words);
                    taken = handed_on(program, &value);
                }
            }
        }
        Self { decomposed, fixed }
    }

    /// The decomposition of matrices that makes a buffer or takes it as it is, in words.
    #[must_use]
    pub fn decomposed_by(&self, program: &Program, buffer: BufferId) -> Option<&'static str> {
        self.decomposed.get(&program.buffers.instruction_of(buffer)?).copied()
    }

    /// What makes a buffer or takes it as it is, in the layout that it needs, in words.
    #[must_use]
    pub fn of_buffer(&self, program: &Program, softmax: &Softmax, buffer: BufferId) -> Option<&'static str> {
        let at = program.buffers.instruction_of(buffer)?;
        let are_scores = || {
            let outline = program.buffer_node(buffer).map(|node| outline(&node.dimensions));
            outline.is_some_and(|outline| {
                softmax.are_whole_scores(&outline)
                    || softmax.are_batched(&outline)
                    || softmax.short_scores.contains(&outline)
            })
        };
        self.decomposed_by(program, buffer)
            .or_else(|| self.fixed.get(&at).copied())
            .or_else(|| are_scores().then_some(ATTENTION))
    }

    /// What makes or takes most of some buffers, in words.
    #[must_use]
    pub fn of_most(&self, program: &Program, softmax: &Softmax, buffers: &[BufferId]) -> Option<&'static str> {
        let mut found = buffers.iter().filter_map(|&buffer| self.of_buffer(program, softmax, buffer));
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
