//! Requested instructions as HLO text, with their operands.

use std::fmt::Write as _;

use serde::Serialize;

use super::Options;
use crate::analysis::hlo_text::{instruction_named, instruction_text, operands};
use crate::export::document::{Document, Line};
use crate::model::Program;

/// A requested instruction.
#[derive(Debug, Serialize)]
pub struct InstructionReport {
    /// The name requested.
    pub name: String,
    /// Its line of HLO text; `null` if the program has no instruction of this name.
    pub text: Option<String>,
    /// HLO text of its operands, in order.
    pub operands: Vec<String>,
}

/// Looks up the requested instructions.
pub fn reports(program: &Program, options: &Options) -> Vec<InstructionReport> {
    let report = |name: &String| {
        let found = instruction_named(program, name);
        let operands = found.map(|found| operands(program, found)).unwrap_or_default();
        InstructionReport {
            name: name.clone(),
            text: found.map(|found| instruction_text(program, found)),
            operands: operands.into_iter().map(|operand| instruction_text(program, operand)).collect(),
        }
    };
    options.instructions.iter().map(report).collect()
}

impl InstructionReport {
    /// Writes the instruction as text, its operands indented.
    pub fn write_text(&self, out: &mut String) {
        let Some(text) = &self.text else {
            let _ = writeln!(out, "  no instruction {}", self.name);
            return;
        };
        let _ = writeln!(out, "  {text}");
        for operand in &self.operands {
            let _ = writeln!(out, "    {operand}");
        }
    }

    /// Adds the same to a document.
    pub fn document(&self, out: &mut Document) {
        let Some(text) = &self.text else {
            out.paragraph(Line::from("No instruction ").then_code(&self.name));
            return;
        };
        let lines: Vec<&str> = std::iter::once(text).chain(&self.operands).map(String::as_str).collect();
        out.code(lines.join("\n  "));
    }
}
