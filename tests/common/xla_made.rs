//! Synthetic traces, dumps and profiles with known contents, for formats of which real files were not available in
//! every form: the wire format is written by hand, with the fields of the format's description.
#![allow(dead_code, reason = "each user takes its own part")]

/// A protobuf message under construction.
#[derive(Debug, Clone, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds an integer field.
    pub fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    /// Adds a string or bytes field.
    pub fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.as_ref().len() as u64);
        self.0.extend_from_slice(value.as_ref());
        self
    }

    /// Adds a message field.
    pub fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// Adds a double field.
    pub fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds a float field.
    pub fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
}

/// An XSpace trace without runs, with HLO modules only: name, number, HLO proto.
pub fn trace_of_modules(modules: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let mut plane = Message::default().bytes(2, "/host:metadata");
    for (name, id, proto) in modules {
        let full = format!("{name}({id})");
        let statistic = Message::default().number(1, 1).bytes(6, proto);
        let entry = Message::default().number(1, *id).bytes(2, &full).bytes(4, &full).message(5, &statistic);
        plane = plane.message(4, &Message::default().number(1, *id).message(2, &entry));
    }
    let name = Message::default().number(1, 1).bytes(2, "Hlo Proto");
    plane = plane.message(5, &Message::default().number(1, 1).message(2, &name));
    Message::default().message(1, &plane).0
}

/// Names of the statistics of allocator events; the id of a name is its position.
const STATS: [&str; 13] = [
    "allocator_name",
    "bytes_reserved",
    "bytes_allocated",
    "bytes_available",
    "fragmentation",
    "peak_bytes_in_use",
    "requested_bytes",
    "allocation_bytes",
    "addr",
    "tf_op",
    "group_id",
    "region_type",
    "shape",
];

/// Size of a synthetic allocator history.
#[derive(Debug, Clone)]
pub struct History {
    /// Number of training steps.
    pub steps: u64,
    /// Number of temporary arrays per step.
    pub arrays: u64,
    /// Bytes that each step allocates and never frees.
    pub leak: u64,
    /// Number of devices on which programs run.
    pub devices: u64,
}

const MIB: u64 = 1 << 20;
/// Capacity of the allocator, in bytes.
pub const LIMIT: u64 = 16_384 * MIB;
/// Bytes in use before the trace starts.
pub const WEIGHTS: u64 = 5_000 * MIB;
/// Bytes reserved for the stack.
pub const STACK: u64 = 128 * MIB;
/// Length of a step in picoseconds.
pub const STEP_PS: u64 = 40_000_000_000;

