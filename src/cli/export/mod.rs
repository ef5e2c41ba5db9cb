//! `highwater export`: what is known about many dumps as tables for other programs.

mod queue;
mod turns;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use highwater::analysis::ProfileAnalysis;
use highwater::export::dataset::{self, Chunk, Origin, Table, TableFormat, Tables, Written};
use highwater::model::{Bytes, Profile, parse_size, thousands};
use highwater::open::{Collection, Opened};
use highwater::source::{Progress, Stage};

use super::inputs::{EXIT_UNREADABLE, complain, override_capacity, refuse, targets};
use super::terminal::{self, Meter};
use queue::{Queue, Work};
use turns::Turns;

/// Rows and bytes of text that one thread holds while it waits for its turn to write.
const HELD_ROWS: usize = 1 << 16;
const HELD_TEXT: usize = 16 << 20;

/// More threads than this only hold more in memory.
const MOST_THREADS: usize = 8;

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Files, folders or archives to read; `-` for standard input
    #[arg(required_unless_present = "schema", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Format of the tables
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
    /// Folder to write the tables to, a file for each
    #[arg(long, value_name = "FOLDER", required_unless_present = "schema")]
    out: Option<PathBuf>,
    /// Only these tables: programs, buffers, tiles, `tile_categories`, events, findings, errors
    #[arg(long, value_delimiter = ',', value_name = "TABLE")]
    tables: Vec<Table>,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    capacity: Option<Bytes>,
    /// Print the tables and their columns instead
    #[arg(long)]
    schema: bool,
}

/// Writes the tables and says what was written; 3 when something could not be read or written.
pub fn run(args: &ExportArgs) -> ExitCode {
    let Some(folder) = args.out.as_deref().filter(|_| !args.schema) else {
        terminal::print_plain(&dataset::describe());
        return ExitCode::SUCCESS;
    };
    let wanted: Vec<Table> =
        Table::ALL.into_iter().filter(|table| args.tables.is_empty() || args.tables.contains(table)).collect();
    let named = targets(&args.paths);
    let all_named = named.len() >= args.paths.len();
    let written = Tables::create(folder, args.format, &wanted)
        .map_err(|error| error.to_string())
        .and_then(|tables| Export::new(args, &wanted, tables, Queue::new(named)).run());
    match written {
        Err(error) => refuse(&format!("cannot write to {}: {error}", folder.display())),
        Ok((written, whole)) => {
            let lines = written.iter().map(|one| {
                let size = Bytes(one.bytes).short();
                format!("{}: {} rows, {size}\n", one.path.display(), thousands(one.rows))
            });
            terminal::print_plain(&lines.collect::<String>());
            if whole && all_named { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
        }
    }
}

/// Everything the threads share.
struct Export<'a> {
    args: &'a ExportArgs,
    wanted: &'a [Table],
    queue: Mutex<Queue>,
    turns: Turns,
    tables: Mutex<Tables>,
    /// The first error in writing; nothing more is read after it.
    failed: Mutex<Option<String>>,
    whole: AtomicBool,
    progress: Arc<Progress>,
}

impl<'a> Export<'a> {
    fn new(args: &'a ExportArgs, wanted: &'a [Table], tables: Tables, queue: Queue) -> Self {
        Self {
            args,
            wanted,
            queue: Mutex::new(queue),
            turns: Turns::default(),
            tables: Mutex::new(tables),
            failed: Mutex::default(),
            whole: AtomicBool::new(true),
            progress: Arc::new(Progress::default()),
        }
    }

