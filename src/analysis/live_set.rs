//! Totals of a live-memory snapshot by kind, device, function and file; and analysis of an allocator's address space.

use std::collections::HashMap;

use crate::model::{Bin, Bytes, Chunk, HeapMap, LiveEntry, LiveSet, SourceLine};

/// Live objects with a common property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The property's value.
    pub key: String,
    /// Bytes.
    pub bytes: Bytes,
    /// Number of arrays or allocations.
    pub count: u64,
}

/// Grouping of live objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// Kind: array, executable or operation.
    Kind,
    /// Device or allocator.
    Device,
    /// Innermost function of the stack.
    Function,
    /// File of the innermost function.
    File,
}

impl GroupBy {
    /// All groupings.
    pub const ALL: [Self; 4] = [Self::Function, Self::File, Self::Device, Self::Kind];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kind => "Kind",
            Self::Device => "Device",
            Self::Function => "Function",
            Self::File => "File",
        }
    }
}

/// Totals of a live set.
#[derive(Debug, Clone, Default)]
pub struct LiveAnalysis {
    /// Total bytes of all entries.
    pub total: Bytes,
    /// By kind, largest first.
    pub kinds: Vec<Group>,
    /// By device, largest first; only entries that name a device.
    pub devices: Vec<Group>,
    /// Rows of the entries, largest first.
    pub order: Vec<u32>,
    /// The allocator's address space.
    pub heap: Option<HeapAnalysis>,
}

impl LiveAnalysis {
    /// Analyses a live set.
    #[must_use]
    pub fn new(set: &LiveSet) -> Self {
        let mut order: Vec<u32> = (0..set.entries.len() as u32).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(set.entries[row as usize].bytes));
        Self {
            total: set.entries.iter().map(|entry| entry.bytes).sum(),
            kinds: groups(set, GroupBy::Kind),
            devices: groups(set, GroupBy::Device),
            order,
            heap: set.heap.as_ref().map(HeapAnalysis::new),
        }
    }
}

/// Groups of entries, largest first. Grouping by device leaves out entries without one.
#[must_use]
pub fn groups(set: &LiveSet, by: GroupBy) -> Vec<Group> {
    groups_of(set, &set.entries.iter().collect::<Vec<_>>(), by, false)
}

/// As [`groups`], for some entries; `own_code` uses the innermost frame outside installed libraries, if there is one.
#[must_use]
pub fn groups_of(set: &LiveSet, entries: &[&LiveEntry], by: GroupBy, own_code: bool) -> Vec<Group> {
    let mut rows: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for entry in entries.iter().copied() {
        let key = key_of(set, entry, by, own_code);
        if key.is_empty() && by == GroupBy::Device {
            continue;
        }
        let row = *rows.entry(key).or_insert_with_key(|key| {
            groups.push(Group { key: key.clone(), bytes: Bytes::ZERO, count: 0 });
            groups.len() - 1
        });
        groups[row].bytes += entry.bytes;
        groups[row].count = groups[row].count.saturating_add(entry.count);
    }
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    groups
}

/// The property that an entry is grouped by.
#[must_use]
pub fn key_of(set: &LiveSet, entry: &LiveEntry, by: GroupBy, own_code: bool) -> String {
    let frame = || own_frame(set, entry, own_code);
    match by {
        GroupBy::Kind => set.strings.get(entry.kind).to_owned(),
        GroupBy::Device => set.strings.get(entry.device).to_owned(),
        GroupBy::Function => frame().map_or_else(String::new, |frame| frame.function.clone()),
        GroupBy::File => frame().map_or_else(String::new, |frame| frame.file.clone()),
    }
}

/// The frame that names an entry: with `own_code` the innermost of the program's own, else the innermost that is Python,
/// or at least names a file.
#[must_use]
pub fn own_frame<'a>(set: &'a LiveSet, entry: &'a LiveEntry, own_code: bool) -> Option<&'a SourceLine> {
    let frames = || set.stack(entry);
    let own = frames().find(|frame| own_code && !is_library(&frame.file));
    own.or_else(|| frames().find(|frame| !is_native(&frame.file))).or_else(|| frames().next())
}

/// Whether a frame's file is that of compiled code: `??`, or a source of C++.
fn is_native(file: &str) -> bool {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    matches!(file, "" | "??") || ["c", "cc", "cpp", "cu", "h", "hpp", "so"].contains(&ending)
}

/// Whether a file belongs to an installed library, to Python itself or to compiled code.
#[must_use]
pub fn is_library(file: &str) -> bool {
    is_native(file)
        || file.contains("/site-packages/")
        || file.contains("/dist-packages/")
        || file.contains("\\site-packages\\")
        || file.starts_with('<')
        || file.split('/').collect::<Vec<_>>().windows(2).any(|pair| pair[0] == "lib" && pair[1].starts_with("python3"))
}

