//! `*-buffer-assignment.txt`: every allocation with its buffers, exact sizes and offsets; libtpu's form and jaxlib's.

use super::assemble::{Assembler, Named, lines, module_name};
use super::values;
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{Allocation, Bytes, MemorySpace, Profile, Program, ReportedSpace, Shape};
use crate::source::Input;

/// The buffer-assignment report.
pub struct BufferAssignmentDecoder;

const HEAD: &[u8] = b"BufferAssignment:";

impl Decoder for BufferAssignmentDecoder {
    fn format(&self) -> &'static str {
        "XLA buffer-assignment report"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "XLA's buffer assignment, as text",
            patterns: &["*buffer-assignment.txt"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        input.head().trim_ascii_start().starts_with(HEAD)
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let text = String::from_utf8_lossy(&bytes);
        let name = module_name(input.file_name());
        let program = parse(&text, &name, context);
        if program.allocations.is_empty() {
            return Err(DecodeError::Empty("a buffer assignment without allocations".to_owned()));
        }
        context.reporter.info(
            "This report has no heap events, so the time of the peak is unknown; the live-range report or the \
             HLO proto beside it has them",
        );
        Ok(Profile { name, programs: vec![program], ..Profile::default() })
    }
}

/// Reads the whole report.
pub fn parse(text: &str, name: &str, context: Context<'_>) -> Program {
    let mut assembler = Assembler::new(name);
    let mut current = None;
    let mut rest = None;
    for (at, line) in lines(text) {
        if let Some(head) = line.strip_prefix("allocation ") {
            current = allocation(head).map(|allocation| assembler.allocation(allocation));
            if current.is_none() {
                context.reporter.warn("an allocation's line is not of the known form", Some(at));
            }
        } else if let Some(value) = line.strip_prefix(" value: <") {
            match (current, value_row(value)) {
                (Some(allocation), Some(row)) => {
                    let named = Named { name: row.name, shape: row.shape, ..Named::default() };
                    let buffer = assembler.buffer(row.number, row.size, row.color, named);
                    assembler.assign(allocation, buffer, row.offset);
                }
                (None, _) => {}
                (_, None) => context.reporter.warn("a value's line is not of the known form", Some(at)),
            }
        } else if line.starts_with("Total bytes used:") || line == "Used values:" {
            rest = Some(at);
            break;
        } else if !line.is_empty() && !line.starts_with("BufferAssignment:") {
            context.reporter.warn("a line is neither an allocation nor a value", Some(at));
        }
    }
    assembler.program().reported = reported(assembler.program());
    let mut program = assembler.finish();
    // jaxlib may write the uses behind the allocations.
    if let Some(at) = rest.and_then(|at| usize::try_from(at).ok()) {
        let uses = values::parse(text.get(at..).unwrap_or(""));
        values::attach(&mut program, &uses);
    }
    program
}

/// One row for each memory space: sums are computed from the allocations, the peak is not known.
fn reported(program: &Program) -> Vec<ReportedSpace> {
    let mut colors: Vec<MemorySpace> = program.allocations.iter().map(|allocation| allocation.color).collect();
    colors.sort_unstable();
    colors.dedup();
    colors.into_iter().map(|color| ReportedSpace { color, ..ReportedSpace::default() }).collect()
}