    /// Reads everything on several threads, which write in the order of the paths; then what was written, and whether
    /// everything could be read.
    fn run(self) -> Result<(Vec<Written>, bool), String> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let meter = Meter::watch(&self.progress, "export");
        self.progress.begin(Stage::Reporting, 0);
        // Threads of their own: one that waits for its turn would block a worker of the pool that decodes.
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.work());
            }
        });
        drop(meter);
        if let Some(error) = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let tables = self.tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        let written = tables.finish().map_err(|error| error.to_string())?;
        Ok((written, self.whole.into_inner()))
    }

    fn work(&self) {
        loop {
            let next = self.queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, work)) = next else { return };
            let turn = self.turns.admit(number, work.weight());
            let mut rows = Held { export: self, turn, chunks: Vec::new(), rows: 0, text: 0 };
            if !self.has_failed() {
                self.read(work, &mut rows);
            }
            rows.finish();
            let _ = self.progress.advance(1);
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn read(&self, work: Work, rows: &mut Held<'_>) {
        let progress = Progress::default();
        match work {
            Work::Target(target) => {
                let name = super::listed::place(&target);
                let on_disk = target.path().map(std::path::Path::to_owned);
                match target.open(&progress).and_then(|opened| opened.listed(&[], &progress)) {
                    Ok(Opened::Profile(profile)) => {
                        self.profile(*profile, &Origin::new(name, on_disk.as_deref()), rows);
                    }
                    Ok(Opened::Collection(collection)) => {
                        // The programs of a trace are told apart by their names and ids.
                        let origin = Origin::new(name, on_disk.as_deref());
                        for row in 0..collection.entries.len() {
                            self.entry(&collection, row, &origin, rows);
                        }
                    }
                    Err(error) => self.unread(&name, &error.to_string(), rows),
                }
            }
            Work::Entry { collection, row, folder } => {
                let file = collection.entries.get(row).map_or("", |entry| entry.file.as_str());
                let inside = folder.join(file);
                let on_disk = if inside.exists() { &inside } else { &folder };
                let origin = Origin::new(inside.display().to_string(), Some(on_disk));
                self.entry(&collection, row, &origin, rows);
            }
            Work::Unread { path, error } => self.unread(&path, &error, rows),
        }
    }

    fn entry(&self, collection: &Collection, row: usize, origin: &Origin, rows: &mut Held<'_>) {
        match collection.open_entry(row, &Progress::default()) {
            Ok(profile) => self.profile(profile, origin, rows),
            Err(error) => self.unread(&origin.file, &error.to_string(), rows),
        }
    }

    fn profile(&self, mut profile: Profile, origin: &Origin, rows: &mut Held<'_>) {
        if let Some(bytes) = self.args.capacity {
            override_capacity(&mut profile, bytes);
        }
        for source in &profile.sources {
            if let Some(error) = &source.error {
                self.whole.store(false, Ordering::Relaxed);
                complain(&source.path, error);
            }
        }
        let analysis = ProfileAnalysis::new(&profile);
        dataset::rows(&profile, &analysis, origin, self.wanted, &mut |chunk| rows.add(chunk));
    }

    fn unread(&self, path: &str, error: &str, rows: &mut Held<'_>) {
        self.whole.store(false, Ordering::Relaxed);
        complain(path, error);
        rows.add(dataset::unread(path, error));
    }
}

/// Rows of one file until it is their turn to be written.
struct Held<'a> {
    export: &'a Export<'a>,
    turn: turns::Turn<'a>,
    chunks: Vec<Chunk>,
    rows: usize,
    text: usize,
}

impl Held<'_> {
    fn add(&mut self, chunk: Chunk) {
        self.rows += chunk.rows();
        self.text += chunk.text_bytes();
        self.chunks.push(chunk);
        if self.rows >= HELD_ROWS || self.text >= HELD_TEXT {
            self.write();
        }
    }

    fn write(&mut self) {
        self.turn.wait();
        (self.rows, self.text) = (0, 0);
        let mut tables = self.export.tables.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in self.chunks.drain(..) {
            if let Err(error) = tables.add(&chunk) {
                let mut failed = self.export.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error.to_string());
                return;
            }
        }
    }

    fn finish(mut self) {
        self.write();
    }
}
