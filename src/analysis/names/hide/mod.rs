//! Hides names for screens that strangers see: scopes, operations, files, functions and modules are renamed in the
//! profile itself, so nothing derived from it can show the real ones.

mod aliases;
mod vocabulary;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use aliases::Aliases;
pub use vocabulary::is_common;

use crate::model::{
    CachingSnapshot, ComputationId, DimensionNumbers, Failure, FailureValue, Glance, InstructionId, LazyProgram,
    ListedAllocation, LiveSet, Metadata, Note, PeakBuffer, Profile, Program, ProgramSource, ProgramText,
    ProgramTextHandle, ScopedMemory, Sharding, SourceInfo, SourceLine, Strings, TileMemory,
};

/// Number of instructions whose names get aliases up front, in program order; later ones get theirs when first shown.
const IN_ORDER: usize = 200_000;

/// A copy of a profile with its names replaced by aliases.
#[must_use]
pub fn hide_names(profile: &Profile, aliases: &Arc<Aliases>) -> Profile {
    let mut out = profile.clone();
    // Programs first: only words met there are replaced in sentences.
    for program in &mut out.programs {
        rename(program, aliases);
    }
    for module in &mut out.modules {
        *module = LazyProgram {
            name: aliases.program(&module.name),
            source: Arc::new(HiddenSource { inner: Arc::clone(&module.source), aliases: Arc::clone(aliases) }),
            ..module.clone()
        };
    }
    out.name = aliases.file(&out.name);
    for source in &mut out.sources {
        rename_source(source, aliases);
    }
    let evidence = out.device.capacities.iter_mut().map(|capacity| &mut capacity.evidence);
    for text in evidence.chain(out.device.evidence.as_mut()) {
        *text = aliases.sentence(text);
    }
    for trace in &mut out.runtime {
        trace.strings = trace.strings.map(|text| aliases.scope(text));
        for row in trace.given.iter_mut().flat_map(|given| &mut given.rows) {
            row.op = aliases.scope(&row.op);
        }
    }
    for execution in &mut out.executions {
        execution.name = aliases.program(&execution.name);
    }
    if let Some(live) = &mut out.live {
        rename_live(live, aliases);
    }
    if let Some(snapshot) = &mut out.caching {
        rename_caching(snapshot, aliases);
    }
    // It names every value; that our ranges are the same was already checked against the real one.
    out.live_ranges = None;
    for failure in &mut out.failures {
        rename_failure(failure, aliases);
    }
    if let Some(tiles) = &mut out.tiles {
        rename_tiles(tiles, aliases);
    }
    for fact in &mut out.facts {
        fact.value = aliases.scope(&fact.value);
    }
    for note in &mut out.notes {
        note.text = aliases.sentence(&note.text);
    }
    out
}

fn rename(program: &mut Program, aliases: &Arc<Aliases>) {
    let inner = program.text.clone();
    for row in 0..program.instructions.len().min(IN_ORDER) {
        let instruction = InstructionId(row as u32);
        let _ = aliases.scope(&inner.op_name(instruction));
        let _ = aliases.op(&inner.instruction_name(instruction));
    }
    program.name = aliases.program(&program.name);
    for (_, value) in &mut program.attributes {
        *value = aliases.scope(value);
    }
    for reported in &mut program.reported_uses {
        reported.text = aliases.op(&reported.text);
    }
    program.text = ProgramTextHandle(Arc::new(HiddenText { inner, aliases: Arc::clone(aliases) }));
}

fn rename_source(source: &mut SourceInfo, aliases: &Aliases) {
    source.path = aliases.file(&source.path);
    for text in source.notes.iter_mut().chain(&mut source.error) {
        *text = aliases.sentence(text);
    }
}

fn rename_line(line: &mut SourceLine, aliases: &Aliases) {
    line.file = aliases.file(&line.file);
    line.function = aliases.scope(&line.function);
}

fn rename_live(live: &mut LiveSet, aliases: &Aliases) {
    for frame in &mut live.frames {
        rename_line(frame, aliases);
    }
    live.strings = live.strings.map(|text| aliases.scope(text));
}

/// Renames the program's own frames, phases and texts; PyTorch's own names say nothing of the program.
fn rename_caching(snapshot: &mut CachingSnapshot, aliases: &Aliases) {
    let old = std::mem::take(&mut snapshot.strings);
    let mut new = Strings::default();
    for frame in &mut snapshot.stacks.frames {
        let (name, file) = (old.get(frame.name), old.get(frame.file));
        let mut line = SourceLine { file: file.to_owned(), function: name.to_owned(), line: 0, column: 0 };
        if let Some(at) = file.find("/torch/") {
            file[at + 1..].clone_into(&mut line.file);
        } else {
            rename_line(&mut line, aliases);
        }
        frame.name = new.intern(&line.function);
        frame.file = new.intern(&line.file);
    }
    for annotation in &mut snapshot.annotations {
        let name = old.get(annotation.name);
        let is_torchs = name.starts_with("Optimizer.");
        annotation.name = if is_torchs { new.intern(name) } else { new.intern(&aliases.scope(name)) };
    }
    for (_, text) in &mut snapshot.metadata {
        *text = new.intern(&aliases.scope(old.get(*text)));
    }
    snapshot.settings.all.clear();
    snapshot.strings = new;
}

