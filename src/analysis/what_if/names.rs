//! Names of temporaries: the framework's name of the operation that makes them, a copy's by what it copies.

use std::collections::HashMap;

use crate::analysis::packing::Families;
use crate::model::{InstructionId, NO_ROW, Opcode, Program};

/// Steps after which a chain of copies is given up.
const MAX_STEPS: usize = 32;

/// Framework's names of families.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// By family.
    pub list: Vec<String>,
}

impl Names {
    /// Looks the names up.
    #[must_use]
    pub fn new(program: &Program, families: &Families) -> Self {
        let list = families
            .list
            .iter()
            .map(|family| program.buffers.instruction_of(family.root).map_or_else(String::new, |i| op_name(program, i)))
            .collect();
        Self { list }
    }

    /// Name of a family.
    #[must_use]
    pub fn of(&self, family: usize) -> &str {
        self.list.get(family).map_or("", String::as_str)
    }

    /// How many families the compiler made by rematerialising.
    #[must_use]
    pub fn rematerialised(&self, program: &Program, families: &Families) -> usize {
        let made = |i: InstructionId| program.text.instruction_name(i).contains(".remat");
        families.list.iter().filter(|family| program.buffers.instruction_of(family.root).is_some_and(made)).count()
    }
}

/// The framework's name of an instruction; a copy's, prefetch's or view's is that of its operand.
#[must_use]
pub fn op_name(program: &Program, mut instruction: InstructionId) -> String {
    for _ in 0..MAX_STEPS {
        let name = program.text.op_name(instruction);
        if !name.is_empty() {
            return name;
        }
        let Some(next) = source(program, instruction) else { break };
        instruction = next;
    }
    String::new()
}

/// Paths of the entry's arguments in the program that was compiled, by their numbers: `params['w']`.
#[must_use]
pub fn argument_paths(program: &Program) -> HashMap<i64, String> {
    let Some(entry) = program.entry.and_then(|entry| program.computations.get(entry.index())) else {
        return HashMap::new();
    };
    (entry.start..entry.end)
        .filter(|&row| program.instructions.opcode.get(row as usize) == Some(&Opcode::PARAMETER))
        .map(|row| {
            let number = i64::from(program.instructions.argument[row as usize]);
            (number, program.text.op_name(InstructionId(row)))
        })
        .collect()
}

/// What a copy, a view or an asynchronous operation takes its data from.
fn source(program: &Program, instruction: InstructionId) -> Option<InstructionId> {
    let operands = program.instructions.operands_of(instruction);
    let first = *operands.first().filter(|&&row| row != NO_ROW)?;
    match *program.instructions.opcode.get(instruction.index())? {
        Opcode::GET_TUPLE_ELEMENT => {
            if program.instructions.opcode.get(first as usize) == Some(&Opcode::TUPLE) {
                let element = program.instructions.argument[instruction.index()] as usize;
                let inner = *program.instructions.operands_of(InstructionId(first)).get(element)?;
                return (inner != NO_ROW).then_some(InstructionId(inner));
            }
            Some(InstructionId(first))
        }
        Opcode::COPY
        | Opcode::COPY_START
        | Opcode::COPY_DONE
        | Opcode::BITCAST
        | Opcode::TUPLE
        | Opcode::ASYNC_START
        | Opcode::ASYNC_UPDATE
        | Opcode::ASYNC_DONE => Some(InstructionId(first)),
        _ => None,
    }
}

/// A part of an operation's name that automatic differentiation marks: what stands in `jvp(…)`, and whether the whole
/// is of the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass<'a> {
    /// Name scope: `layer_3`; empty for the outermost.
    pub scope: &'a str,
    /// Whether it belongs to the backward pass.
    pub is_backward: bool,
}

/// Forward or backward pass of a name with `jvp(…)`; `None` for a name without.
#[must_use]
pub fn pass_of(name: &str) -> Option<Pass<'_>> {
    let at = name.find("jvp(")?;
    let rest = &name[at + 4..];
    let inner = rest.split([')', '/']).next().unwrap_or("");
    // jvp(jit(log_softmax)) only names a function; of jvp(vmap(layer_3)) the scope is inmost.
    let scope = match inner.rsplit_once('(') {
        Some((wrapper, _)) if wrapper.ends_with("jit") => "",
        Some((_, scope)) => scope,
        None => inner,
    };
    Some(Pass { scope, is_backward: name.contains("transpose(") })
}

/// Whether a name matches a pattern in which `*` stands for any text.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return name.is_empty() };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pass_is_read_from_the_name() {
        let forward = pass_of("jit(train_step)/jvp(layer_3)/attn/dot_general");
        assert_eq!(forward, Some(Pass { scope: "layer_3", is_backward: false }));
        let backward = pass_of("jit(train_step)/transpose(jvp(layer_0))/mlp/dot_general");
        assert_eq!(backward, Some(Pass { scope: "layer_0", is_backward: true }));
        let function = pass_of("jit(f)/jvp(jit(log_softmax))/sub");
        assert_eq!(function, Some(Pass { scope: "", is_backward: false }));
        assert_eq!(pass_of("jit(f)/jvp(vmap(layer_3))/sub").map(|pass| pass.scope), Some("layer_3"));
        assert_eq!(pass_of("jit(f)/jvp()/mul"), Some(Pass { scope: "", is_backward: false }));
        assert_eq!(pass_of("params['w']"), None);
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, expected) in [
            ("layer_*", "layer_12", true),
            ("layer_1", "layer_12", false),
            ("*", "", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("*_0", "block_0", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
