//! The table of an allocation that memory-usage reports share: rows of offset, size and shapes.

use super::assemble::{Assembler, Named, human_bytes};
use crate::model::{Bytes, MemorySpace, Shape};

/// One row: all values at one offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// Largest size at the offset, rounded as printed.
    pub size: Bytes,
    /// Offset in the allocation.
    pub offset: u64,
    /// Number of values at the offset, one after the other in time.
    pub values: u64,
    /// Their shapes as printed: `2×f32[4096,4096], s32[]`.
    pub shapes: String,
}

/// Reads a row, `None` for the head of the table and everything else.
pub fn row(line: &str) -> Option<TableRow> {
    let mut parts = line.splitn(5, ';');
    let cumulative = parts.next()?;
    if !cumulative.contains('%') {
        return None;
    }
    Some(TableRow {
        size: human_bytes(parts.next()?)?,
        offset: parts.next()?.trim().parse().ok()?,
        values: parts.next()?.trim().parse().ok()?,
        shapes: parts.next()?.trim().to_owned(),
    })
}

/// Adds the rows of a table as buffers of an allocation. The report does not name them, so they are named by shape.
pub fn add_rows(assembler: &mut Assembler, allocation: u32, label: &str, color: MemorySpace, rows: &[TableRow]) {
    for row in rows {
        let first = first_shape(&row.shapes);
        // The largest value decides the size; its shape has no layout, so only one that fills it exactly is taken.
        let shape = first.filter(|shape| shape.root().unpadded_size() == row.size);
        let name = format!("{label} at {}: {}", row.offset, row.shapes);
        let number = assembler.program().buffers.len() as i64;
        let buffer = assembler.buffer(number, row.size, color, Named { name, shape, ..Named::default() });
        assembler.assign(allocation, buffer, row.offset);
    }
}

/// The first shape of `2×f32[4096,4096], s32[]`.
fn first_shape(shapes: &str) -> Option<Shape> {
    let shapes = match shapes.split_once('×') {
        Some((count, rest)) if count.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => shapes,
    };
    Shape::parse_prefix(shapes).map(|(shape, _)| shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_both_forms() {
        let text = "\t 38.15GiB(100%);   19.07GiB;            0;                3; bf16[80000000,64], 2×f32[2]";
        let found = row(text).expect("a row");
        assert_eq!((found.offset, found.values), (0, 3));
        assert_eq!(found.size, human_bytes("19.07GiB").expect("a size"));
        assert_eq!(row("  cumulative_size;       size;       offset; used_by_n_values; shapes_list"), None);
        assert_eq!(first_shape("2×f32[4096,4096], s32[]").map(|s| s.to_string()).as_deref(), Some("f32[4096,4096]"));
    }
}
