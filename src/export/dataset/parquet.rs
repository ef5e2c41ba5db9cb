//! A table as a Parquet file: a row group for each chunk, columns compressed with Snappy.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::chunk::{Chunk, NO_TEXT, Values};
use super::schema::{Kind, Table};

/// Name and version of the schema of the tables.
pub const SCHEMA: &str = "highwater.dataset/1";

/// A Parquet file being written.
pub(super) struct ParquetFile<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, table: Table) -> Result<Self, ParquetError> {
        let schema = Arc::new(parse_message_type(&message(table))?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("highwater version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new("schema".to_owned(), SCHEMA.to_owned())]))
            .build();
        SerializedFileWriter::new(out, schema, Arc::new(properties)).map(Self)
    }

    /// Writes rows as a row group.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, chunk: &Chunk) -> Result<(), ParquetError> {
        let mut group = self.0.next_row_group()?;
        for values in &chunk.columns {
            let Some(mut column) = group.next_column()? else { break };
            match values {
                Values::Text(texts, rows) => {
                    // One copy of the text, shared by every value.
                    let all = ByteArray::from(texts.all.clone().into_bytes());
                    let mut start = 0;
                    let each = texts.ends.iter().map(|&end| {
                        let text = all.slice(start, end - start);
                        start = end;
                        text
                    });
                    let each: Vec<ByteArray> = each.collect();
                    let known = rows.iter().filter(|&&row| row != NO_TEXT);
                    let written: Vec<ByteArray> = known.filter_map(|&row| each.get(row as usize).cloned()).collect();
                    let levels: Vec<i16> = rows.iter().map(|&row| i16::from(row != NO_TEXT)).collect();
                    column.typed::<ByteArrayType>().write_batch(&written, Some(&levels), None)?;
                }
                Values::Int(rows) => {
                    let written: Vec<i64> = rows.iter().copied().flatten().collect();
                    column.typed::<Int64Type>().write_batch(&written, Some(&levels(rows)), None)?;
                }
                Values::Bool(rows) => {
                    let written: Vec<bool> = rows.iter().copied().flatten().collect();
                    column.typed::<BoolType>().write_batch(&written, Some(&levels(rows)), None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), ParquetError> {
        self.0.close().map(|_| ())
    }
}

fn levels<T>(rows: &[Option<T>]) -> Vec<i16> {
    rows.iter().map(|value| i16::from(value.is_some())).collect()
}

/// The schema in Parquet's notation.
fn message(table: Table) -> String {
    let columns = table.columns().iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Text => ("binary", " (STRING)"),
            Kind::Int => ("int64", ""),
            Kind::Bool => ("boolean", ""),
            Kind::Time => ("int64", " (TIMESTAMP(MILLIS,true))"),
        };
        format!("optional {physical} {}{logical};", column.name)
    });
    format!("message {table} {{ {} }}", columns.collect::<Vec<_>>().join(" "))
}
