//! What the allocators of a profile held: from PyTorch's snapshots, allocators in traces, BFC dumps and live arrays.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;

use super::{Held, Holder, Source};
use crate::analysis::ProfileAnalysis;
use crate::analysis::caching_allocator::CachingAnalysis;
use crate::analysis::live_set::{LiveAnalysis, is_library, smallest};
use crate::analysis::runtime::AllocatorAnalysis;
use crate::analysis::runtime_breakdown::{Origin, breakdown};
use crate::model::{
    AllocatorTrace, Bin, Bytes, CachingSnapshot, Failure, HeapMap, LiveSet, Profile, SourceLine, StackId,
};

/// How the decoder names a chunk in use without an operation.
const IN_USE: &str = "chunk in use";

/// Callers named behind a holder.
const CALLERS: usize = 3;

/// Every allocator of a profile.
#[must_use]
pub fn held(profile: &Profile, analysis: &ProfileAnalysis) -> Vec<Held> {
    let mut found = Vec::new();
    if let Some(snapshot) = &profile.caching {
        found.extend(analysis.caching.iter().map(|device| of_device(snapshot, device)));
    }
    found.extend(profile.runtime.iter().zip(&analysis.runtime).map(|(trace, analysis)| of_trace(trace, analysis)));
    if let Some((set, analysis)) = profile.live.as_ref().zip(analysis.live.as_ref()) {
        found.push(match &set.heap {
            Some(heap) => of_heap(set, heap),
            None => of_arrays(set, analysis),
        });
    }
    let listed = profile.failures.iter().find(|failure| !failure.chunks.is_empty() || !failure.chunk_sizes.is_empty());
    found.extend(listed.map(of_message));
    found
}

/// A hash that is the same in every run.
fn hash(words: impl std::hash::Hash) -> u64 {
    FixedState::default().hash_one(words)
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// `function file.py:12`, with the last part of the path only.
fn frame_words(frame: &SourceLine) -> String {
    match (file_name(&frame.file), frame.line) {
        ("" | "??", _) => frame.function.clone(),
        (file, 0) => format!("{} {file}", frame.function),
        (file, line) => format!("{} {file}:{line}", frame.function),
    }
}

/// Whether a frame is one's own Python: not of a library, of PyTorch or of Python itself.
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "Python's own files")]
fn is_own(frame: &SourceLine) -> bool {
    frame.file.ends_with(".py") && !frame.file.contains("/torch/") && !is_library(&frame.file)
}

/// A holder by its stack, innermost first.
fn by_stack(kind: &str, stack: &[&SourceLine]) -> Holder {
    let own: Vec<&&SourceLine> = stack.iter().filter(|frame| is_own(frame)).collect();
    let named: Vec<&SourceLine> = if own.is_empty() { stack.to_vec() } else { own.into_iter().copied().collect() };
    let functions = |frames: &[&SourceLine]| -> Vec<(String, String)> {
        frames.iter().map(|frame| (frame.function.clone(), file_name(&frame.file).to_owned())).collect()
    };
    let innermost = |frames: &[&SourceLine]| functions(frames.get(..1).unwrap_or_default());
    let lines: Vec<u32> = stack.iter().map(|frame| u32::try_from(frame.line).unwrap_or(0)).collect();
    let callers = named.iter().skip(1).take(CALLERS).map(|frame| frame_words(frame));
    let is_python = |frame: &&&SourceLine| frame.file.contains(".py");
    let made_in = stack.iter().find(is_python).filter(|frame| !is_own(frame) && !std::ptr::eq(**frame, named[0]));
    let detail: Vec<String> = made_in.map(|frame| frame_words(frame)).into_iter().chain(callers).collect();
    Holder {
        kind: kind.to_owned(),
        name: named.first().map_or_else(|| "no stack recorded".to_owned(), |frame| frame_words(frame)),
        detail: detail.join(" \u{2190} "),
        stack: stack.iter().map(|frame| format!("{} {}:{}", frame.function, frame.file, frame.line)).collect(),
        keys: [
            hash((functions(stack), &lines)),
            hash(functions(stack)),
            hash(functions(&named)),
            hash((innermost(&named), innermost(stack))),
            hash(innermost(&named)),
        ],
        lines,
        blocks: Vec::new(),
    }
}

