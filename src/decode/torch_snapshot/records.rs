//! Turns finished dicts and lists into rows of the model: events, segments, blocks, frames, annotations.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use super::keys as key;
use super::value::{Shared, Value};
use crate::model::{
    Annotation, Block, BlockState, CachingAction, CachingSnapshot, Frame, Segment, SizeClass, StackId, StringId,
};

/// Lines from this number on are offsets in a library, not lines.
const OFFSETS_FROM: u64 = 10_000_000;

/// Most dicts of unknown meaning that are kept.
const MAX_MAPS: usize = 4096;

/// A dict that is no known record.
#[derive(Debug, Default)]
pub struct Map {
    /// (key, value).
    pub items: Vec<(Value, Value)>,
    /// How deep it is nested.
    pub depth: u8,
}

/// Rows read so far.
#[derive(Debug)]
pub struct Records {
    /// The rows.
    pub snapshot: CachingSnapshot,
    /// Runs of events, of lists of events.
    pub event_runs: Vec<Vec<(u32, u32)>>,
    /// Rows of `event_runs`, of lists of such lists; `None` for an empty list.
    pub traces: Vec<Vec<Option<u32>>>,
    /// Runs of segments, of lists of segments.
    pub segment_runs: Vec<Vec<(u32, u32)>>,
    /// Runs of blocks, of lists of blocks.
    block_runs: Vec<Vec<(u32, u32)>>,
    /// (requested bytes, stack) of the tenants of blocks.
    tenants: Vec<(u64, StackId)>,
    /// Two numbers each.
    pairs: Vec<(i64, i64)>,
    pair_rows: HashMap<(i64, i64), u32>,
    /// Dicts of unknown meaning.
    pub maps: Vec<Map>,
    streams: HashMap<i64, u16>,
    pools: HashMap<(i64, i64), u16>,
    frames: HashMap<Frame, u32>,
    hasher: RandomState,
    stacks: HashMap<u64, u32>,
    /// The previous stack with the same hash.
    same_hash: Vec<u32>,
    scratch: Vec<u32>,
    /// Entries that could not be understood, and the offset of the first.
    pub left_out: u64,
    /// See [`Self::left_out`].
    pub first_left_out: Option<u64>,
    /// Names of unknown actions with their counts.
    pub unknown_actions: HashMap<u32, u64>,
}

impl Records {
    /// No rows.
    pub fn new() -> Self {
        Self {
            snapshot: CachingSnapshot { strings: key::interned(), ..CachingSnapshot::default() },
            event_runs: Vec::new(),
            traces: Vec::new(),
            segment_runs: Vec::new(),
            block_runs: Vec::new(),
            tenants: Vec::new(),
            pairs: Vec::new(),
            pair_rows: HashMap::new(),
            maps: Vec::new(),
            streams: HashMap::new(),
            pools: HashMap::new(),
            frames: HashMap::new(),
            hasher: RandomState::new(),
            stacks: HashMap::new(),
            same_hash: Vec::new(),
            scratch: Vec::new(),
            left_out: 0,
            first_left_out: None,
            unknown_actions: HashMap::new(),
        }
    }

    /// The two numbers of a pair.
    fn pair(&self, value: Value) -> Option<(i64, i64)> {
        match value {
            Value::Shared(Shared::Pair(row)) => self.pairs.get(row as usize).copied(),
            _ => None,
        }
    }

    /// Remembers two numbers.
    pub fn intern_pair(&mut self, pair: (i64, i64)) -> u32 {
        *self.pair_rows.entry(pair).or_insert_with(|| {
            self.pairs.push(pair);
            self.pairs.len() as u32 - 1
        })
    }

    /// Notes an entry that could not be understood.
    fn leave_out(&mut self, offset: u64) -> Shared {
        self.left_out += 1;
        self.first_left_out.get_or_insert(offset);
        Shared::Other(1)
    }

    /// The row that a dict becomes; `None` if its keys are of no known record.
    pub fn dict(&mut self, items: &[(Value, Value)], offset: u64) -> Option<Shared> {
        for (name, _) in items {
            return Some(match name.text() {
                Some(key::ACTION) => self.event(items, offset),
                Some(key::FILENAME) => self.frame(items),
                Some(key::BLOCKS | key::TOTAL_SIZE) => self.segment(items, offset),
                Some(key::STATE) => self.block(items, offset),
                Some(key::REAL_SIZE) => self.tenant(items),
                Some(key::STAGE) => self.annotation(items, offset),
                _ => continue,
            });
        }
        None
    }

