//! `*-buffer-info.csv`: buffers of one heap with offset, size, definition and end.

use super::assemble::{Assembler, Named, lines, module_name};
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{Allocation, Bytes, MemorySpace, NO_ROW, Profile, ReportedRanges, ReportedSpace, ReportedUse};
use crate::source::Input;

/// The table of buffers.
pub struct BufferInfoDecoder;

const HEAD: &str = "buffer_id,buffer_name,offset,size,definition_time,end_time";

/// Program points beyond this come from damaged text.
const MAX_POINTS: u32 = 50_000_000;

impl Decoder for BufferInfoDecoder {
    fn format(&self) -> &'static str {
        "XLA buffer table (CSV)"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::XlaDump, words: "XLA's table of buffers", patterns: &["*-buffer-info.csv"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        input.head().trim_ascii_start().starts_with(HEAD.as_bytes())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let text = String::from_utf8_lossy(&bytes);
        let name = module_name(input.file_name());
        let mut assembler = Assembler::new(&name);
        let mut rows = Vec::new();
        for (at, line) in lines(&text) {
            if line.trim().is_empty() || line.trim_start().starts_with("buffer_id,") {
                continue;
            }
            match parse(line) {
                Some(row) => rows.push(row),
                None => context.reporter.warn("a line is not a buffer", Some(at)),
            }
        }
        if rows.is_empty() {
            return Err(DecodeError::Empty("a buffer table without buffers".to_owned()));
        }
        let size = rows.iter().map(|row| row.offset.saturating_add(row.size)).max().unwrap_or(0);
        let allocation = assembler.allocation(Allocation { size: Bytes(size), ..Allocation::default() });
        let points = rows.iter().map(|row| row.end).max().unwrap_or(0).min(MAX_POINTS);
        let mut ranges = Vec::new();
        let mut sequence = vec![NO_ROW; points as usize];
        let mut uses = Vec::new();
        for row in rows {
            let named = Named { name: row.name.clone(), ..Named::default() };
            let buffer = assembler.buffer(row.number, Bytes(row.size), MemorySpace::HBM, named);
            assembler.assign(allocation, buffer, row.offset);
            ranges.push(Some((row.start.min(points), row.end.min(points))));
            if let Some(place) = sequence.get_mut(row.start as usize)
                && *place == NO_ROW
            {
                *place = assembler.instruction(Named { name: row.name, ..Named::default() });
            }
            uses.extend(row.uses.into_iter().map(|text| ReportedUse { buffer, text }));
        }
        let program = assembler.program();
        program.reported_ranges = Some(ReportedRanges { points, sequence, ranges });
        program.reported = vec![ReportedSpace::default()];
        program.reported_uses = uses;
        context
            .reporter
            .info("This table holds one heap and does not say in which memory space it lies; it is shown as the first");
        Ok(Profile { name, programs: vec![assembler.finish()], ..Profile::default() })
    }
}

#[derive(Debug, PartialEq)]
struct Row {
    number: i64,
    name: String,
    offset: u64,
    size: u64,
    start: u32,
    end: u32,
    uses: Vec<String>,
}

/// `id,name,offset,size,definition,end,uses,times,names`; names may be quoted, lists stand between semicolons.
fn parse(line: &str) -> Option<Row> {
    let mut fields = fields(line).into_iter();
    let number = fields.next()?.trim().parse().ok()?;
    let name = fields.next()?.trim().to_owned();
    let offset = fields.next()?.trim().parse().ok()?;
    let size = fields.next()?.trim().parse().ok()?;
    let start = fields.next()?.trim().parse().ok()?;
    let end = fields.next()?.trim().parse().ok()?;
    let names = fields.nth(2).unwrap_or_default();
    let uses = names.split(';').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(Row { number, name, offset, size, start, end, uses })
}

/// Fields between commas outside of quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => {
                if let Some(last) = fields.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_quotes() {
        let row = parse("12,\"a{0,1}\",256,512,3,9,2,4;9,\"b;c\"").expect("a row");
        assert_eq!((row.number, row.name.as_str(), row.offset, row.size), (12, "a{0,1}", 256, 512));
        assert_eq!((row.start, row.end), (3, 9));
        assert_eq!(row.uses, ["b", "c"]);
        assert!(parse("x,a,1,2,3,4").is_none());
    }
}
