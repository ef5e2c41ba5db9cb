//! Memory snapshots of PyTorch's caching allocator (`torch.cuda.memory._dump_snapshot`): pickles of plain values, by
//! Python or by PyTorch's own C++ pickler. They are streamed and never executed.

mod keys;
mod machine;
mod records;
mod settings;
mod value;
mod window;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{CachingDevice, CachingSnapshot, DeviceKind, Profile, StringId, counted, thousands};
use crate::source::{Input, Stage};
use keys as key;
use machine::{Halt, Machine, Root};
use records::Records;
use value::{Shared, Value};
use window::{Stop, Window};

/// Name of the format.
pub const FORMAT: &str = "PyTorch memory snapshot";

/// PyTorch's snapshots.
pub struct TorchSnapshotDecoder;

impl Decoder for TorchSnapshotDecoder {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::Run,
            words: "PyTorch's CUDA memory snapshot: allocation history with stacks",
            patterns: &["*.pickle", "*.pkl", "*.snap"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        // Any pickle, so that what is wrong with one is said in its own terms.
        match input.head() {
            [0x80, version, code, ..] => *version < 16 && is_opcode(*code),
            [0x80] => true,
            head => head.starts_with(b"(dp") || head.starts_with(b"(lp"),
        }
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        context.progress.begin(Stage::Decoding, input.size());
        let mut machine = Machine::new(Window::new(input.reader_to_cut()?, context.progress));
        let (root, cut) = match machine.run() {
            Ok(root) => (root, None),
            Err(Halt::Refused { what, offset }) => return Err(DecodeError::Damaged { what, offset }),
            Err(Halt::Stop(Stop::Source(error))) => return Err(error.into()),
            Err(Halt::Stop(Stop::End(offset))) => {
                let damaged = || DecodeError::Damaged { what: "the pickle ends too early".to_owned(), offset };
                (machine.salvage().ok_or_else(damaged)?, Some(offset))
            }
        };
        if cut.is_none() && machine.window.rest_matters() {
            context.reporter.info("What follows the end of the pickle is ignored");
        }
        let failure = machine.window.failure.take();
        let records = machine.records;
        note_left_out(&records, context);
        let snapshot = assemble(records, root, cut).ok_or_else(|| match cut {
            Some(offset) => DecodeError::Damaged { what: "the pickle ends too early".to_owned(), offset },
            None => DecodeError::Empty(
                "a Python pickle without `segments`; a PyTorch memory snapshot was expected".to_owned(),
            ),
        })?;
        if let Some(failure) = failure {
            context.reporter.damaged(format!("the last events are missing: {failure}"), None);
        } else if let Some(offset) = cut {
            context.reporter.truncated("the allocation history: its last events are missing", offset);
        }
        let mut profile = Profile { caching: Some(snapshot), ..Profile::default() };
        profile.device.kind = Some(DeviceKind::Gpu);
        profile.device.evidence = Some("a snapshot of PyTorch's caching allocator".to_owned());
        Ok(profile)
    }
}

/// Whether a pickle may begin with this opcode after its version.
fn is_opcode(code: u8) -> bool {
    matches!(code, 0x85..=0x97) || b"}](){N.KMJGXUCTBcPhjq0IFSV".contains(&code) || matches!(code, 0x82..=0x84)
}

/// Says what could not be understood.
fn note_left_out(records: &Records, context: Context<'_>) {
    if records.left_out > 0 {
        let text = match records.left_out {
            1 => "1 entry left out: its values are not those of a snapshot".to_owned(),
            many => format!("{} entries left out: their values are not those of a snapshot", thousands(many)),
        };
        context.reporter.warn(text, records.first_left_out);
    }
    let name = |(&name, &count): (&u32, &u64)| (records.snapshot.strings.get(StringId(name)), count);
    let mut unknown: Vec<(&str, u64)> = records.unknown_actions.iter().map(name).collect();
    unknown.sort_unstable();
    for (name, count) in unknown.into_iter().take(8) {
        context.reporter.info(format!("{} with the unknown action '{name}'", counted(count, "event")));
    }
}

/// The snapshot; `None` if the pickle is something else.
fn assemble(mut records: Records, root: Root, cut: Option<u64>) -> Option<CachingSnapshot> {
    let (segments, traces) = match root {
        Root::Segments(row) => (Some(row), None),
        Root::Nothing => (None, None),
        Root::Other => return None,
        Root::Dict(items) => {
            let find = |name: u32| items.iter().find(|(key, _)| key.text() == Some(name)).map(|&(_, value)| value);
            if find(key::SEGMENTS).is_none() && find(key::DEVICE_TRACES).is_none() {
                return None;
            }
            if let Some(Value::Shared(Shared::Map(row))) = find(key::ALLOCATOR_SETTINGS) {
                records.snapshot.settings = settings::read(&records, row);
            }
            let segments = match find(key::SEGMENTS) {
                Some(Value::Shared(Shared::Segments(row))) => Some(row),
                _ => None,
            };
            let traces = match find(key::DEVICE_TRACES) {
                Some(Value::Shared(Shared::Traces(row))) => records.traces.get(row as usize).cloned(),
                _ => None,
            };
            (segments, traces)
        }
    };
    let Records { mut snapshot, event_runs, segment_runs, .. } = records;
    snapshot.is_cut = cut.is_some();
    // Segments of pinned host memory have lists of their own.
    let ours = segments.and_then(|row| segment_runs.get(row as usize)).cloned().unwrap_or_default();
    let all = std::mem::take(&mut snapshot.segments);
    for (first, count) in ours {
        let rows = first as usize..first.saturating_add(count) as usize;
        snapshot.segments.extend(all.get(rows).unwrap_or_default().iter().cloned());
    }
    let mut devices: Vec<CachingDevice> = Vec::new();
    for (index, trace) in traces.unwrap_or_default().into_iter().enumerate() {
        let run = trace.and_then(|row| event_runs.get(row as usize)).and_then(|runs| runs.first()).copied();
        if let Some((first, count)) = run {
            let events = first as usize..first.saturating_add(count) as usize;
            devices.push(CachingDevice { index: u32::try_from(index).unwrap_or(u32::MAX), events });
        }
    }
    for segment in &snapshot.segments {
        if !devices.iter().any(|device| device.index == segment.device) {
            devices.push(CachingDevice { index: segment.device, events: 0..0 });
        }
    }
    devices.sort_by_key(|device| device.index);
    snapshot.devices = devices;
    let events = &mut snapshot.events;
    let len = events.len();
    for column in [&mut events.pool] {
        if !column.is_empty() {
            column.resize(len, 0);
        }
    }
    if !events.time_us.is_empty() {
        events.time_us.resize(len, 0);
    }
    Some(snapshot)
}