    /// A dict that is no record.
    pub fn map(&mut self, items: Vec<(Value, Value)>, depth: u8) -> Shared {
        if self.maps.len() >= MAX_MAPS {
            return Shared::Other(depth);
        }
        self.maps.push(Map { items, depth });
        Shared::Map(self.maps.len() as u32 - 1)
    }

    /// What a list of runs becomes.
    pub fn list(&mut self, runs: &[(Value, u32)], depth: u8) -> Shared {
        let Some(&(first, _)) = runs.first() else { return Shared::Empty };
        if let [(Value::Int(a), 1), (Value::Int(b), 1)] = *runs {
            return Shared::Pair(self.intern_pair((a, b)));
        }
        let rows = |row: fn(Shared) -> Option<u32>| -> Vec<(u32, u32)> {
            let of = |&(value, count): &(Value, u32)| match value {
                Value::Shared(shared) => row(shared).map(|first| (first, count)),
                _ => None,
            };
            runs.iter().filter_map(of).collect()
        };
        // The first known item decides; anything else in the list is left out.
        let known = runs.iter().find_map(|&(value, _)| match value {
            Value::Shared(shared @ (Shared::Event(_) | Shared::Segment(_) | Shared::Block(_))) => Some(shared),
            _ => None,
        });
        match known {
            Some(Shared::Event(_)) => {
                let of = rows(|shared| if let Shared::Event(row) = shared { Some(row) } else { None });
                self.event_runs.push(of);
                return Shared::Events(self.event_runs.len() as u32 - 1);
            }
            Some(Shared::Segment(_)) => {
                let of = rows(|shared| if let Shared::Segment(row) = shared { Some(row) } else { None });
                self.segment_runs.push(of);
                return Shared::Segments(self.segment_runs.len() as u32 - 1);
            }
            Some(_) => {
                let of = rows(|shared| if let Shared::Block(row) = shared { Some(row) } else { None });
                self.block_runs.push(of);
                return Shared::Blocks(self.block_runs.len() as u32 - 1);
            }
            None => {}
        }
        let all = |fits: fn(Shared) -> bool| {
            runs.iter().all(|&(value, _)| if let Value::Shared(shared) = value { fits(shared) } else { false })
        };
        match first {
            Value::Shared(Shared::Frame(_)) if all(|shared| matches!(shared, Shared::Frame(_))) => {
                self.scratch.clear();
                for &(value, _) in runs {
                    if let Value::Shared(Shared::Frame(row)) = value {
                        self.scratch.push(row);
                    }
                }
                Shared::Stack(self.stack())
            }
            Value::Shared(Shared::Tenant(row)) => Shared::Tenants(row),
            Value::Shared(Shared::Annotation(_)) => Shared::Annotations,
            Value::Shared(Shared::Events(_) | Shared::Empty)
                if all(|shared| matches!(shared, Shared::Events(_) | Shared::Empty)) =>
            {
                let of = runs.iter().map(|&(value, _)| match value {
                    Value::Shared(Shared::Events(row)) => Some(row),
                    _ => None,
                });
                self.traces.push(of.collect());
                Shared::Traces(self.traces.len() as u32 - 1)
            }
            _ => Shared::Other(depth),
        }
    }

    /// The row of the stack in `scratch`.
    fn stack(&mut self) -> u32 {
        let stacks = &mut self.snapshot.stacks;
        let hash = self.hasher.hash_one(&self.scratch[..]);
        let newest = self.stacks.get(&hash).copied();
        let mut candidate = newest;
        while let Some(row) = candidate {
            if stacks.rows(StackId(row)) == self.scratch {
                return row;
            }
            candidate = self.same_hash.get(row as usize).copied().filter(|&row| row != u32::MAX);
        }
        let row = stacks.ends.len() as u32;
        stacks.flat.extend_from_slice(&self.scratch);
        stacks.ends.push(stacks.flat.len());
        self.same_hash.push(newest.unwrap_or(u32::MAX));
        self.stacks.insert(hash, row);
        row
    }

    fn frame(&mut self, items: &[(Value, Value)]) -> Shared {
        let mut frame = Frame::default();
        for &(name, value) in items {
            match name.text() {
                Some(key::NAME) => frame.name = StringId(value.text().unwrap_or(0)),
                Some(key::FILENAME) => frame.file = StringId(value.text().unwrap_or(0)),
                Some(key::LINE) => {
                    let line = value.unsigned().filter(|&line| line < OFFSETS_FROM).unwrap_or(0);
                    frame.line = u32::try_from(line).unwrap_or(0);
                }
                _ => {}
            }
        }
        let frames = &mut self.snapshot.stacks.frames;
        let row = *self.frames.entry(frame).or_insert_with(|| {
            frames.push(frame);
            frames.len() as u32 - 1
        });
        Shared::Frame(row)
    }