/// A device of a snapshot at the failed request, or else at its peak. The bytes of a block are those that were asked for.
fn of_device(snapshot: &CachingSnapshot, device: &CachingAnalysis) -> Held {
    let moment = device.main_moment();
    let frames = |stack: StackId| -> Vec<SourceLine> {
        let frame = |frame: &crate::model::Frame| SourceLine {
            file: snapshot.strings.get(frame.file).to_owned(),
            function: snapshot.strings.get(frame.name).to_owned(),
            line: i32::try_from(frame.line).unwrap_or(0),
            column: 0,
        };
        snapshot.frames(stack).map(frame).collect()
    };
    let mut places: HashMap<(StackId, &'static str), usize> = HashMap::new();
    let mut sizes: Vec<BTreeMap<u64, u64>> = Vec::new();
    let mut holders: Vec<Holder> = Vec::new();
    for row in device.live_at(moment) {
        let (lifetime, category) = (&device.replay.lifetimes[row], device.categories[row].0.words());
        let place = *places.entry((lifetime.stack, category)).or_insert_with(|| {
            let stack = frames(lifetime.stack);
            holders.push(by_stack(category, &stack.iter().collect::<Vec<_>>()));
            sizes.push(BTreeMap::new());
            holders.len() - 1
        });
        *sizes[place].entry(lifetime.requested).or_default() += 1;
    }
    for (holder, sizes) in holders.iter_mut().zip(sizes) {
        holder.blocks = sizes.into_iter().collect();
    }
    let at = |curve: &[u64]| curve.get(moment as usize).copied().unwrap_or(0);
    let curves = &device.replay.curves;
    let (reserved, active) = (at(&curves.reserved), at(&curves.active));
    let mut held = Held {
        name: format!("cuda:{}", device.device.index),
        source: Source::Torch,
        moment: device.main_moment_in_words(),
        total: (reserved, "reserved"),
        has_failed: Some(device.failure().is_some()),
        holders,
        rest: Vec::new(),
    };
    held.rest = vec![
        ("rounding of blocks", i128::from(active) - i128::from(held.in_use())),
        ("free, kept for reuse", i128::from(reserved) - i128::from(active)),
    ];
    held
}

/// An allocator of a trace at its peak.
fn of_trace(trace: &AllocatorTrace, analysis: &AllocatorAnalysis) -> Held {
    let mut holders: BTreeMap<(String, String, String), Vec<(u64, u64)>> = BTreeMap::new();
    for row in breakdown(trace, analysis) {
        let allocation = &row.allocation;
        let kind = match row.origin {
            Origin::Step | Origin::Earlier if !allocation.region.is_empty() => allocation.region.clone(),
            origin => origin.name().to_owned(),
        };
        let is_known = !allocation.data_type.is_empty() && allocation.data_type != "INVALID";
        let shape = if is_known { format!("{}{}", allocation.data_type, allocation.shape) } else { String::new() };
        let block = (u64::try_from(allocation.bytes).unwrap_or(0), u64::try_from(allocation.count).unwrap_or(0));
        holders.entry((kind, row.name().to_owned(), shape)).or_default().push(block);
    }
    let holders: Vec<Holder> =
        holders.into_iter().map(|((kind, name, shape), blocks)| by_op(kind, name, shape, blocks)).collect();
    let held = Held {
        name: analysis.name.clone(),
        source: Source::Trace,
        moment: "at the peak",
        total: (analysis.peak.0, "in use"),
        has_failed: None,
        holders,
        rest: Vec::new(),
    };
    held.with_rest("not in any event")
}

/// A holder by its operation: known by name and shape, by name, by name without the numbers that a framework adds.
fn by_op(kind: String, name: String, shape: String, blocks: Vec<(u64, u64)>) -> Holder {
    let unnumbered = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '.');
    let keys = [hash((&name, &shape)), hash(&name), hash(unnumbered), hash(unnumbered), hash(unnumbered)];
    Holder { kind, name, detail: shape, keys, blocks, ..Holder::default() }
}