fn rename_failure(failure: &mut Failure, aliases: &Aliases) {
    for (_, value) in &mut failure.fields {
        if let FailureValue::Text(text) = value {
            *text = aliases.scope(text);
        }
    }
    for ListedAllocation { operator, op_name, source, label, label_head, tag, .. } in &mut failure.allocations {
        for text in [operator, op_name, label, label_head, tag].into_iter().flatten() {
            *text = aliases.scope(text);
        }
        if let Some((file, _)) = source {
            *file = aliases.file(file);
        }
    }
    for PeakBuffer { op_name, source, label, .. } in &mut failure.peak_buffers {
        for text in [op_name, label].into_iter().flatten() {
            *text = aliases.scope(text);
        }
        if let Some((file, _)) = source {
            *file = aliases.file(file);
        }
    }
    for chunk in &mut failure.chunks {
        chunk.annotation = chunk.annotation.as_deref().map(|text| aliases.scope(text));
    }
    for (_, text) in &mut failure.usage_rows {
        *text = aliases.scope(text);
    }
    for path in &mut failure.paths {
        *path = aliases.file(path);
    }
    failure.process = failure.process.as_deref().map(|text| aliases.scope(text));
    for process in &mut failure.processes {
        *process = aliases.scope(process);
    }
    failure.source = aliases.file(&failure.source);
    "(the text is hidden with the names)".clone_into(&mut failure.message);
}

fn rename_tiles(tiles: &mut TileMemory, aliases: &Aliases) {
    let rows = [&mut tiles.vertex_types, &mut tiles.exchanges, &mut tiles.compute_sets];
    for row in rows.into_iter().flat_map(|rows| &mut rows.rows) {
        row.name = aliases.scope(&row.name);
    }
    for program in &mut tiles.programs {
        program.name = aliases.scope(&program.name);
        if let Some((payload, _)) = &mut program.payload {
            *payload = aliases.scope(payload);
        }
    }
    tiles.liveness.strings = tiles.liveness.strings.map(|text| aliases.scope(text));
    tiles.variables.strings = tiles.variables.strings.map(|text| aliases.scope(text));
}

/// A program's text, with aliases applied on reading.
#[derive(Debug)]
struct HiddenText {
    inner: ProgramTextHandle,
    aliases: Arc<Aliases>,
}

impl ProgramText for HiddenText {
    fn instruction_name(&self, instruction: InstructionId) -> String {
        self.aliases.op(&self.inner.instruction_name(instruction))
    }

    fn computation_name(&self, computation: ComputationId) -> String {
        self.aliases.op(&self.inner.computation_name(computation))
    }

    fn metadata(&self, instruction: InstructionId) -> Metadata {
        let mut metadata = self.inner.metadata(instruction);
        metadata.op_name = self.aliases.scope(&metadata.op_name);
        metadata.op_type = self.aliases.scope(&metadata.op_type);
        for line in metadata.source.iter_mut().chain(&mut metadata.stack) {
            rename_line(line, &self.aliases);
        }
        metadata
    }

    fn op_name(&self, instruction: InstructionId) -> String {
        self.aliases.scope(&self.inner.op_name(instruction))
    }

    fn dimension_numbers(&self, instruction: InstructionId) -> DimensionNumbers {
        self.inner.dimension_numbers(instruction)
    }

    fn custom_call_target(&self, instruction: InstructionId) -> String {
        self.aliases.op(&self.inner.custom_call_target(instruction))
    }

    fn scoped_memory(&self, instruction: InstructionId) -> Vec<ScopedMemory> {
        self.inner.scoped_memory(instruction)
    }

    fn sharding(&self, instruction: InstructionId) -> Option<Sharding> {
        self.inner.sharding(instruction)
    }
}

/// Applies aliases to programs decoded later.
#[derive(Debug)]
struct HiddenSource {
    inner: Arc<dyn ProgramSource>,
    aliases: Arc<Aliases>,
}

impl ProgramSource for HiddenSource {
    fn load(&self, cancelled: &Arc<AtomicBool>) -> Result<(Program, Vec<Note>), String> {
        let (mut program, mut notes) = self.inner.load(cancelled).map_err(|error| self.aliases.sentence(&error))?;
        rename(&mut program, &self.aliases);
        for note in &mut notes {
            note.text = self.aliases.sentence(&note.text);
        }
        Ok((program, notes))
    }

    fn glance(&self) -> Glance {
        let glance = self.inner.glance();
        Glance { name: glance.name.map(|name| self.aliases.program(&name)), ..glance }
    }
}