    fn event(&mut self, items: &[(Value, Value)], offset: u64) -> Shared {
        let (mut action, mut addr, mut free, mut size) = (None, None, None, None);
        let (mut stream, mut time, mut pool) = (0, None, None);
        let (mut stack, mut metadata) = (StackId::NONE, None);
        for &(name, value) in items {
            match name.text() {
                Some(key::ACTION) => action = value.text(),
                Some(key::ADDR) => addr = value.unsigned(),
                Some(key::DEVICE_FREE) => free = value.unsigned(),
                Some(key::SIZE) => size = value.unsigned(),
                Some(key::STREAM) => stream = value.signed().unwrap_or(0),
                Some(key::FRAMES) => stack = stack_of(value),
                Some(key::TIME_US) => time = value.signed(),
                Some(key::POOL_ID) => pool = self.pair(value),
                Some(key::USER_METADATA) => metadata = value.text().filter(|&text| text != 0),
                _ => {}
            }
        }
        let Some(name) = action else { return self.leave_out(offset) };
        let action = match name {
            key::ALLOC => CachingAction::Alloc,
            key::FREE_REQUESTED => CachingAction::FreeRequested,
            key::FREE_COMPLETED => CachingAction::FreeCompleted,
            key::SEGMENT_ALLOC => CachingAction::SegmentAlloc,
            key::SEGMENT_FREE => CachingAction::SegmentFree,
            key::SEGMENT_MAP => CachingAction::SegmentMap,
            key::SEGMENT_UNMAP => CachingAction::SegmentUnmap,
            key::OOM => CachingAction::OutOfMemory,
            key::SNAPSHOT => CachingAction::Snapshot,
            key::ANNOTATE => CachingAction::Annotate,
            _ => {
                *self.unknown_actions.entry(name).or_default() += 1;
                CachingAction::Other
            }
        };
        let address = if action == CachingAction::OutOfMemory { free } else { addr };
        let (address, size) = match action {
            CachingAction::Snapshot | CachingAction::Other | CachingAction::Annotate => {
                (address.unwrap_or(0), size.unwrap_or(0))
            }
            _ => match (address, size) {
                // A range that wraps around the address space is none.
                (Some(address), Some(size)) if address.checked_add(size).is_some() => (address, size),
                _ => return self.leave_out(offset),
            },
        };
        let stream = self.stream(stream);
        let pool = pool.map(|pool| self.pool(pool));
        let events = &mut self.snapshot.events;
        let row = events.len();
        let Ok(number) = u32::try_from(row) else { return self.leave_out(offset) };
        events.action.push(action);
        events.address.push(address);
        events.size.push(size);
        events.stream.push(stream);
        events.stack.push(stack);
        if let Some(pool) = pool {
            events.pool.resize(row, 0);
            events.pool.push(pool);
        }
        if let Some(time) = time {
            events.time_us.resize(row, 0);
            events.time_us.push(time);
        }
        if let Some(text) = metadata {
            self.snapshot.metadata.push((number, StringId(text)));
        }
        Shared::Event(number)
    }

    /// The row of a stream. A program has a few.
    fn stream(&mut self, stream: i64) -> u16 {
        let streams = &mut self.snapshot.streams;
        *self.streams.entry(stream).or_insert_with(|| {
            if streams.len() < usize::from(u16::MAX) {
                streams.push(stream);
            }
            streams.len() as u16 - 1
        })
    }

    /// The row of a pool.
    fn pool(&mut self, pool: (i64, i64)) -> u16 {
        let pools = &mut self.snapshot.pools;
        if pools.is_empty() {
            // Events without a pool are in the default one, which is row 0.
            pools.push((0, 0));
            self.pools.insert((0, 0), 0);
        }
        *self.pools.entry(pool).or_insert_with(|| {
            if pools.len() < usize::from(u16::MAX) {
                pools.push(pool);
            }
            pools.len() as u16 - 1
        })
    }