/// A BFC allocator: its holders, with what their chunks are part of.
fn bfc((name, moment): (&str, &'static str), total: u64, has_failed: Option<bool>, holders: Vec<Holder>) -> Held {
    let held = Held {
        name: name.to_owned(),
        source: Source::Bfc,
        moment,
        total: (total, "in chunks"),
        has_failed,
        holders,
        rest: Vec::new(),
    };
    held.with_rest("free chunks")
}

/// What chunks without an operation are called: those of one size are the same.
fn chunks_of(size: Bytes) -> String {
    format!("chunks of {}", size.short())
}

/// A BFC allocator when it was dumped. The bytes of a chunk are those that it takes.
fn of_heap(set: &LiveSet, heap: &HeapMap) -> Held {
    let known = (heap.allocator.as_str(), "when it was dumped");
    let has_failed = heap.failed_request.map(|_| true);
    if heap.chunks.is_empty() {
        let total = heap.bins.iter().fold(0, |sum: u64, bin| sum.saturating_add(bin.bytes.0));
        return bfc(known, total, has_failed, of_bins(heap));
    }
    let mut ops: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut total = 0u64;
    for chunk in &heap.chunks {
        total = total.saturating_add(chunk.size.0);
        if chunk.in_use {
            let name = match set.strings.get(chunk.op) {
                "" | IN_USE => chunks_of(chunk.size),
                op => op.to_owned(),
            };
            *ops.entry(name).or_default().entry(chunk.size.0).or_default() += 1;
        }
    }
    let holder = |(op, sizes): (String, BTreeMap<u64, u64>)| {
        by_op("in use".to_owned(), op, String::new(), sizes.into_iter().collect())
    };
    bfc(known, total, has_failed, ops.into_iter().map(holder).collect())
}

/// The holders of a BFC allocator of which only the sums of its bins are known.
fn of_bins(heap: &HeapMap) -> Vec<Holder> {
    let holder = |bin: &Bin| {
        let blocks = equal_blocks(bin.bytes_in_use.0, u64::try_from(bin.chunks_in_use).unwrap_or(0));
        by_op("in use".to_owned(), format!("chunks from {}", smallest(bin).short()), String::new(), blocks.collect())
    };
    heap.bins.iter().filter(|bin| bin.bytes_in_use.0 > 0).map(holder).collect()
}

/// A sum of equal blocks; where it does not divide, one of them is larger.
fn equal_blocks(bytes: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = count.max(1);
    let (each, over) = (bytes / count, bytes % count);
    let blocks = [(each, count - u64::from(over > 0)), (each + over, u64::from(over > 0))];
    blocks.into_iter().filter(|block| block.1 > 0)
}

/// A BFC allocator as a message lists it: its chunks with their purpose, or how many there are of each size.
fn of_message(failure: &Failure) -> Held {
    let mut rows: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut total = 0u64;
    for chunk in &failure.chunks {
        total = total.saturating_add(chunk.size.0);
        if chunk.in_use {
            let name = chunk.annotation.clone().unwrap_or_else(|| chunks_of(chunk.size));
            *rows.entry(name).or_default().entry(chunk.size.0).or_default() += 1;
        }
    }
    if failure.chunks.is_empty() {
        for &(count, size) in &failure.chunk_sizes {
            total = total.saturating_add(size.0.saturating_mul(count));
            *rows.entry(chunks_of(size)).or_default().entry(size.0).or_default() += count;
        }
    }
    let holder = |(name, sizes): (String, BTreeMap<u64, u64>)| {
        let (keys, blocks) = ([hash(&name); 5], sizes.into_iter().collect());
        Holder { kind: "in use".to_owned(), name, keys, blocks, ..Holder::default() }
    };
    let known = (failure.text("allocator").unwrap_or("BFC allocator"), "when the request failed");
    bfc(known, total, Some(failure.is_error), rows.into_iter().map(holder).collect())
}

/// Live arrays and executables, with the stacks that made them.
fn of_arrays(set: &LiveSet, analysis: &LiveAnalysis) -> Held {
    let mut places: HashMap<(&[u32], &str, &str), usize> = HashMap::new();
    let mut holders: Vec<Holder> = Vec::new();
    for entry in &set.entries {
        let (kind, device) = (set.strings.get(entry.kind), set.strings.get(entry.device));
        let place = *places.entry((&entry.stack, kind, device)).or_insert_with(|| {
            let stack: Vec<&SourceLine> = set.stack(entry).collect();
            holders.push(by_stack(kind, &stack));
            holders.len() - 1
        });
        // The file has sums of equal objects.
        holders[place].blocks.extend(equal_blocks(entry.bytes.0, entry.count));
    }
    let held = Held {
        name: Source::LiveArrays.name().to_owned(),
        source: Source::LiveArrays,
        moment: "when it was written",
        total: (analysis.total.0, "live"),
        has_failed: None,
        holders,
        rest: Vec::new(),
    };
    held.with_rest("not listed")
}
