//! Allocator events of the host plane: `MemoryAllocation` and `MemoryDeallocation`.

use std::collections::HashMap;

use super::plane::{Event, Plane, Value, events};
use super::steps::{self, Node};
use crate::decode::reporter::Reporter;
use crate::model::{AllocatorActivity, AllocatorEvent, AllocatorTrace};
use crate::source::{Cancelled, Progress};

/// Host events beyond this number are not grouped into steps.
const MAX_GROUPED: usize = 50_000_000;

/// What a statistic of an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Allocator,
    Index,
    Reserved,
    Allocated,
    Available,
    Fragmentation,
    LifetimePeak,
    Requested,
    ChunkBytes,
    Address,
    Op,
    Group,
    Region,
    DataType,
    Shape,
    RootLevel,
    ProducerKind,
    Producer,
    ConsumerKind,
    Consumer,
}

fn meaning(name: &str) -> Option<Meaning> {
    Some(match name {
        "allocator_name" => Meaning::Allocator,
        "index_on_host" | "device_ordinal" => Meaning::Index,
        "bytes_reserved" => Meaning::Reserved,
        "bytes_allocated" => Meaning::Allocated,
        "bytes_available" => Meaning::Available,
        "fragmentation" => Meaning::Fragmentation,
        "peak_bytes_in_use" => Meaning::LifetimePeak,
        "requested_bytes" => Meaning::Requested,
        "allocation_bytes" => Meaning::ChunkBytes,
        "addr" => Meaning::Address,
        "tf_op" => Meaning::Op,
        "group_id" => Meaning::Group,
        "region_type" => Meaning::Region,
        "data_type" => Meaning::DataType,
        "shape" => Meaning::Shape,
        "_r" => Meaning::RootLevel,
        "_pt" => Meaning::ProducerKind,
        "_p" => Meaning::Producer,
        "_ct" => Meaning::ConsumerKind,
        "_c" => Meaning::Consumer,
        _ => return None,
    })
}

