//! TensorFlow's BFC allocator dump (`MemoryDump`, written on out of memory with `TF_BFC_MEMORY_DUMP`): every chunk of
//! the allocator's memory, in use or free.

mod fields;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use super::wire::{FIXED32, LEN, Reader, Result as WireResult, VARINT, field, text};
use crate::model::{Bin, Bytes, Chunk, HeapMap, HeapStats, LiveEntry, LiveSet, Profile, StringId};
use crate::source::Input;
use fields::{bin, chunk, dump, snapshot, stats};

/// The allocator's dump.
pub struct BfcDecoder;

/// Name of a chunk in use without an operation.
const IN_USE: &str = "chunk in use";

impl Decoder for BfcDecoder {
    fn format(&self) -> &'static str {
        "BFC allocator dump"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::Run, words: "dump of TensorFlow's BFC allocator", patterns: &["*.memdump", "*.bfc"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        recognises(input.head())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let mut set = LiveSet::default();
        let mut heap = HeapMap::default();
        if let Err(error) = read(Reader::new(&bytes, 0), &mut heap, &mut set) {
            if heap.chunks.is_empty() && heap.bins.is_empty() {
                return Err(DecodeError::Damaged { what: error.what.to_owned(), offset: error.offset });
            }
            context.reporter.damaged(format!("the rest of the dump is left out: {}", error.what), Some(error.offset));
        }
        if heap.chunks.is_empty() && heap.bins.is_empty() {
            return Err(DecodeError::Empty("an allocator dump without chunks".to_owned()));
        }
        entries(&heap, &mut set);
        let in_use: Bytes = heap.chunks.iter().filter(|chunk| chunk.in_use).map(|chunk| chunk.size).sum();
        if let Some(stats) = heap.stats
            && stats.bytes_in_use != in_use
        {
            context.reporter.warn(
                format!(
                    "the allocator reports {} in use, its chunks add up to {}",
                    stats.bytes_in_use.exact(),
                    in_use.exact()
                ),
                None,
            );
        }
        let name = heap.allocator.clone();
        set.heap = Some(heap);
        Ok(Profile { name, live: Some(set), ..Profile::default() })
    }
}

/// Whether the bytes begin with a name followed by bins or chunks with small numbers.
fn recognises(head: &[u8]) -> bool {
    let mut reader = Reader::new(head, 0);
    let Ok(Some(tag)) = reader.tag() else { return false };
    if field(tag) != (dump::ALLOCATOR_NAME, LEN) {
        return false;
    }
    let Ok(name) = reader.bytes() else { return false };
    let printable = !name.is_empty() && name.len() < 256 && name.iter().all(|b| (0x20..0x7f).contains(b));
    if !printable {
        return false;
    }
    let Ok(Some(tag)) = reader.tag() else { return false };
    let (highest, texts): (u32, &[u32]) = match field(tag) {
        (dump::BIN_SUMMARY, LEN) => (bin::TOTAL_CHUNKS_IN_BIN, &[]),
        (dump::CHUNK, LEN) => (chunk::STEP_ID, &[chunk::OP_NAME]),
        _ => return false,
    };
    let Ok((message, whole)) = reader.bytes_or_rest() else { return false };
    let mut message = Reader::new(message, 0);
    let mut fields = 0;
    while let Ok(Some(tag)) = message.tag() {
        let (number, kind) = field(tag);
        let expected = if texts.contains(&number) { LEN } else { VARINT };
        if number > highest || kind != expected || message.skip(tag).is_err() {
            return false;
        }
        fields += 1;
    }
    fields > 0 || !whole || message.remaining() == 0
}

fn read(mut reader: Reader<'_>, heap: &mut HeapMap, set: &mut LiveSet) -> WireResult<()> {
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (dump::ALLOCATOR_NAME, LEN) => heap.allocator = text(reader.bytes()?),
            (dump::BIN_SUMMARY, LEN) => heap.bins.push(bin(reader.message()?)?),
            (dump::CHUNK, LEN) => heap.chunks.push(chunk(reader.message()?, set)?),
            (dump::SNAP_SHOT, LEN) => {
                let mut message = reader.message()?;
                let (mut actions, mut size) = (0, 0);
                while let Some(tag) = message.tag()? {
                    match field(tag) {
                        (snapshot::ACTION_COUNT, VARINT) => actions = message.varint()?,
                        (snapshot::SIZE, VARINT) => size = message.int()?,
                        _ => message.skip(tag)?,
                    }
                }
                heap.history.push((actions, Bytes::from_wire(size)));
            }
            (dump::STATS, LEN) => heap.stats = Some(stats(reader.message()?)?),
            _ => reader.skip(tag)?,
        }
    }
    Ok(())
}