    fn segment(&mut self, items: &[(Value, Value)], offset: u64) -> Shared {
        let mut segment = Segment::default();
        let (mut address, mut size, mut blocks) = (None, None, None);
        for &(name, value) in items {
            match name.text() {
                Some(key::DEVICE) => segment.device = value.unsigned().and_then(|v| u32::try_from(v).ok()).unwrap_or(0),
                Some(key::ADDRESS) => address = value.unsigned(),
                Some(key::TOTAL_SIZE) => size = value.unsigned(),
                Some(key::STREAM) => segment.stream = value.signed().unwrap_or(0),
                Some(key::SEGMENT_TYPE) if value.text() == Some(key::SMALL) => segment.class = SizeClass::Small,
                Some(key::SEGMENT_POOL_ID) => segment.pool = self.pair(value).unwrap_or_default(),
                Some(key::IS_EXPANDABLE) => segment.is_expandable = value == Value::Bool(true),
                Some(key::FRAMES) => segment.stack = stack_of(value),
                Some(key::BLOCKS) => blocks = Some(value),
                _ => {}
            }
        }
        let (Some(address), Some(size)) = (address, size) else { return self.leave_out(offset) };
        if address.checked_add(size).is_none() {
            return self.leave_out(offset);
        }
        (segment.address, segment.size) = (address, size);
        if let Some(Value::Shared(Shared::Blocks(row))) = blocks {
            // The blocks of one segment follow each other; what repeats blocks of another does not belong to it.
            let (first, count) =
                self.block_runs.get(row as usize).and_then(|runs| runs.first()).copied().unwrap_or((0, 0));
            segment.blocks = first..first.saturating_add(count);
            let mut at = address;
            let rows = first as usize..first.saturating_add(count) as usize;
            for block in self.snapshot.blocks.get_mut(rows).unwrap_or_default() {
                if block.address == 0 {
                    block.address = at;
                }
                at = block.address.saturating_add(block.size);
            }
            self.block_runs.truncate(row as usize);
        }
        self.snapshot.segments.push(segment);
        Shared::Segment(self.snapshot.segments.len() as u32 - 1)
    }

    fn block(&mut self, items: &[(Value, Value)], offset: u64) -> Shared {
        let mut block = Block::default();
        let (mut size, mut requested, mut tenant) = (None, None, None);
        for &(name, value) in items {
            match name.text() {
                Some(key::SIZE) => size = value.unsigned(),
                Some(key::REQUESTED_SIZE) => requested = value.unsigned(),
                Some(key::ADDRESS | key::ADDR) => block.address = value.unsigned().unwrap_or(0),
                Some(key::STATE) => {
                    block.state = match value.text() {
                        Some(key::ACTIVE_ALLOCATED) => BlockState::Allocated,
                        Some(key::ACTIVE_PENDING_FREE | key::ACTIVE_AWAITING_FREE) => BlockState::Pending,
                        _ => BlockState::Inactive,
                    };
                }
                Some(key::FRAMES) => block.stack = stack_of(value),
                Some(key::HISTORY) => {
                    if let Value::Shared(Shared::Tenants(row)) = value {
                        tenant = self.tenants.get(row as usize).copied();
                    }
                }
                _ => {}
            }
        }
        let Some(size) = size.filter(|&size| block.address.checked_add(size).is_some()) else {
            return self.leave_out(offset);
        };
        block.size = size;
        block.requested = requested.or(tenant.map(|(bytes, _)| bytes)).unwrap_or(size);
        if !block.stack.is_known() {
            block.stack = tenant.map_or(StackId::NONE, |(_, stack)| stack);
        }
        self.snapshot.blocks.push(block);
        Shared::Block(self.snapshot.blocks.len() as u32 - 1)
    }

    fn tenant(&mut self, items: &[(Value, Value)]) -> Shared {
        let (mut bytes, mut stack) = (0, StackId::NONE);
        for &(name, value) in items {
            match name.text() {
                Some(key::REAL_SIZE) => bytes = value.unsigned().unwrap_or(0),
                Some(key::FRAMES) => stack = stack_of(value),
                _ => {}
            }
        }
        self.tenants.push((bytes, stack));
        Shared::Tenant(self.tenants.len() as u32 - 1)
    }

    fn annotation(&mut self, items: &[(Value, Value)], offset: u64) -> Shared {
        let (mut is_start, mut text, mut device, mut time) = (None, 0, 0, None);
        for &(name, value) in items {
            match name.text() {
                Some(key::STAGE) => {
                    is_start = match value.text() {
                        Some(key::START) => Some(true),
                        Some(key::END) => Some(false),
                        _ => None,
                    };
                }
                Some(key::NAME) => text = value.text().unwrap_or(0),
                Some(key::DEVICE) => device = value.unsigned().and_then(|v| u32::try_from(v).ok()).unwrap_or(0),
                Some(key::TIME_US) => time = value.signed(),
                _ => {}
            }
        }
        let (Some(is_start), Some(time_us)) = (is_start, time) else { return self.leave_out(offset) };
        self.snapshot.annotations.push(Annotation { name: StringId(text), is_start, device, time_us });
        Shared::Annotation(self.snapshot.annotations.len() as u32 - 1)
    }
}

/// The stack that a value is.
fn stack_of(value: Value) -> StackId {
    match value {
        Value::Shared(Shared::Stack(row)) => StackId(row),
        _ => StackId::NONE,
    }
}