/// Reads the allocator histories of the host plane, sorted by the allocator's name.
///
/// # Errors
/// When it was cancelled.
pub fn read(plane: &Plane<'_>, progress: &Progress, reporter: &Reporter) -> Result<Vec<AllocatorTrace>, Cancelled> {
    let names = plane.event_names();
    let kinds: HashMap<i64, AllocatorActivity> = names
        .iter()
        .filter_map(|(&id, name)| match name.as_str() {
            "MemoryAllocation" => Some((id, AllocatorActivity::Allocation)),
            "MemoryDeallocation" => Some((id, AllocatorActivity::Deallocation)),
            _ => None,
        })
        .collect();
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let meanings: HashMap<i64, Meaning, foldhash::fast::RandomState> =
        plane.stat_names.iter().filter_map(|(&id, name)| Some((id, meaning(name)?))).collect();
    let mut nodes = Vec::new();
    let mut lines = Vec::new();
    let mut memory: Vec<(usize, Event<'_>, AllocatorActivity)> = Vec::new();
    for &line in &plane.lines {
        progress.check()?;
        let mut of_line = Vec::new();
        if let Err((name, error)) = events(line, |event| of_line.push(event)) {
            reporter.damaged(format!("the thread '{name}' stops here: {}", error.what), Some(error.offset));
        }
        of_line.sort_by_key(|event| (event.offset_ps, std::cmp::Reverse(event.duration_ps)));
        for event in of_line {
            if let Some(&kind) = kinds.get(&event.metadata) {
                memory.push((nodes.len(), event, kind));
            }
            if nodes.len() < MAX_GROUPED {
                nodes.push(node(&event, &meanings));
            }
        }
        lines.push(nodes.len());
    }
    if nodes.len() >= MAX_GROUPED {
        reporter.warn("the host has too many events to find the steps of all of them", None);
    }
    steps::group(&mut nodes, &lines);
    progress.check()?;
    Ok(traces(plane, &memory, &nodes, &meanings, reporter))
}

fn node(event: &Event<'_>, meanings: &HashMap<i64, Meaning, foldhash::fast::RandomState>) -> Node {
    let mut node = Node { start: event.offset_ps, duration: event.duration_ps, ..Node::default() };
    let (mut producer, mut consumer) = ((None, None), (None, None));
    // A damaged statistic is reported where the event itself is read.
    let _ = event.stats(|id, value| match meanings.get(&id) {
        Some(Meaning::RootLevel) => node.root_level = value.number(),
        Some(Meaning::Group) => node.group = Some(value.number()),
        Some(Meaning::ProducerKind) => producer.0 = Some(value.number()),
        Some(Meaning::Producer) => producer.1 = Some(value.number() as u64),
        Some(Meaning::ConsumerKind) => consumer.0 = Some(value.number()),
        Some(Meaning::Consumer) => consumer.1 = Some(value.number() as u64),
        _ => {}
    });
    node.producer = producer.0.zip(producer.1);
    node.consumer = consumer.0.zip(consumer.1);
    node
}

fn traces(
    plane: &Plane<'_>,
    memory: &[(usize, Event<'_>, AllocatorActivity)],
    nodes: &[Node],
    meanings: &HashMap<i64, Meaning, foldhash::fast::RandomState>,
    reporter: &Reporter,
) -> Vec<AllocatorTrace> {
    let mut traces: Vec<AllocatorTrace> = Vec::new();
    for (at, event, activity) in memory {
        let mut allocator = String::new();
        let mut texts: [String; 4] = Default::default();
        let mut data_type = None;
        let mut read = AllocatorEvent {
            time_ps: event.offset_ps,
            activity: *activity,
            step: nodes.get(*at).and_then(|node| node.group).unwrap_or(-1),
            ..AllocatorEvent::default()
        };
        let result = event.stats(|id, value| {
            let Some(meaning) = meanings.get(&id) else { return };
            let number = value.number();
            match meaning {
                Meaning::Allocator | Meaning::Index => allocator = plane.text_of(value),
                Meaning::Reserved => read.stats.stack = number,
                Meaning::Allocated => read.stats.heap = number,
                Meaning::Available => read.stats.free = number,
                Meaning::Fragmentation => read.stats.fragmentation = value.double(),
                Meaning::LifetimePeak => read.stats.lifetime_peak = number,
                Meaning::Requested => read.requested = number,
                Meaning::ChunkBytes => read.allocated = number,
                Meaning::Address => read.address = number as u64,
                Meaning::Op => texts[0] = plane.text_of(value),
                Meaning::Region => texts[1] = plane.text_of(value),
                Meaning::DataType => {
                    data_type = Some(match value {
                        Value::Text(_) | Value::Reference(_) => plane.text_of(value),
                        _ => tensorflow_type(number),
                    });
                }
                Meaning::Shape => texts[3] = plane.text_of(value),
                _ => {}
            }
        });
        if let Err(error) = result {
            reporter.damaged(format!("an allocator event is damaged: {}", error.what), Some(error.offset));
            continue;
        }
        texts[2] = data_type.unwrap_or_else(|| tensorflow_type(0));
        let found = traces.iter().position(|trace| trace.name == allocator);
        let row = found.unwrap_or_else(|| {
            traces.push(AllocatorTrace { name: allocator, ..AllocatorTrace::default() });
            traces.len() - 1
        });
        let trace = &mut traces[row];
        let [op, region, data_type, shape] = texts.map(|text| trace.strings.intern(&text));
        trace.events.push(AllocatorEvent { op, region, data_type, shape, ..read });
    }
    traces.sort_by(|a, b| a.name.cmp(&b.name));
    traces
}

/// TensorFlow's name of a `DataType`, references included.
#[must_use]
pub fn tensorflow_type(number: i64) -> String {
    const NAMES: &[&str] = &[
        "INVALID",
        "float",
        "double",
        "int32",
        "uint8",
        "int16",
        "int8",
        "string",
        "complex64",
        "int64",
        "bool",
        "qint8",
        "quint8",
        "qint32",
        "bfloat16",
        "qint16",
        "quint16",
        "uint16",
        "complex128",
        "half",
        "resource",
        "variant",
        "uint32",
        "uint64",
        "float8_e5m2",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e4m3b11fnuz",
        "float8_e5m2fnuz",
        "int4",
        "uint4",
        "int2",
        "uint2",
    ];
    let is_reference = number > 100;
    let plain = if is_reference { number - 100 } else { number };
    match usize::try_from(plain).ok().and_then(|i| NAMES.get(i)) {
        Some(name) if is_reference => format!("{name}_ref"),
        Some(name) => (*name).to_owned(),
        None => format!("unknown dtype enum ({number})"),
    }
}