/// Summary of an allocator's address space.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeapAnalysis {
    /// Bytes in chunks.
    pub total: Bytes,
    /// Bytes of the chunks in use.
    pub in_use: Bytes,
    /// Bytes requested for the chunks in use, before rounding.
    pub requested: Bytes,
    /// Bytes of the free chunks.
    pub free: Bytes,
    /// Largest free chunk.
    pub largest_free: Bytes,
    /// Free chunks.
    pub free_chunks: usize,
    /// Fraction of free bytes outside the largest free chunk, 0..=1; `None` if nothing is free.
    pub fragmentation: Option<f64>,
    /// Row ranges of contiguous chunks: (first, one past the last).
    pub regions: Vec<(u32, u32)>,
    /// Bytes by which the largest free chunk is too small for the failed request; `None` without a failed request.
    pub short_by: Option<Bytes>,
}

impl HeapAnalysis {
    /// Analyses an address space.
    #[must_use]
    pub fn new(heap: &HeapMap) -> Self {
        let mut result = Self::default();
        let mut end_of_last = None;
        for (row, chunk) in heap.chunks.iter().enumerate() {
            let row = row as u32;
            result.total += chunk.size;
            if chunk.in_use {
                result.in_use += chunk.size;
                result.requested += chunk.requested;
            } else {
                result.free += chunk.size;
                result.free_chunks += 1;
                result.largest_free = result.largest_free.max(chunk.size);
            }
            match result.regions.last_mut() {
                Some(region) if end_of_last == Some(chunk.address) => region.1 = row + 1,
                _ => result.regions.push((row, row + 1)),
            }
            end_of_last = end(chunk);
        }
        if result.free > Bytes::ZERO {
            result.fragmentation = Some((result.free - result.largest_free).0 as f64 / result.free.0 as f64);
        }
        result.short_by = heap.failed_request.map(|request| request.saturating_sub(result.largest_free));
        result
    }
}

/// Highest bin: chunks of 256·2^20 bytes and more.
const LAST_BIN: u32 = 20;

/// Smallest chunk size of a bin in bytes.
#[must_use]
pub fn smallest(bin: &Bin) -> Bytes {
    Bytes(256u64.checked_shl(bin.number.clamp(0, 40) as u32).unwrap_or(u64::MAX))
}

/// The non-empty bins of an address space, from the file or else counted from its chunks.
#[must_use]
pub fn bins(heap: &HeapMap) -> Vec<Bin> {
    if !heap.bins.is_empty() {
        return heap.bins.iter().filter(|bin| bin.chunks > 0 || bin.bytes > Bytes::ZERO).copied().collect();
    }
    let mut bins = vec![Bin::default(); LAST_BIN as usize + 1];
    for chunk in &heap.chunks {
        let number = (chunk.size.0 / 256).checked_ilog2().unwrap_or(0).min(LAST_BIN);
        let bin = &mut bins[number as usize];
        bin.number = number as i32;
        bin.bytes += chunk.size;
        bin.chunks += 1;
        if chunk.in_use {
            bin.bytes_in_use += chunk.size;
            bin.chunks_in_use += 1;
        }
    }
    bins.retain(|bin| bin.chunks > 0);
    bins
}

fn end(chunk: &Chunk) -> Option<u64> {
    chunk.address.checked_add(chunk.size.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_break_where_addresses_do() {
        let chunk = |address, size, in_use| Chunk { address, size: Bytes(size), in_use, ..Chunk::default() };
        let heap = HeapMap {
            chunks: vec![
                chunk(256, 256, true),
                chunk(512, 512, false),
                chunk(4096, 256, false),
                chunk(4352, 256, true),
            ],
            failed_request: Some(Bytes(600)),
            ..HeapMap::default()
        };
        let result = HeapAnalysis::new(&heap);
        assert_eq!(result.regions, [(0, 2), (2, 4)]);
        assert_eq!((result.in_use, result.free, result.largest_free), (Bytes(512), Bytes(768), Bytes(512)));
        assert_eq!(result.fragmentation, Some(256.0 / 768.0));
        assert_eq!(result.short_by, Some(Bytes(88)));
        let counted: Vec<(i32, i64, i64, u64)> =
            bins(&heap).iter().map(|bin| (bin.number, bin.chunks_in_use, bin.chunks, bin.bytes.0)).collect();
        assert_eq!(counted, [(0, 2, 3, 768), (1, 0, 1, 512)]);
    }
}