/// Parses the line of an allocation after `allocation `.
pub fn allocation(head: &str) -> Option<Allocation> {
    let (index, rest) = head.split_once(": size ")?;
    let mut allocation = Allocation { index: index.parse().ok()?, ..Allocation::default() };
    let size_end = rest.find([',', ':']).unwrap_or(rest.len());
    let (size, rest) = rest.split_at(size_end);
    allocation.size = size.trim().parse().ok().map(Bytes).or_else(|| super::assemble::human_bytes(size))?;
    // Shapes stand between bars and may hold anything; what is outside of them tells the properties.
    let mut outside = String::with_capacity(rest.len());
    for (i, part) in rest.split('|').enumerate() {
        if i % 2 == 0 {
            outside.push_str(part);
        }
    }
    for property in outside.trim_end_matches(':').split(", ") {
        let property = property.trim();
        if let Some(color) = property.strip_prefix("color ") {
            allocation.color = MemorySpace(color.parse().ok()?);
        } else if let Some(number) = property.strip_prefix("parameter ") {
            allocation.is_parameter = true;
            allocation.parameter_number = number.parse().ok()?;
        } else if let Some((_, index)) = property.split_once("at ShapeIndex {") {
            allocation.parameter_shape_index =
                index.trim_end_matches('}').split(',').filter_map(|n| n.trim().parse().ok()).collect();
        } else {
            match property {
                "constant" => allocation.is_constant = true,
                "thread-local" => allocation.is_thread_local = true,
                "maybe-live-out" => allocation.maybe_live_out = true,
                _ => {}
            }
        }
    }
    Some(allocation)
}

struct ValueRow {
    number: i64,
    name: String,
    color: MemorySpace,
    size: Bytes,
    offset: u64,
    shape: Option<Shape>,
}

/// Parses the line of a value after ` value: <`.
fn value_row(line: &str) -> Option<ValueRow> {
    let (head, rest) = line.split_once("> (size=")?;
    let (number, name, color) = value_head(head)?;
    let (size, rest) = rest.split_once(",offset=")?;
    let (offset, shape) = rest.split_once("): ")?;
    Some(ValueRow {
        number,
        name,
        color,
        size: Bytes(size.parse().ok()?),
        offset: offset.parse().ok()?,
        shape: Shape::parse(shape),
    })
}

/// `ID NAME [(phi)] @COLOUR` as (number, name without an empty index, colour).
pub fn value_head(head: &str) -> Option<(i64, String, MemorySpace)> {
    let (number, rest) = head.split_once(' ')?;
    let (name, color) = rest.rsplit_once(" @")?;
    // A value that merges those of several places is marked so.
    let name = name.trim().trim_end_matches(" (phi)");
    let name = name.strip_suffix("{}").unwrap_or(name).to_owned();
    Some((number.parse().ok()?, name, MemorySpace(color.trim().parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_of_an_allocation() {
        let a = allocation("7: size 512B, output shape is |(f32[2,1], constant)|, maybe-live-out:").expect("a line");
        assert!(a.maybe_live_out && !a.is_constant);
        assert_eq!(a.size, Bytes(512));
        let a = allocation("26: size 40894464, color 3, page 0, preallocated-temp:").expect("a line");
        assert_eq!((a.index, a.size, a.color), (26, Bytes(40_894_464), MemorySpace::CMEM));
        let a = allocation("1: size 8, page 0, parameter 3, shape |f32[2]| at ShapeIndex {1,0}, maybe-live-out:");
        let a = a.expect("a line");
        assert!(a.is_parameter && a.maybe_live_out);
        assert_eq!((a.parameter_number, &a.parameter_shape_index[..]), (3, &[1, 0][..]));
        assert!(allocation("x: size 3:").is_none());
    }

    #[test]
    fn the_parts_of_a_value() {
        let row = value_row("257 tuple.2{} @0> (size=48,offset=16): (f32[2]{0}, /*index=1*/u32[])").expect("a row");
        assert_eq!(
            (row.number, row.name.as_str(), row.color, row.size, row.offset),
            (257, "tuple.2", MemorySpace::HBM, Bytes(48), 16)
        );
        assert!(row.shape.is_some());
        let row = value_row("2189 p.34{} (phi) @0> (size=512,offset=8): (s32[])").expect("a row");
        assert_eq!((row.name.as_str(), row.offset), ("p.34", 8));
        let row = value_row("294 copy-start.1{0} @1> (size=4,offset=0): odd").expect("a row");
        assert_eq!((row.name.as_str(), row.shape), ("copy-start.1{0}", None));
    }
}
