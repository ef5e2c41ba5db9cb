//! IFRT's memory trace of a program (`xla.ifrt.ProgramMemoryTrace`): arrays, temporaries and code allocated and freed
//! on devices, in order; the file has no times.
//!
//! `1 program_name, 2 repeated Event{1 allocation_id, 2 kind, 3 created_by, 4 padded_size_in_bytes, 5 repeated
//! device_ids}`. It is undocumented whether a size is per device or for all devices; it is counted on each device.

mod fields;

use std::collections::HashMap;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use super::wire::{LEN, Reader, Result as WireResult, VARINT, field, text};
use crate::model::{AllocatorActivity, AllocatorEvent, AllocatorStats, AllocatorTrace, Clock, Profile};
use crate::source::Input;
use fields::{event, trace};

/// The trace.
pub struct ProgramMemoryTraceDecoder;

/// Events of all devices together beyond this number are left out.
const MAX_EVENTS: usize = 8_000_000;

/// Devices beyond this number are left out.
const MAX_DEVICES: usize = 4096;

/// Longest accepted program name in bytes.
const MAX_NAME: usize = 4096;

/// Events examined to recognise a file.
const LOOKED_AT: usize = 64;

/// Subject of an event, by `kind` modulo 3; kinds 3 and above are frees.
const REGIONS: [&str; 3] = ["array", "executable temporaries", "executable code"];

impl Decoder for ProgramMemoryTraceDecoder {
    fn format(&self) -> &'static str {
        "IFRT program memory trace"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::Run, words: "IFRT program memory trace", patterns: &["*.pb"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        recognises(input.head())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let mut history = History::default();
        if let Err(error) = read(Reader::new(&bytes, 0), &mut history, context)? {
            if history.devices.is_empty() {
                return Err(DecodeError::Damaged { what: error.what.to_owned(), offset: error.offset });
            }
            context.reporter.damaged(format!("the rest of the trace is left out: {}", error.what), Some(error.offset));
        }
        if history.devices.is_empty() {
            return Err(DecodeError::Empty("a memory trace without events on a device".to_owned()));
        }
        context.reporter.info(
            "Events have an order but no time; a size is counted on every device that its event names, as the format \
             does not say whether it is that of one device or of all",
        );
        let said = [
            (history.unknown_frees, "events free what was never allocated and change nothing"),
            (history.twice, "events allocate a number that is already allocated; the earlier one counts as freed"),
            (history.unknown_kinds, "events are of an unknown kind and change nothing"),
            (history.left_out, "events are beyond what is kept and left out"),
        ];
        for (count, what) in said.into_iter().filter(|(count, _)| *count > 0) {
            context.reporter.warn(format!("{count} {what}"), None);
        }
        let mut runtime: Vec<AllocatorTrace> = history.devices.into_iter().map(|device| device.trace).collect();
        runtime.sort_by(|a, b| a.name.len().cmp(&b.name.len()).then_with(|| a.name.cmp(&b.name)));
        Ok(Profile { name: history.program, runtime, ..Profile::default() })
    }
}

/// Whether the bytes are a program name followed only by events, some with text or a list of devices, unlike the bins
/// of an allocator dump, which contain only numbers.
fn recognises(head: &[u8]) -> bool {
    let mut reader = Reader::new(head, 0);
    let Ok(Some(tag)) = reader.tag() else { return false };
    if field(tag) != (trace::PROGRAM_NAME, LEN) {
        return false;
    }
    let Ok(name) = reader.bytes() else { return false };
    let is_name = |name: &[u8]| {
        name.len() <= MAX_NAME && std::str::from_utf8(name).is_ok_and(|name| !name.chars().any(char::is_control))
    };
    if name.is_empty() || !is_name(name) {
        return false;
    }
    let mut telling = false;
    for _ in 0..LOOKED_AT {
        let Ok(Some(tag)) = reader.tag() else { break };
        if field(tag) != (trace::EVENTS, LEN) {
            return false;
        }
        let Ok((bytes, whole)) = reader.bytes_or_rest() else { return false };
        if !whole {
            break;
        }
        let mut event = Reader::new(bytes, 0);
        loop {
            let tag = match event.tag() {
                Ok(Some(tag)) => tag,
                Ok(None) => break,
                Err(_) => return false,
            };
            let fits = match field(tag) {
                (event::ALLOCATION_ID | event::PADDED_SIZE_IN_BYTES, VARINT) => event.varint().is_ok(),
                (event::KIND, VARINT) => event.varint().is_ok_and(|kind| kind < 6),
                (event::CREATED_BY, LEN) => event.bytes().is_ok_and(|text| {
                    telling |= !text.is_empty();
                    is_name(text)
                }),
                (event::DEVICE_IDS, LEN) => {
                    telling = true;
                    event.numbers(tag, |_| {}).is_ok()
                }
                (event::DEVICE_IDS, VARINT) => event.varint().is_ok(),
                _ => false,
            };
            if !fits {
                return false;
            }
        }
    }
    telling
}

