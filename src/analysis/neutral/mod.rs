//! A profile under neutral names, for a screen that strangers see: scopes, operations, files, functions and modules
//! are renamed in the profile itself, so that nothing that is made of it can show the real ones.

mod names;
mod vocabulary;

use std::sync::Arc;

pub use names::Names;
pub use vocabulary::is_common;

use crate::model::{
    ComputationId, Failure, FailureValue, Glance, InstructionId, LazyProgram, ListedAllocation, LiveSet, Metadata,
    Note, PeakBuffer, Profile, Program, ProgramSource, ProgramText, ProgramTextHandle, ScopedMemory, Sharding,
    SourceInfo, SourceLine, TileMemory,
};

/// Instructions of a program whose names are looked at in order, so that neutral names follow the program and not the
/// views; later ones get theirs when they are first shown.
const IN_ORDER: usize = 200_000;

/// The same profile with neutral names.
#[must_use]
pub fn neutral(profile: &Profile, names: &Arc<Names>) -> Profile {
    let mut out = profile.clone();
    // Programs first: sentences are cleaned of the words that were met there.
    for program in &mut out.programs {
        rename(program, names);
    }
    for module in &mut out.modules {
        *module = LazyProgram {
            name: names.program(&module.name),
            source: Arc::new(NeutralSource { inner: Arc::clone(&module.source), names: Arc::clone(names) }),
            ..module.clone()
        };
    }
    out.name = names.file(&out.name);
    for source in &mut out.sources {
        rename_source(source, names);
    }
    let evidence = out.device.capacities.iter_mut().map(|capacity| &mut capacity.evidence);
    for text in evidence.chain(out.device.evidence.as_mut()) {
        *text = names.sentence(text);
    }
    for trace in &mut out.runtime {
        trace.strings = trace.strings.map(|text| names.scope(text));
        for row in trace.given.iter_mut().flat_map(|given| &mut given.rows) {
            row.op = names.scope(&row.op);
        }
    }
    for execution in &mut out.executions {
        execution.name = names.program(&execution.name);
    }
    if let Some(live) = &mut out.live {
        rename_live(live, names);
    }
    // It names every value; that our ranges are the same was already checked against the real one.
    out.live_ranges = None;
    for failure in &mut out.failures {
        rename_failure(failure, names);
    }
    if let Some(tiles) = &mut out.tiles {
        rename_tiles(tiles, names);
    }
    for fact in &mut out.facts {
        fact.value = names.scope(&fact.value);
    }
    for note in &mut out.notes {
        note.text = names.sentence(&note.text);
    }
    out
}

fn rename(program: &mut Program, names: &Arc<Names>) {
    let inner = program.text.clone();
    for row in 0..program.instructions.len().min(IN_ORDER) {
        let instruction = InstructionId(row as u32);
        let _ = names.scope(&inner.op_name(instruction));
        let _ = names.op(&inner.instruction_name(instruction));
    }
    program.name = names.program(&program.name);
    for (_, value) in &mut program.attributes {
        *value = names.scope(value);
    }
    for reported in &mut program.reported_uses {
        reported.text = names.op(&reported.text);
    }
    program.text = ProgramTextHandle(Arc::new(NeutralText { inner, names: Arc::clone(names) }));
}

fn rename_source(source: &mut SourceInfo, names: &Names) {
    source.path = names.file(&source.path);
    for text in source.notes.iter_mut().chain(&mut source.error) {
        *text = names.sentence(text);
    }
}

fn rename_line(line: &mut SourceLine, names: &Names) {
    line.file = names.file(&line.file);
    line.function = names.scope(&line.function);
}

fn rename_live(live: &mut LiveSet, names: &Names) {
    for frame in &mut live.frames {
        rename_line(frame, names);
    }
    live.strings = live.strings.map(|text| names.scope(text));
}