/// An XSpace trace of training on GPUs: weights allocated before, arrays allocated and freed in every step, runs of two
/// programs.
pub fn xspace(spec: &History) -> Vec<u8> {
    let mut line = Message::default().number(1, 1).bytes(2, "python").number(3, 1_000_000);
    let mut heap = WEIGHTS;
    let mut peak = heap;
    let mut address = 1u64 << 32;
    let mut event = |kind: u64, at: u64, step: u64, bytes: u64, address: u64, heap: &mut u64, op: &str| {
        let rounded = bytes.next_multiple_of(256);
        *heap = if kind == 1 { *heap + rounded } else { *heap - rounded };
        peak = peak.max(*heap);
        let used = *heap as f64 / LIMIT as f64;
        let stat = |id: u64| Message::default().number(1, id + 1);
        let shape = format!("[{},256]", bytes / 1024);
        let message = Message::default()
            .number(1, kind)
            .number(2, at)
            .message(4, &stat(0).bytes(5, "GPU_0_bfc"))
            .message(4, &stat(1).number(4, STACK))
            .message(4, &stat(2).number(4, *heap))
            .message(4, &stat(3).number(4, LIMIT - STACK - *heap))
            .message(4, &stat(4).double(2, 0.05 + used * 0.4))
            .message(4, &stat(5).number(4, peak))
            .message(4, &stat(6).number(4, bytes))
            .message(4, &stat(7).number(4, rounded))
            .message(4, &stat(8).number(3, address))
            .message(4, &stat(9).bytes(5, op))
            .message(4, &stat(10).number(4, step))
            .message(4, &stat(11).bytes(5, "temp"))
            .message(4, &stat(12).bytes(5, shape));
        line = std::mem::take(&mut line).message(4, &message);
    };
    for step in 0..spec.steps {
        let begin = step * STEP_PS;
        let span = STEP_PS / (spec.arrays * 2 + 4);
        if spec.leak > 0 {
            address += spec.leak + 4096;
            event(1, begin + span, step, spec.leak, address, &mut heap, "metrics/append");
        }
        let size = |array: u64| (200 + array * 37 % 300) * MIB / spec.arrays.clamp(1, 8) - 100;
        let mut taken = Vec::new();
        for array in 0..spec.arrays {
            address += size(array) + 4096;
            let op = format!("layer_{}/{}", array / 3, ["attention", "mlp", "norm"][array as usize % 3]);
            event(1, begin + (array + 2) * span, step, size(array), address, &mut heap, &op);
            taken.push((address, size(array), op));
        }
        for (n, (address, bytes, op)) in taken.into_iter().rev().enumerate() {
            let at = begin + (spec.arrays + n as u64 + 3) * span;
            event(2, at, step, bytes, address, &mut heap, &op);
        }
    }
    let name = |id: u64, name: &str| {
        Message::default().number(1, id).message(2, &Message::default().number(1, id).bytes(2, name))
    };
    let mut host = Message::default().number(1, 1).bytes(2, "/host:CPU").message(3, &line);
    host = host.message(4, &name(1, "MemoryAllocation")).message(4, &name(2, "MemoryDeallocation"));
    for (id, stat) in STATS.iter().enumerate() {
        host = host.message(5, &name(id as u64 + 1, stat));
    }
    let mut space = Message::default().message(1, &host);
    for device in 0..spec.devices {
        let mut runs = Message::default().number(1, 1).bytes(2, "XLA Modules");
        for step in 0..spec.steps {
            let begin = step * STEP_PS + device * STEP_PS / 50;
            for (id, from, length) in [(1, 2, 70), (2, 80, 15)] {
                let run = Message::default()
                    .number(1, id)
                    .number(2, begin + STEP_PS / 100 * from)
                    .number(3, STEP_PS / 100 * length);
                runs = runs.message(4, &run);
            }
        }
        let plane = Message::default()
            .number(1, 10 + device)
            .bytes(2, format!("/device:GPU:{device}"))
            .message(3, &runs)
            .message(4, &name(1, "jit_train_step"))
            .message(4, &name(2, "jit_evaluate"));
        space = space.message(1, &plane);
    }
    space.0
}

/// A BFC allocator dump: a pool of `chunks` chunks in two regions, fragmented so that no large block is free.
pub fn bfc(chunks: u64) -> Vec<u8> {
    let ops = ["layer/attention/scores", "layer/mlp/up", "embedding", "optimizer/adam", ""];
    let mut dump = Message::default().bytes(1, "GPU_0_bfc");
    let mut list = Vec::new();
    let mut address = 0x7f00_0000_0000u64;
    for row in 0..chunks {
        if row == chunks / 2 {
            address += 1 << 30;
        }
        let free = row % 3 == 1;
        let asked = if free { 0 } else { (row * 7919 % 61 + 1) * 700_001 };
        let size = if free { (row * 104_729 % 23 + 1) * 524_288 } else { asked.next_multiple_of(256) };
        let bin = (size / 256).checked_ilog2().unwrap_or(0).min(20);
        list.push((address, size, asked, bin, free, ops[(row as usize / 2) % ops.len()]));
        address += size;
    }
    for number in 0..=20u32 {
        let of: Vec<_> = list.iter().filter(|chunk| chunk.3 == number).collect();
        let used = of.iter().filter(|chunk| !chunk.4);
        let bin = Message::default()
            .number(1, number.into())
            .number(2, used.clone().map(|chunk| chunk.1).sum())
            .number(3, of.iter().map(|chunk| chunk.1).sum())
            .number(4, used.count() as u64)
            .number(5, of.len() as u64);
        dump = dump.message(2, &bin);
    }
    for (address, size, asked, bin, free, op) in &list {
        let mut chunk = Message::default().number(1, *address).number(2, *size).number(3, *asked);
        chunk = chunk.number(4, if *free { u64::from(*bin) } else { u64::MAX });
        if !free {
            chunk = chunk.bytes(5, op).number(8, 1).number(9, 3);
        }
        dump = dump.message(3, &chunk);
    }
    let in_use: u64 = list.iter().filter(|chunk| !chunk.4).map(|chunk| chunk.1).sum();
    let stats = Message::default()
        .number(1, chunks * 3)
        .number(2, in_use)
        .number(3, in_use + (64 << 20))
        .number(4, 64 << 20)
        .float(5, 0.91);
    dump.message(5, &stats).0
}

