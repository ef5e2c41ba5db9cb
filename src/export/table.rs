//! Exports rows of the buffer table as TSV, Markdown, JSON or CSV, with our column names or XProf's. Sizes are exact.

use std::fmt::Write as _;

use crate::analysis::table::{BufferTable, Column};

/// Format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tab-separated values after a line of titles.
    Tsv,
    /// A Markdown table.
    Markdown,
    /// A JSON array of objects.
    Json,
    /// RFC 4180, sizes in bytes.
    Csv,
    /// RFC 4180 with the columns of XProf's "Download max heap data": sizes in MiB.
    XprofCsv,
}

impl Form {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Tsv, Self::Markdown, Self::Json, Self::Csv, Self::XprofCsv];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsv => "TSV",
            Self::Markdown => "Markdown",
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::XprofCsv => "CSV with XProf's columns",
        }
    }
}

/// Exported title of a column, with its unit.
#[must_use]
pub const fn title(column: Column) -> &'static str {
    match column {
        Column::Name => "name",
        Column::Size => "size_bytes",
        Column::Useful => "unpadded_bytes",
        Column::Padding => "padding_bytes",
        Column::Share => "padding_percent",
        Column::Class => "class",
        Column::Category => "category",
        Column::Type => "element_type",
        Column::Shape => "shape",
        Column::Opcode => "op_kind",
        Column::Op => "op_name",
        Column::Source => "source",
        Column::From => "from",
        Column::To => "to",
        Column::Length => "steps",
        Column::Life => "life",
        Column::Offset => "offset",
        Column::Allocation => "allocation",
    }
}

/// Exported value: numbers stay numbers, an unknown value is empty.
#[must_use]
pub fn value(table: &BufferTable, column: Column, row: usize) -> serde_json::Value {
    use serde_json::Value;
    let point = |point: u32| if point == u32::MAX { Value::Null } else { point.into() };
    match column {
        Column::Name => table.name.at(row).into(),
        Column::Size => table.size[row].into(),
        Column::Useful => (table.size[row] as i64).saturating_sub(table.padding[row]).into(),
        Column::Padding => table.padding[row].into(),
        Column::Share => {
            let share = 100.0 * table.padding[row] as f64 / table.size[row].max(1) as f64;
            ((share * 100.0).round() / 100.0).into()
        }
        Column::Class => table.class[row].name().into(),
        Column::Category => table.category[row].name().into(),
        Column::From => point(table.start[row]),
        Column::To => point(table.end[row]),
        Column::Length => table.steps(row).map_or(Value::Null, Into::into),
        Column::Life if table.start[row] == u32::MAX => Value::Null,
        Column::Life => format!("{} to {}", table.start[row], table.end[row]).into(),
        Column::Offset => table.offset[row].into(),
        Column::Allocation => table.allocation[row].into(),
        Column::Type | Column::Shape | Column::Opcode | Column::Op | Column::Source => {
            table.words(column).map_or("", |words| words.at(row)).into()
        }
    }
}

/// Writes rows with their columns.
#[must_use]
pub fn write(table: &BufferTable, columns: &[Column], rows: &[u32], form: Form) -> String {
    let words = |column: Column, row: u32| match value(table, column, row as usize) {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(words) => words,
        number => number.to_string(),
    };
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = String>, before: &str, between: &str, after: &str| {
        out.push_str(before);
        for (i, cell) in cells.enumerate() {
            if i > 0 {
                out.push_str(between);
            }
            out.push_str(&cell);
        }
        out.push_str(after);
        out.push('\n');
    };
    match form {
        Form::Tsv => {
            line(&mut columns.iter().map(|c| title(*c).to_owned()), "", "\t", "");
            for &row in rows {
                line(&mut columns.iter().map(|c| words(*c, row).replace(['\t', '\n', '\r'], " ")), "", "\t", "");
            }
        }
        Form::Markdown => {
            line(&mut columns.iter().map(|c| title(*c).to_owned()), "| ", " | ", " |");
            let rule = columns.iter().map(|c| if c.is_number() { "---:" } else { "---" }.to_owned());
            line(&mut { rule }, "| ", " | ", " |");
            for &row in rows {
                let cells = columns.iter().map(|c| words(*c, row).replace('|', "\\|").replace(['\n', '\r'], " "));
                line(&mut { cells }, "| ", " | ", " |");
            }
        }
        Form::Csv => {
            line(&mut columns.iter().map(|c| title(*c).to_owned()), "", ",", "\r");
            for &row in rows {
                line(&mut columns.iter().map(|c| quoted(words(*c, row))), "", ",", "\r");
            }
        }
        Form::XprofCsv => {
            let titles = [
                "InstructionName",
                "UnpaddedSizeMiB",
                "SizeMiB",
                "AllocAt",
                "FreeAt",
                "TfOpName",
                "OpCode",
                "Shape",
                "AllocationType",
            ];
            line(&mut titles.iter().map(|t| (*t).to_owned()), "", ",", "\r");
            let mib = |bytes: i64| (bytes as f64 / f64::from(1 << 20)).to_string();
            for &row in rows {
                let index = row as usize;
                let size = table.size[index] as i64;
                let cells = [
                    quoted(table.name.at(index).to_owned()),
                    mib(size.saturating_sub(table.padding[index])),
                    mib(size),
                    words(Column::From, row),
                    words(Column::To, row),
                    quoted(table.op.at(index).to_owned()),
                    quoted(table.opcode.at(index).to_owned()),
                    quoted(table.shape.at(index).to_owned()),
                    quoted(table.category[index].name().to_owned()),
                ];
                line(&mut cells.into_iter(), "", ",", "\r");
            }
        }
        Form::Json => {
            out.push('[');
            for (i, &row) in rows.iter().enumerate() {
                let object: serde_json::Map<String, serde_json::Value> = columns
                    .iter()
                    .map(|column| (title(*column).to_owned(), value(table, *column, row as usize)))
                    .collect();
                let _ = write!(out, "{}\n  {}", if i > 0 { "," } else { "" }, serde_json::Value::Object(object));
            }
            out.push_str("\n]\n");
        }
    }
    out
}

/// A CSV field, quoted if necessary.
fn quoted(words: String) -> String {
    if words.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", words.replace('"', "\"\"")) } else { words }
}