fn bin(mut reader: Reader<'_>) -> WireResult<Bin> {
    let mut bin = Bin::default();
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (bin::BIN, VARINT) => bin.number = reader.int()? as i32,
            (bin::TOTAL_BYTES_IN_USE, VARINT) => bin.bytes_in_use = Bytes::from_wire(reader.int()?),
            (bin::TOTAL_BYTES_IN_BIN, VARINT) => bin.bytes = Bytes::from_wire(reader.int()?),
            (bin::TOTAL_CHUNKS_IN_USE, VARINT) => bin.chunks_in_use = reader.int()?,
            (bin::TOTAL_CHUNKS_IN_BIN, VARINT) => bin.chunks = reader.int()?,
            _ => reader.skip(tag)?,
        }
    }
    Ok(bin)
}

fn chunk(mut reader: Reader<'_>, set: &mut LiveSet) -> WireResult<Chunk> {
    let mut chunk = Chunk::default();
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (chunk::ADDRESS, VARINT) => chunk.address = reader.varint()?,
            (chunk::SIZE, VARINT) => chunk.size = Bytes::from_wire(reader.int()?),
            (chunk::REQUESTED_SIZE, VARINT) => chunk.requested = Bytes::from_wire(reader.int()?),
            (chunk::BIN, VARINT) => chunk.bin = reader.int()? as i32,
            (chunk::OP_NAME, LEN) => chunk.op = set.strings.intern(&text(reader.bytes()?)),
            (chunk::IN_USE, VARINT) => chunk.in_use = reader.varint()? != 0,
            (chunk::STEP_ID, VARINT) => chunk.step = reader.varint()?,
            _ => reader.skip(tag)?,
        }
    }
    Ok(chunk)
}

fn stats(mut reader: Reader<'_>) -> WireResult<HeapStats> {
    let mut stats = HeapStats::default();
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (stats::NUM_ALLOCS, VARINT) => stats.allocations = reader.int()?,
            (stats::BYTES_IN_USE, VARINT) => stats.bytes_in_use = Bytes::from_wire(reader.int()?),
            (stats::PEAK_BYTES_IN_USE, VARINT) => stats.peak_bytes = Bytes::from_wire(reader.int()?),
            (stats::LARGEST_ALLOC_SIZE, VARINT) => stats.largest_allocation = Bytes::from_wire(reader.int()?),
            (stats::FRAGMENTATION_METRIC, FIXED32) => {
                let mut number = [0; 4];
                for byte in &mut number {
                    *byte = reader.byte()?;
                }
                stats.fragmentation = f32::from_le_bytes(number);
            }
            _ => reader.skip(tag)?,
        }
    }
    Ok(stats)
}

/// Chunks in use as live entries, merging those of equal operation and size.
fn entries(heap: &HeapMap, set: &mut LiveSet) {
    let device = set.strings.intern(&heap.allocator);
    let unnamed = set.strings.intern(IN_USE);
    let mut rows: Vec<(StringId, Bytes)> = heap
        .chunks
        .iter()
        .filter(|chunk| chunk.in_use)
        .map(|chunk| (if chunk.op == StringId(0) { unnamed } else { chunk.op }, chunk.size))
        .collect();
    rows.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    for equal in rows.chunk_by(|a, b| a == b) {
        let (kind, size) = equal[0];
        set.entries.push(LiveEntry {
            bytes: Bytes(size.0.saturating_mul(equal.len() as u64)),
            count: equal.len() as u64,
            kind,
            device,
            ..LiveEntry::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Reporter;
    use crate::source::Progress;

    fn len(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, bytes.len() as u8];
        out.extend_from_slice(bytes);
        out
    }

    #[test]
    fn chunks_bins_and_counters() {
        let mut dump = len(1, b"GPU_0_bfc");
        dump.extend(len(2, &[0x08, 3, 0x10, 100, 0x28, 2]));
        dump.extend(len(3, &[0x08, 16, 0x10, 64, 0x18, 60, 0x40, 1]));
        dump.extend(len(3, &[0x08, 80, 0x10, 32, 0x20, 0]));
        dump.extend(len(5, &[0x08, 7, 0x10, 64, 0x2d, 0, 0, 0, 0x3f]));
        assert!(recognises(&dump));
        let input = Input::from_bytes("x", dump.into()).expect("not empty");
        let (progress, reporter) = (Progress::default(), Reporter::default());
        let profile = BfcDecoder.decode(&input, Context { progress: &progress, reporter: &reporter }).expect("a dump");
        assert!(reporter.finish().is_empty());
        let live = profile.live.expect("a live set");
        let heap = live.heap.as_ref().expect("an address space");
        assert_eq!(heap.bins, [Bin { number: 3, bytes_in_use: Bytes(100), chunks: 2, ..Bin::default() }]);
        assert_eq!(heap.stats.map(|stats| (stats.allocations, stats.fragmentation)), Some((7, 0.5)));
        assert_eq!(live.entries.len(), 1);
        assert_eq!((live.entries[0].bytes, live.strings.get(live.entries[0].kind)), (Bytes(64), IN_USE));
    }

    #[test]
    fn other_protobufs_are_not_taken() {
        // An HLO module whose name is a printable string at the top would have a computation behind it.
        let mut other = len(1, b"jit_step");
        other.extend(len(2, b"main.5"));
        assert!(!recognises(&other));
    }
}