/// A pprof of live arrays: `layers` layers on `devices` devices, allocated below a chain of calls.
pub fn pprof(layers: u64, devices: u64) -> Vec<u8> {
    let mut strings = vec![String::new()];
    let mut intern = |text: &str| {
        strings.iter().position(|known| known == text).unwrap_or_else(|| {
            strings.push(text.to_owned());
            strings.len() - 1
        }) as u64
    };
    let kind = |a: u64, b: u64| Message::default().number(1, a).number(2, b);
    let (allocations, count, space, bytes) = (intern("allocations"), intern("count"), intern("space"), intern("bytes"));
    let mut profile = Message::default().message(1, &kind(allocations, count)).message(1, &kind(space, bytes));
    let library = "/venv/lib/python3.11/site-packages/jax/_src/array.py";
    let own = "/home/me/train/model.py";
    let frames = [
        ("_device_put", library, 210),
        ("init_attention", own, 31),
        ("init_mlp", own, 44),
        ("init_layer", own, 58),
        ("init_params", own, 71),
        ("init_adam", "/home/me/train/optimizer.py", 12),
        ("main", "/home/me/train/train.py", 140),
        ("load_batch", "/home/me/train/data.py", 25),
    ];
    let mut tables = Message::default();
    for (row, (function, file, line)) in (1u64..).zip(frames) {
        let at = Message::default().number(1, row).number(2, line);
        tables = tables.message(4, &Message::default().number(1, row).message(4, &at));
        let function = Message::default().number(1, row).number(2, intern(function)).number(4, intern(file));
        tables = tables.message(5, &function);
    }
    let (label, buffer, device) = (intern("kind"), intern("buffer"), intern("device"));
    for on in 0..devices {
        let name = intern(&format!("TPU_{on}(process=0,({on},0,0,0))"));
        let mut sample = |stack: &[u64], count: u64, bytes: u64| {
            let mut sample = Message::default();
            for &frame in stack {
                sample = sample.number(1, frame);
            }
            sample = sample.number(2, count).number(2, bytes);
            sample = sample.message(3, &Message::default().number(1, label).number(2, buffer));
            sample = sample.message(3, &Message::default().number(1, device).number(2, name));
            profile = std::mem::take(&mut profile).message(2, &sample);
        };
        sample(&[1, 2, 4, 5, 7], layers * 4, layers * 4 * 4 * MIB);
        sample(&[1, 3, 4, 5, 7], layers * 2, layers * 2 * 16 * MIB);
        sample(&[1, 6, 7], layers * 12, layers * 2 * 48 * MIB);
        sample(&[1, 8, 7], 2, 24 * MIB);
        sample(&[1, 5, 7], 1, 150 * MIB);
    }
    profile.0.extend(tables.0);
    for text in &strings {
        profile = profile.bytes(6, text);
    }
    profile.0
}