fn rename_failure(failure: &mut Failure, names: &Names) {
    for (_, value) in &mut failure.fields {
        if let FailureValue::Text(text) = value {
            *text = names.scope(text);
        }
    }
    for ListedAllocation { operator, op_name, source, label, label_head, tag, .. } in &mut failure.allocations {
        for text in [operator, op_name, label, label_head, tag].into_iter().flatten() {
            *text = names.scope(text);
        }
        if let Some((file, _)) = source {
            *file = names.file(file);
        }
    }
    for PeakBuffer { op_name, source, label, .. } in &mut failure.peak_buffers {
        for text in [op_name, label].into_iter().flatten() {
            *text = names.scope(text);
        }
        if let Some((file, _)) = source {
            *file = names.file(file);
        }
    }
    for chunk in &mut failure.chunks {
        chunk.annotation = chunk.annotation.as_deref().map(|text| names.scope(text));
    }
    for (_, text) in &mut failure.usage_rows {
        *text = names.scope(text);
    }
    for path in &mut failure.paths {
        *path = names.file(path);
    }
    failure.process = failure.process.as_deref().map(|text| names.scope(text));
    for process in &mut failure.processes {
        *process = names.scope(process);
    }
    failure.source = names.file(&failure.source);
    "(the text is hidden with the names)".clone_into(&mut failure.message);
}

fn rename_tiles(tiles: &mut TileMemory, names: &Names) {
    let rows = [&mut tiles.vertex_types, &mut tiles.exchanges, &mut tiles.compute_sets];
    for row in rows.into_iter().flat_map(|rows| &mut rows.rows) {
        row.name = names.scope(&row.name);
    }
    for program in &mut tiles.programs {
        program.name = names.scope(&program.name);
        if let Some((payload, _)) = &mut program.payload {
            *payload = names.scope(payload);
        }
    }
    tiles.liveness.strings = tiles.liveness.strings.map(|text| names.scope(text));
    tiles.variables.strings = tiles.variables.strings.map(|text| names.scope(text));
}

/// A program's words, renamed as they are read.
#[derive(Debug)]
struct NeutralText {
    inner: ProgramTextHandle,
    names: Arc<Names>,
}

impl ProgramText for NeutralText {
    fn instruction_name(&self, instruction: InstructionId) -> String {
        self.names.op(&self.inner.instruction_name(instruction))
    }

    fn computation_name(&self, computation: ComputationId) -> String {
        self.names.op(&self.inner.computation_name(computation))
    }

    fn metadata(&self, instruction: InstructionId) -> Metadata {
        let mut metadata = self.inner.metadata(instruction);
        metadata.op_name = self.names.scope(&metadata.op_name);
        metadata.op_type = self.names.scope(&metadata.op_type);
        for line in metadata.source.iter_mut().chain(&mut metadata.stack) {
            rename_line(line, &self.names);
        }
        metadata
    }

    fn op_name(&self, instruction: InstructionId) -> String {
        self.names.scope(&self.inner.op_name(instruction))
    }

    fn custom_call_target(&self, instruction: InstructionId) -> String {
        self.names.op(&self.inner.custom_call_target(instruction))
    }

    fn scoped_memory(&self, instruction: InstructionId) -> Vec<ScopedMemory> {
        self.inner.scoped_memory(instruction)
    }

    fn sharding(&self, instruction: InstructionId) -> Option<Sharding> {
        self.inner.sharding(instruction)
    }
}

/// Programs that are decoded later are renamed then.
#[derive(Debug)]
struct NeutralSource {
    inner: Arc<dyn ProgramSource>,
    names: Arc<Names>,
}

impl ProgramSource for NeutralSource {
    fn load(&self) -> Result<(Program, Vec<Note>), String> {
        let (mut program, mut notes) = self.inner.load().map_err(|error| self.names.sentence(&error))?;
        rename(&mut program, &self.names);
        for note in &mut notes {
            note.text = self.names.sentence(&note.text);
        }
        Ok((program, notes))
    }

    fn glance(&self) -> Glance {
        let glance = self.inner.glance();
        Glance { name: glance.name.map(|name| self.names.program(&name)), ..glance }
    }
}