#[derive(Default)]
struct History {
    program: String,
    devices: Vec<Device>,
    rows: HashMap<i64, usize>,
    count: usize,
    events: i64,
    unknown_frees: u64,
    twice: u64,
    unknown_kinds: u64,
    left_out: u64,
}

#[derive(Default)]
struct Device {
    trace: AllocatorTrace,
    /// Bytes by allocation.
    live: HashMap<i64, i64>,
    stats: AllocatorStats,
}

/// One event as it stands in the file.
#[derive(Default)]
struct Event {
    id: i64,
    kind: i64,
    created_by: String,
    bytes: i64,
    devices: Vec<i64>,
}

/// Reads the whole trace; the inner error gives the place of any damage.
fn read(mut reader: Reader<'_>, history: &mut History, context: Context<'_>) -> Result<WireResult<()>, DecodeError> {
    let mut event = Event::default();
    loop {
        if history.events % 4096 == 0 {
            context.progress.check()?;
        }
        let step = reader.tag().and_then(|tag| {
            let Some(tag) = tag else { return Ok(false) };
            match field(tag) {
                (trace::PROGRAM_NAME, LEN) => history.program = text(reader.bytes()?),
                (trace::EVENTS, LEN) => {
                    event.read(reader.message()?)?;
                    history.add(&event);
                }
                _ => reader.skip(tag)?,
            }
            Ok(true)
        });
        match step {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

impl Event {
    fn read(&mut self, mut message: Reader<'_>) -> WireResult<()> {
        (self.id, self.kind, self.bytes) = (0, 0, 0);
        self.created_by.clear();
        self.devices.clear();
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (event::ALLOCATION_ID, VARINT) => self.id = message.int()?,
                (event::KIND, VARINT) => self.kind = message.int()?,
                (event::CREATED_BY, LEN) => self.created_by = text(message.bytes()?),
                (event::PADDED_SIZE_IN_BYTES, VARINT) => self.bytes = message.int()?.max(0),
                (event::DEVICE_IDS, VARINT | LEN) => message.numbers(tag, |device| self.devices.push(device))?,
                _ => message.skip(tag)?,
            }
        }
        Ok(())
    }
}

impl History {
    fn add(&mut self, event: &Event) {
        let at = self.events;
        self.events += 1;
        let (Ok(kind), true) = (usize::try_from(event.kind), (0..6).contains(&event.kind)) else {
            self.unknown_kinds += 1;
            return;
        };
        for &number in &event.devices {
            if self.count >= MAX_EVENTS {
                self.left_out += 1;
                continue;
            }
            let row = match self.rows.get(&number) {
                Some(&row) => row,
                None if self.devices.len() >= MAX_DEVICES => {
                    self.left_out += 1;
                    continue;
                }
                None => {
                    let trace = AllocatorTrace {
                        name: format!("device {number}"),
                        clock: Clock::Order,
                        ..AllocatorTrace::default()
                    };
                    // Free memory is not recorded, so fragmentation is unknown.
                    let stats = AllocatorStats { fragmentation: f64::NAN, ..AllocatorStats::default() };
                    self.devices.push(Device { trace, stats, ..Device::default() });
                    self.rows.insert(number, self.devices.len() - 1);
                    self.devices.len() - 1
                }
            };
            self.count += 1;
            let device = &mut self.devices[row];
            let stats = &mut device.stats;
            let (activity, bytes) = if kind < 3 {
                if let Some(before) = device.live.insert(event.id, event.bytes) {
                    stats.heap = stats.heap.saturating_sub(before);
                    self.twice += 1;
                }
                stats.heap = stats.heap.saturating_add(event.bytes);
                (AllocatorActivity::Allocation, event.bytes)
            } else {
                let freed = device.live.remove(&event.id);
                self.unknown_frees += u64::from(freed.is_none());
                stats.heap = stats.heap.saturating_sub(freed.unwrap_or(0)).max(0);
                (AllocatorActivity::Deallocation, freed.unwrap_or(0))
            };
            stats.lifetime_peak = stats.lifetime_peak.max(stats.heap);
            let strings = &mut device.trace.strings;
            let nothing = strings.intern("");
            device.trace.events.push(AllocatorEvent {
                time_ps: at,
                activity,
                stats: *stats,
                requested: bytes,
                allocated: bytes,
                address: event.id as u64,
                op: strings.intern(&event.created_by),
                region: strings.intern(REGIONS[kind % 3]),
                data_type: nothing,
                shape: nothing,
                step: -1,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::Reporter;
    use crate::source::Progress;

    fn varint(out: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn number(out: &mut Vec<u8>, field: u64, value: u64) {
        if value != 0 {
            varint(out, field << 3);
            varint(out, value);
        }
    }

    fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
        varint(out, field << 3 | 2);
        varint(out, value.len() as u64);
        out.extend(value);
    }

    /// (id, kind, created by, bytes, devices)
    type Made = (u64, u64, &'static str, u64, Vec<u64>);

    fn file(name: &str, events: &[Made], packed: bool) -> Vec<u8> {
        let mut out = Vec::new();
        bytes(&mut out, 1, name.as_bytes());
        for (id, kind, created_by, size, devices) in events {
            let mut event = Vec::new();
            number(&mut event, 1, *id);
            number(&mut event, 2, *kind);
            if !created_by.is_empty() {
                bytes(&mut event, 3, created_by.as_bytes());
            }
            number(&mut event, 4, *size);
            if packed {
                let mut list = Vec::new();
                for &device in devices {
                    varint(&mut list, device);
                }
                bytes(&mut event, 5, &list);
            } else {
                for &device in devices {
                    varint(&mut event, 5 << 3);
                    varint(&mut event, device);
                }
            }
            bytes(&mut out, 2, &event);
        }
        out
    }

    fn decoded(bytes: Vec<u8>) -> Result<(Profile, Vec<String>), DecodeError> {
        let input = Input::from_bytes("unknown.bin", bytes.into())?;
        let (progress, reporter) = (Progress::default(), Reporter::default());
        let profile = ProgramMemoryTraceDecoder.decode(&input, Context { progress: &progress, reporter: &reporter })?;
        Ok((profile, reporter.finish().iter().map(ToString::to_string).collect()))
    }

    fn example() -> Vec<Made> {
        vec![
            (1, 0, "jit(step)/w", 1000, vec![0, 1]),
            (2, 1, "jit_step", 500, vec![0]),
            (3, 2, "jit_step", 64, vec![0, 1]),
            (2, 4, "", 0, vec![0]),
            (1, 3, "", 0, vec![0, 1]),
            (9, 3, "", 0, vec![1]),
        ]
    }

    #[test]
    fn histories_by_device() {
        for packed in [true, false] {
            let file = file("jit_step", &example(), packed);
            let (profile, notes) = decoded(file.clone()).expect("a trace");
            assert_eq!(profile.name, "jit_step");
            let names: Vec<&str> = profile.runtime.iter().map(|trace| trace.name.as_str()).collect();
            assert_eq!(names, ["device 0", "device 1"]);
            let heap = |row: usize| -> Vec<(i64, i64)> {
                profile.runtime[row].events.iter().map(|event| (event.time_ps, event.stats.heap)).collect()
            };
            assert_eq!(heap(0), [(0, 1000), (1, 1500), (2, 1564), (3, 1064), (4, 64)]);
            assert_eq!(heap(1), [(0, 1000), (2, 1064), (4, 64), (5, 64)]);
            assert!(notes.iter().any(|note| note.contains("1 events free what was never allocated")), "{notes:?}");
            // By content, and by nobody else.
            let input = Input::from_bytes("unknown.bin", file.into()).expect("bytes");
            let known: Vec<&str> =
                crate::decode::DECODERS.iter().filter(|d| d.recognises(&input)).map(|d| d.format()).collect();
            assert_eq!(known.first(), Some(&"IFRT program memory trace"), "{known:?}");
        }
    }

    #[test]
    fn bins_and_other_messages_are_not_taken_for_events() {
        let mut bins = Vec::new();
        bytes(&mut bins, 1, b"GPU_0_bfc");
        let mut bin = Vec::new();
        (1..=5).for_each(|field| number(&mut bin, field, field));
        bytes(&mut bins, 2, &bin);
        assert!(!recognises(&bins));
        assert!(!recognises(b""));
        assert!(!recognises(&file("", &example(), true)), "a program has a name");
        assert!(!recognises(&file("a\u{1}b", &example(), true)));
        assert!(!recognises(&file("jit_step", &[(1, 6, "x", 1, vec![0])], true)), "no such kind");
        assert!(!recognises(b"\x0a\x03abc"), "no event at all");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = recognises(&bytes);
            let _ = decoded(bytes);
        }

        #[test]
        fn damaged_traces_are_survived(at in 0usize..200, to in any::<u8>(), cut in 0usize..200) {
            let mut file = file("jit_step", &example(), true);
            let at = at % file.len();
            file[at] = to;
            file.truncate(file.len() - cut % file.len());
            let _ = recognises(&file);
            let _ = decoded(file);
        }

        #[test]
        fn use_is_what_is_allocated_and_not_freed(
            events in proptest::collection::vec((0u64..6, 0u64..6, 0u64..1 << 40, 0u64..3), 1..60),
        ) {
            let made: Vec<Made> = events.iter().map(|&(id, kind, size, on)| (id, kind, "f", size, vec![on])).collect();
            let (profile, _) = decoded(file("jit_f", &made, true)).expect("a trace");
            for on in 0..3u64 {
                let mut live = std::collections::BTreeMap::new();
                let mut expected = Vec::new();
                for &(id, kind, size, device) in &events {
                    if device != on {
                        continue;
                    }
                    if kind < 3 { live.insert(id, size); } else { live.remove(&id); }
                    expected.push(live.values().sum::<u64>() as i64);
                }
                let name = format!("device {on}");
                let trace = profile.runtime.iter().find(|trace| trace.name == name);
                let heap: Vec<i64> = trace.map(|t| t.events.iter().map(|e| e.stats.heap).collect()).unwrap_or_default();
                prop_assert_eq!(heap, expected);
            }
        }
    }
}
