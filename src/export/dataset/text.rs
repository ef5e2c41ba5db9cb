//! A table as text: CSV (RFC 4180), TSV, or JSON with an object on each line.

use std::io::{self, Write};

use super::chunk::{Cell, Chunk};
use super::schema::{Kind, Table};

/// How rows are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Csv,
    Tsv,
    Json,
}

/// Writes the line of titles, where there is one.
pub(super) fn write_head(out: &mut impl Write, table: Table, form: Form) -> io::Result<()> {
    let names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    match form {
        Form::Csv => write!(out, "{}\r\n", names.join(",")),
        Form::Tsv => writeln!(out, "{}", names.join("\t")),
        Form::Json => Ok(()),
    }
}

/// Writes rows.
pub(super) fn write_rows(out: &mut impl Write, chunk: &Chunk, form: Form) -> io::Result<()> {
    let columns = chunk.table().columns();
    for row in 0..chunk.rows() {
        if form == Form::Json {
            out.write_all(b"{")?;
        }
        for (place, column) in columns.iter().enumerate() {
            let cell = chunk.cell(place, row);
            match form {
                Form::Csv => {
                    out.write_all(if place > 0 { b"," } else { b"" })?;
                    write_csv(out, cell, column.kind)?;
                }
                Form::Tsv => {
                    out.write_all(if place > 0 { b"\t" } else { b"" })?;
                    write_tsv(out, cell, column.kind)?;
                }
                Form::Json => {
                    write!(out, "{}\"{}\":", if place > 0 { "," } else { "" }, column.name)?;
                    write_json(out, cell, column.kind)?;
                }
            }
        }
        out.write_all(match form {
            Form::Csv => b"\r\n",
            Form::Tsv => b"\n",
            Form::Json => b"}\n",
        })?;
    }
    Ok(())
}

fn write_csv(out: &mut impl Write, cell: Cell<'_>, kind: Kind) -> io::Result<()> {
    match cell {
        Cell::Text(text) if text.contains(['"', ',', '\n', '\r']) => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        cell => write_plain(out, cell, kind),
    }
}

fn write_tsv(out: &mut impl Write, cell: Cell<'_>, kind: Kind) -> io::Result<()> {
    match cell {
        Cell::Text(text) if text.contains(['\t', '\n', '\r']) => {
            out.write_all(text.replace(['\t', '\n', '\r'], " ").as_bytes())
        }
        cell => write_plain(out, cell, kind),
    }
}

fn write_plain(out: &mut impl Write, cell: Cell<'_>, kind: Kind) -> io::Result<()> {
    match cell {
        Cell::Null => Ok(()),
        Cell::Text(text) => out.write_all(text.as_bytes()),
        Cell::Int(ms) if kind == Kind::Time => out.write_all(time(ms).as_bytes()),
        Cell::Int(number) => write!(out, "{number}"),
        Cell::Bool(is) => write!(out, "{is}"),
    }
}

fn write_json(out: &mut impl Write, cell: Cell<'_>, kind: Kind) -> io::Result<()> {
    match cell {
        Cell::Null => out.write_all(b"null"),
        Cell::Text(text) => serde_json::to_writer(out, text).map_err(io::Error::from),
        Cell::Int(_) if kind == Kind::Time => {
            out.write_all(b"\"")?;
            write_plain(out, cell, kind)?;
            out.write_all(b"\"")
        }
        cell => write_plain(out, cell, kind),
    }
}

/// A time in ISO 8601, UTC: `2026-03-01T12:30:05.250Z`.
fn time(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // Years that begin in March, so that the leap day is the last (Howard Hinnant, `civil_from_days`).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, rest) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{rest:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(time(1_772_368_205_250), "2026-03-01T12:30:05.250Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59.999Z");
    }
}
