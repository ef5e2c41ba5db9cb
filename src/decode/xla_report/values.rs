//! `*-buffer-assignment-values.txt`: the uses of every value, found only in this report.

use std::collections::HashMap;

use super::assemble::{Assembler, Named, lines, module_name};
use super::buffer_assignment::value_head;
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{BufferId, Bytes, MemorySpace, Metadata, Profile, Program, ReportedUse, Shape, SourceLine};
use crate::source::Input;

/// The report of values and their uses.
pub struct ValuesDecoder;

/// One value.
#[derive(Debug, Default, Clone)]
pub struct ValueUses {
    /// Number of the logical buffer.
    pub number: i64,
    /// `instruction` or `instruction{i}`.
    pub name: String,
    /// Memory space.
    pub color: MemorySpace,
    /// Where it stands.
    pub positions: Vec<String>,
    /// Who reads it: `fusion.5, operand 2 {0}`.
    pub uses: Vec<String>,
    /// The defining instruction's line.
    pub instruction: String,
}

impl Decoder for ValuesDecoder {
    fn format(&self) -> &'static str {
        "XLA report of values and uses"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "XLA's values and their uses, as text",
            patterns: &["*buffer-assignment-values.txt"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        let head = input.head().trim_ascii_start();
        (head.starts_with(b"Total bytes used:") || head.starts_with(b"Used values:"))
            && memchr::memmem::find(&head[..head.len().min(512)], b"Used values:").is_some()
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let text = String::from_utf8_lossy(&bytes);
        let values = parse(&text);
        if values.is_empty() {
            return Err(DecodeError::Empty("a report of values without values".to_owned()));
        }
        let name = module_name(input.file_name());
        let mut assembler = Assembler::new(&name);
        for value in &values {
            let (shape, opcode, metadata) = instruction_line(&value.instruction, &value.name);
            // The report has no sizes.
            assembler.buffer(
                value.number,
                Bytes::ZERO,
                value.color,
                Named { name: value.name.clone(), shape, opcode, metadata },
            );
        }
        let mut program = assembler.finish();
        program.has_buffer_assignment = false;
        attach(&mut program, &values);
        context.reporter.info(format!(
            "This report names {} values and their uses, but no sizes; open the buffer-assignment report or the HLO \
             proto of the same module",
            values.len()
        ));
        Ok(Profile { name, programs: vec![program], ..Profile::default() })
    }
}

/// Reads the report; lines of no known form are passed over.
pub fn parse(text: &str) -> Vec<ValueUses> {
    let mut values: Vec<ValueUses> = Vec::new();
    let mut in_uses = false;
    for (_, line) in lines(text) {
        if let Some(head) = line.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            if let Some((number, name, color)) = value_head(head) {
                values.push(ValueUses { number, name, color, ..ValueUses::default() });
            }
            in_uses = false;
        } else if let Some(value) = values.last_mut() {
            if line == " positions:" {
                in_uses = false;
            } else if line == " uses:" {
                in_uses = true;
            } else if let Some(instruction) = line.strip_prefix(" from instruction: ") {
                value.instruction = instruction.to_owned();
            } else if let Some(place) = line.strip_prefix("  ")
                && place != "(none)"
            {
                let list = if in_uses { &mut value.uses } else { &mut value.positions };
                list.push(place.to_owned());
            }
        }
    }
    values
}

/// Adds the uses to the buffers of the same number.
pub fn attach(program: &mut Program, values: &[ValueUses]) {
    let rows: HashMap<i64, u32> =
        program.buffers.number.iter().enumerate().map(|(row, &number)| (number, row as u32)).collect();
    let mut uses = Vec::new();
    for value in values {
        let Some(&row) = rows.get(&value.number) else { continue };
        uses.extend(value.uses.iter().map(|text| ReportedUse { buffer: BufferId(row), text: text.clone() }));
    }
    uses.sort_by_key(|reader: &ReportedUse| reader.buffer);
    program.reported_uses = uses;
}

/// Shape, opcode and metadata of `%name = shape opcode(…), metadata={op_name="…" source_file="…" source_line=N}`. The
/// shape is that of the whole value, so only a value without index has it.
fn instruction_line(line: &str, name: &str) -> (Option<Shape>, String, Metadata) {
    let mut metadata = Metadata::default();
    let Some((_, rest)) = line.split_once(" = ") else { return (None, String::new(), metadata) };
    let Some((shape, rest)) = Shape::parse_prefix(rest) else { return (None, String::new(), metadata) };
    let opcode = rest.trim_start().split('(').next().unwrap_or_default().to_owned();
    if let Some(at) = rest.find("metadata={") {
        let inside = &rest[at..];
        metadata.op_name = quoted(inside, "op_name=\"").unwrap_or_default();
        if let Some(file) = quoted(inside, "source_file=\"") {
            let line = inside
                .split_once("source_line=")
                .and_then(|(_, number)| {
                    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
                    number[..end].parse().ok()
                })
                .unwrap_or(0);
            metadata.source = Some(SourceLine { file, line, ..SourceLine::default() });
        }
    }
    (if name.ends_with('}') { None } else { Some(shape) }, opcode, metadata)
}

fn quoted(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(key)?;
    let end = rest.find('"')?;
    Some(rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_uses() {
        let text = "\nTotal bytes used: 12 (12B)\n\nUsed values:\n<0 a.3 @0>\n positions:\n  a.3\n  t.2 {6}\n uses:\n  b.5, \
                    operand 0\n  c, operand 1 {0}\n from instruction: %a.3 = f32[2]{0} add(%x, %y), \
                    metadata={op_name=\"jit(f)/add\" source_file=\"m.py\" source_line=12}\n<1 c{} @1>\n positions:\n  \
                    c {}\n uses:\n  (none)\n";
        let values = parse(text);
        assert_eq!(values.len(), 2);
        assert_eq!(values[0].uses, ["b.5, operand 0", "c, operand 1 {0}"]);
        assert_eq!(values[0].positions, ["a.3", "t.2 {6}"]);
        assert!(values[1].uses.is_empty());
        let (shape, opcode, metadata) = instruction_line(&values[0].instruction, "a.3");
        assert_eq!(shape.map(|shape| shape.to_string()).as_deref(), Some("f32[2]{0}"));
        assert_eq!((opcode.as_str(), metadata.op_name.as_str()), ("add", "jit(f)/add"));
        assert_eq!(metadata.source.map(|source| (source.file, source.line)), Some(("m.py".to_owned(), 12)));
    }
}
