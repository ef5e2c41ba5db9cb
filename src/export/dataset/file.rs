//! The files of an export: one for each table, written a row group at a time, in place only when they are whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::chunk::Chunk;
use super::parquet::ParquetFile;
use super::schema::Table;
use super::text::{Form, write_head, write_rows};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// Bytes of text after which a row group is written even if it has fewer rows.
const GROUP_TEXT: usize = 16 << 20;

/// Format of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum TableFormat {
    /// Parquet, compressed with Snappy.
    #[default]
    Parquet,
    /// Comma-separated values (RFC 4180) after a line of names.
    Csv,
    /// Tab-separated values after a line of names.
    Tsv,
    /// JSON, an object on each line.
    Json,
}

impl TableFormat {
    /// Extension of its files.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Json => "json",
        }
    }
}

/// A table that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Its rows.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Tables being written to a folder.
pub struct Tables {
    files: Vec<TableFile>,
}

struct TableFile {
    /// Rows not written yet.
    waiting: Chunk,
    rows: u64,
    out: Out,
    path: PathBuf,
    /// Where it lies until it is whole.
    draft: PathBuf,
}

enum Out {
    Parquet(Box<ParquetFile<File>>),
    Text(BufWriter<File>, Form),
}

impl Tables {
    /// Begins the files of some tables in a folder, which is made if there is none.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn create(folder: &Path, format: TableFormat, tables: &[Table]) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let files = tables.iter().map(|&table| TableFile::create(folder, format, table));
        Ok(Self { files: files.collect::<io::Result<_>>()? })
    }

    /// Adds rows; those of tables that are not among the files are left out.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, chunk: &Chunk) -> io::Result<()> {
        let Some(file) = self.files.iter_mut().find(|file| file.waiting.table() == chunk.table()) else {
            return Ok(());
        };
        file.waiting.append(chunk);
        if file.waiting.rows() >= GROUP_ROWS || file.waiting.text_bytes() >= GROUP_TEXT { file.flush() } else { Ok(()) }
    }

    /// Writes what is left and gives the files their names.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn finish(mut self) -> io::Result<Vec<Written>> {
        self.files.drain(..).map(TableFile::finish).collect()
    }
}

/// Files that did not become whole are removed.
impl Drop for Tables {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(&file.draft);
        }
    }
}

impl TableFile {
    fn create(folder: &Path, format: TableFormat, table: Table) -> io::Result<Self> {
        let path = folder.join(format!("{table}.{}", format.extension()));
        let draft = folder.join(format!(".{table}.{}.part", format.extension()));
        let file = File::create(&draft)?;
        let text = |form: Form| {
            let mut out = BufWriter::new(file.try_clone()?);
            write_head(&mut out, table, form)?;
            Ok::<Out, io::Error>(Out::Text(out, form))
        };
        let out = match format {
            TableFormat::Parquet => Out::Parquet(Box::new(ParquetFile::new(file, table).map_err(io::Error::other)?)),
            TableFormat::Csv => text(Form::Csv)?,
            TableFormat::Tsv => text(Form::Tsv)?,
            TableFormat::Json => text(Form::Json)?,
        };
        Ok(Self { waiting: Chunk::new(table), rows: 0, out, path, draft })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.rows() == 0 {
            return Ok(());
        }
        let chunk = self.waiting.take();
        self.rows += chunk.rows() as u64;
        match &mut self.out {
            Out::Parquet(file) => file.write(&chunk).map_err(io::Error::other),
            Out::Text(out, form) => write_rows(out, &chunk, *form),
        }
    }

    fn finish(mut self) -> io::Result<Written> {
        let whole = self.flush().and_then(|()| match self.out {
            Out::Parquet(file) => file.finish().map_err(io::Error::other),
            Out::Text(mut out, _) => out.flush(),
        });
        let named = whole.and_then(|()| fs::rename(&self.draft, &self.path)).and_then(|()| self.path.metadata());
        match named {
            Ok(data) => Ok(Written { path: self.path, rows: self.rows, bytes: data.len() }),
            Err(error) => {
                let _ = fs::remove_file(&self.draft);
                Err(error)
            }
        }
    }
}
