//! The pickle machine for plain values. It never runs anything, never recurses and builds no tree: a finished dict or
//! list becomes a row of the model at once.

use super::records::Records;
use super::value::{OpenDict, OpenList, Shared, Value};
use super::window::{Stop, Window};

/// Deepest nesting of values; a snapshot needs 8.
const MAX_DEPTH: u8 = 64;

/// Most marks at a time.
const MAX_MARKS: usize = 256;

/// Longest text in bytes.
const MAX_TEXT: u64 = 64 << 20;

/// A memo number may skip this many.
const MAX_SKIP: usize = 256;

/// Why reading ended before the end of the pickle.
#[derive(Debug)]
pub enum Halt {
    /// No more bytes.
    Stop(Stop),
    /// Something that a snapshot never holds.
    Refused {
        /// What it is.
        what: String,
        /// Offset of its opcode.
        offset: u64,
    },
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

type Result<T> = std::result::Result<T, Halt>;

/// The machine.
pub struct Machine<'a> {
    /// The bytes.
    pub window: Window<'a>,
    /// What was read.
    pub records: Records,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Shared>,
    numbers: Vec<Value>,
    lists: Vec<OpenList>,
    free_lists: Vec<u32>,
    dicts: Vec<OpenDict>,
    free_dicts: Vec<u32>,
    pairs: Vec<(Value, Value)>,
    /// Offset of the opcode that is carried out.
    at: u64,
}

impl<'a> Machine<'a> {
    /// A machine at the start of its bytes.
    pub fn new(window: Window<'a>) -> Self {
        Self {
            window,
            records: Records::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            numbers: Vec::new(),
            lists: Vec::new(),
            free_lists: Vec::new(),
            dicts: Vec::new(),
            free_dicts: Vec::new(),
            pairs: Vec::new(),
            at: 0,
        }
    }

    /// Reads to STOP. Returns what stood on the stack: the items of a dict, or a finished list.
    pub fn run(&mut self) -> Result<Root> {
        loop {
            self.at = self.window.offset();
            let code = self.window.byte()?;
            if code == b'.' {
                let top = self.pop()?;
                return Ok(self.root(top));
            }
            self.step(code)?;
            // Each opcode has at least a byte, and a snapshot's values many.
            let bytes = self.window.offset() as usize;
            if self.stack.len() > 65_536 + bytes / 16 || self.memo.len() > 4096 + bytes / 4 {
                return self.refuse("more values are open or remembered than a snapshot has");
            }
        }
    }

    /// What could be read of a pickle that ends early: containers are closed as they are, and the innermost dict, which
    /// lacks some of its keys, is dropped.
    pub fn salvage(&mut self) -> Option<Root> {
        while let Some(mark) = self.marks.pop() {
            let Some(container) = mark.checked_sub(1).and_then(|row| self.stack.get(row)).copied() else { continue };
            match container {
                Value::Shared(Shared::OpenList(_)) => {
                    let items = self.stack.split_off(mark);
                    for item in items {
                        if matches!(item, Value::Shared(Shared::OpenDict(_))) {
                            continue;
                        }
                        self.append(container, item).ok()?;
                    }
                }
                Value::Shared(Shared::OpenDict(_)) if mark == 1 => {
                    let items = self.stack.split_off(mark);
                    for pair in items.chunks_exact(2) {
                        self.set(container, pair[0], pair[1]).ok()?;
                    }
                }
                _ => self.stack.truncate(mark - 1),
            }
        }
        let root = *self.stack.first()?;
        Some(self.root(root))
    }

    fn root(&mut self, value: Value) -> Root {
        if let Value::Shared(Shared::OpenDict(row)) = value {
            let dict = std::mem::take(&mut self.dicts[row as usize]);
            return Root::Dict(dict.items);
        }
        match self.finish(value) {
            Value::Shared(Shared::Segments(row)) => Root::Segments(row),
            Value::Shared(Shared::Empty) => Root::Nothing,
            Value::Shared(Shared::Map(row)) => {
                Root::Dict(self.records.maps.get(row as usize).map(|map| map.items.clone()).unwrap_or_default())
            }
            _ => Root::Other,
        }
    }

    fn refuse<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Halt::Refused { what: what.into(), offset: self.at })
    }

    #[expect(clippy::match_same_arms, reason = "one line for each opcode, in the order of the format's own list")]
    fn step(&mut self, code: u8) -> Result<()> {
        match code {
            // Constants and numbers.
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'K' => {
                let value = i64::from(self.window.byte()?);
                self.push(Value::Int(value));
            }
            b'M' => {
                let value = i64::from(u16::from_le_bytes(self.window.array()?));
                self.push(Value::Int(value));
            }
            b'J' => {
                let value = i64::from(i32::from_le_bytes(self.window.array()?));
                self.push(Value::Int(value));
            }
            0x8a => {
                let length = usize::from(self.window.byte()?);
                let value = long(self.window.take(length)?);
                self.push(value);
            }
            0x8b => {
                let length = i32::from_le_bytes(self.window.array()?);
                let Some(length) = usize::try_from(length).ok().filter(|&length| length <= 16) else {
                    return self.refuse(format!("a number of {length} bytes"));
                };
                let value = long(self.window.take(length)?);
                self.push(value);
            }
            b'G' => {
                let value = f64::from_be_bytes(self.window.array()?);
                self.push(Value::Float(value));
            }
            b'I' | b'L' | b'F' => {
                let line = self.window.line(64)?;
                self.push(number(&line));
            }
            // Texts and bytes.
            0x8c => {
                let length = u64::from(self.window.byte()?);
                self.text(length)?;
            }
            b'X' => {
                let length = u64::from(u32::from_le_bytes(self.window.array()?));
                self.text(length)?;
            }
            0x8d => {
                let length = u64::from_le_bytes(self.window.array()?);
                self.text(length)?;
            }
            b'U' | b'C' => {
                let length = u64::from(self.window.byte()?);
                self.text(length)?;
            }
            b'T' | b'B' => {
                let length = u64::from(u32::from_le_bytes(self.window.array()?));
                self.text(length)?;
            }
            0x8e | 0x96 => {
                let length = u64::from_le_bytes(self.window.array()?);
                self.text(length)?;
            }
            b'V' | b'S' => {
                let line = self.window.line(1 << 20)?;
                let text = String::from_utf8_lossy(&line);
                let text = if code == b'S' { text.trim_matches(['\'', '"']) } else { &text };
                let id = self.records.snapshot.strings.intern(text).0;
                self.push(Value::Shared(Shared::Text(id)));
            }
            // Containers.
            b'}' => self.open_dict(),
            b']' | 0x8f => self.open_list(),
            b')' => self.push(Value::Shared(Shared::Empty)),
            b'(' => {
                if self.marks.len() >= MAX_MARKS {
                    return self.refuse("values are nested too deeply for a snapshot");
                }
                self.marks.push(self.stack.len());
            }
            b'a' => {
                let item = self.pop()?;
                let list = self.top()?;
                self.append(list, item)?;
            }
            b'e' | 0x90 => {
                let mark = self.mark()?;
                let list = self.below(mark)?;
                for row in mark..self.stack.len() {
                    self.append(list, self.stack[row])?;
                }
                self.stack.truncate(mark);
            }
            b's' => {
                let value = self.pop()?;
                let name = self.pop()?;
                let dict = self.top()?;
                self.set(dict, name, value)?;
            }
            b'u' => self.set_items()?,
            b't' | b'l' | 0x91 => {
                let mark = self.mark()?;
                self.collect(mark, code == b'l')?;
            }
            b'd' => {
                let mark = self.mark()?;
                let items = self.stack.split_off(mark);
                if !items.len().is_multiple_of(2) {
                    return self.refuse("a key without a value");
                }
                self.open_dict();
                let dict = self.top()?;
                for pair in items.chunks_exact(2) {
                    self.set(dict, pair[0], pair[1])?;
                }
            }
            // Each event has a pair of numbers, its pool.
            0x86 if self.top_pair().is_some() => {
                let Some((a, b)) = self.top_pair() else { return Ok(()) };
                self.stack.truncate(self.stack.len() - 2);
                let row = self.records.intern_pair((a, b));
                self.push(Value::Shared(Shared::Pair(row)));
            }
            0x85..=0x87 => {
                let count = usize::from(code - 0x84);
                let Some(from) = self.stack.len().checked_sub(count) else {
                    return self.refuse("a tuple without items");
                };
                self.collect(from, false)?;
            }
            b'0' => {
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    let value = self.pop()?;
                    self.finish(value);
                }
            }
            b'1' => {
                let mark = self.mark()?;
                while self.stack.len() > mark {
                    let value = self.pop()?;
                    self.finish(value);
                }
            }
            b'2' => {
                let top = self.top()?;
                if is_open(top) {
                    return self.refuse("a value is used before it is finished");
                }
                self.push(top);
            }
            // The memo.
            0x94 => self.put(self.memo.len())?,
            b'q' => {
                let row = usize::from(self.window.byte()?);
                self.put(row)?;
            }
            b'r' => {
                let row = u32::from_le_bytes(self.window.array()?) as usize;
                self.put(row)?;
            }
            b'p' => {
                let line = self.window.line(32)?;
                self.put(row_of(&line))?;
            }
            b'h' => {
                let row = usize::from(self.window.byte()?);
                self.get(row)?;
            }
            b'j' => {
                let row = u32::from_le_bytes(self.window.array()?) as usize;
                self.get(row)?;
            }
            b'g' => {
                let line = self.window.line(32)?;
                self.get(row_of(&line))?;
            }
            // Framing.
            0x80 => {
                let version = self.window.byte()?;
                if version > 5 {
                    return self.refuse(format!("pickle protocol {version} is unknown; 0 to 5 are read"));
                }
            }
            0x95 => {
                self.window.take(8)?;
            }
            _ => return self.refuse_code(code),
        }
        Ok(())
    }

    /// Refuses what would run code or is no opcode.
    fn refuse_code(&mut self, code: u8) -> Result<()> {
        let name = match code {
            b'c' | b'i' => {
                let module = self.window.line(256)?;
                let name = self.window.line(256)?;
                format!("{}.{}", String::from_utf8_lossy(&module), String::from_utf8_lossy(&name))
            }
            0x93 => {
                let text = |value: Option<&Value>| {
                    let text = value.and_then(|value| value.text()).unwrap_or(0);
                    self.records.snapshot.strings.get(crate::model::StringId(text)).to_owned()
                };
                let module = text(self.stack.len().checked_sub(2).and_then(|row| self.stack.get(row)));
                format!("{module}.{}", text(self.stack.last()))
            }
            b'R' => "REDUCE".to_owned(),
            b'b' => "BUILD".to_owned(),
            b'o' => "OBJ".to_owned(),
            0x81 => "NEWOBJ".to_owned(),
            0x92 => "NEWOBJ_EX".to_owned(),
            b'P' => "PERSID".to_owned(),
            b'Q' => "BINPERSID".to_owned(),
            0x82..=0x84 => "an extension".to_owned(),
            0x97 => "NEXT_BUFFER".to_owned(),
            0x98 => "READONLY_BUFFER".to_owned(),
            _ => return self.refuse(format!("0x{code:02x} is no pickle opcode")),
        };
        if name.starts_with("torch._utils.") || name.starts_with("torch.storage") || name.starts_with("torch.nn.") {
            return self.refuse(format!("this is a checkpoint (`{name}`), not a memory snapshot"));
        }
        self.refuse(format!(
            "this pickle would run code (`{name}`); only plain values are read, and a memory snapshot holds nothing else"
        ))
    }

    fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    /// Takes the top of the stack, not beyond the last mark.
    fn pop(&mut self) -> Result<Value> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return self.refuse("a value is missing");
        }
        self.stack.pop().ok_or(Halt::Refused { what: "a value is missing".to_owned(), offset: self.at })
    }

    fn top(&self) -> Result<Value> {
        match self.stack.last() {
            Some(&value) => Ok(value),
            None => self.refuse("a value is missing"),
        }
    }

    fn mark(&mut self) -> Result<usize> {
        match self.marks.pop() {
            Some(mark) if mark <= self.stack.len() => Ok(mark),
            _ => self.refuse("a mark is missing"),
        }
    }

    /// The two numbers at the top of the stack.
    fn top_pair(&self) -> Option<(i64, i64)> {
        match self.stack[..] {
            [.., Value::Int(a), Value::Int(b)] => Some((a, b)),
            _ => None,
        }
    }

    /// The container that the values above a mark go into.
    fn below(&self, mark: usize) -> Result<Value> {
        match mark.checked_sub(1).and_then(|row| self.stack.get(row)) {
            Some(&value) => Ok(value),
            None => self.refuse("a container is missing"),
        }
    }

    fn text(&mut self, length: u64) -> Result<()> {
        if length > MAX_TEXT {
            return self.refuse(format!("a text of {length} bytes"));
        }
        let bytes = self.window.take(length as usize)?;
        let strings = &mut self.records.snapshot.strings;
        let id = match std::str::from_utf8(bytes) {
            Ok(text) => strings.intern(text),
            Err(_) => strings.intern(&String::from_utf8_lossy(bytes)),
        };
        self.push(Value::Shared(Shared::Text(id.0)));
        Ok(())
    }

    fn open_dict(&mut self) {
        let row = self.free_dicts.pop().unwrap_or_else(|| {
            self.dicts.push(OpenDict::default());
            self.dicts.len() as u32 - 1
        });
        self.dicts[row as usize].at = self.stack.len();
        self.push(Value::Shared(Shared::OpenDict(row)));
    }

    fn open_list(&mut self) {
        let row = self.free_lists.pop().unwrap_or_else(|| {
            self.lists.push(OpenList::default());
            self.lists.len() as u32 - 1
        });
        self.lists[row as usize].at = self.stack.len();
        self.push(Value::Shared(Shared::OpenList(row)));
    }

    fn put(&mut self, row: usize) -> Result<()> {
        if row > self.memo.len() + MAX_SKIP {
            return self.refuse(format!("value {row} is remembered, but there are only {}", self.memo.len()));
        }
        let shared = match self.top()? {
            Value::Shared(shared) => shared,
            number => {
                self.numbers.push(number);
                Shared::Number(self.numbers.len() as u32 - 1)
            }
        };
        if row >= self.memo.len() {
            self.memo.resize(row + 1, Shared::Unset);
        }
        let number = row as u32;
        match shared {
            Shared::OpenList(list) => self.lists[list as usize].memo = Some(number),
            Shared::OpenDict(dict) => self.dicts[dict as usize].memo = Some(number),
            _ => {}
        }
        self.memo[row] = shared;
        Ok(())
    }

    fn get(&mut self, row: usize) -> Result<()> {
        let value = match self.memo.get(row) {
            None | Some(Shared::Unset) => return self.refuse(format!("value {row} was never remembered")),
            Some(&Shared::OpenList(list)) => self.finish_in_place(self.lists[list as usize].at)?,
            Some(&Shared::OpenDict(dict)) => self.finish_in_place(self.dicts[dict as usize].at)?,
            Some(&Shared::Number(number)) => self.numbers.get(number as usize).copied().unwrap_or(Value::None),
            Some(&shared) => Value::Shared(shared),
        };
        self.push(value);
        Ok(())
    }

    /// Finishes a container on the stack that is used a second time: it gets no more items, unless one of them is the
    /// container itself.
    fn finish_in_place(&mut self, at: usize) -> Result<Value> {
        let is_being_filled = self.marks.iter().any(|&mark| mark == at + 1);
        let Some(&open) = self.stack.get(at).filter(|_| !is_being_filled) else {
            return self.refuse("a value is inside itself");
        };
        let finished = self.finish(open);
        self.stack[at] = finished;
        Ok(finished)
    }

    /// A container that gets no more items, as what it stands for; any other value as it is.
    fn finish(&mut self, value: Value) -> Value {
        let (shared, memo) = match value {
            Value::Shared(Shared::OpenList(row)) => {
                let list = &mut self.lists[row as usize];
                let shared = self.records.list(&list.runs, list.depth);
                let memo = list.memo.take();
                list.depth = 0;
                list.runs.clear();
                list.runs.shrink_to(4096);
                self.free_lists.push(row);
                (shared, memo)
            }
            Value::Shared(Shared::OpenDict(row)) => {
                let dict = std::mem::take(&mut self.dicts[row as usize]);
                self.free_dicts.push(row);
                let shared = match self.records.dict(&dict.items, self.at) {
                    Some(record) => record,
                    None => self.records.map(dict.items, dict.depth),
                };
                (shared, dict.memo)
            }
            other => return other,
        };
        if let Some(memo) = memo {
            self.memo[memo as usize] = shared;
        }
        Value::Shared(shared)
    }

    /// Nesting of a finished value.
    fn depth(&self, value: Value) -> u8 {
        match value {
            Value::Shared(Shared::Other(depth)) => depth,
            Value::Shared(Shared::Map(row)) => self.records.maps.get(row as usize).map_or(1, |map| map.depth),
            Value::Shared(Shared::Text(_)) => 0,
            Value::Shared(_) => 1,
            _ => 0,
        }
    }

    fn deeper(&self, value: Value) -> Result<u8> {
        let depth = self.depth(value) + 1;
        if depth > MAX_DEPTH { self.refuse("values are nested too deeply for a snapshot") } else { Ok(depth) }
    }

    fn append(&mut self, list: Value, item: Value) -> Result<()> {
        let Value::Shared(Shared::OpenList(row)) = list else {
            return self.refuse("items are added to something that is no list");
        };
        let item = self.finish(item);
        let depth = self.deeper(item)?;
        let list = &mut self.lists[row as usize];
        list.depth = list.depth.max(depth);
        list.push(item);
        Ok(())
    }

    fn set(&mut self, dict: Value, name: Value, value: Value) -> Result<()> {
        let Value::Shared(Shared::OpenDict(row)) = dict else {
            return self.refuse("keys are set in something that is no dict");
        };
        let name = self.finish(name);
        let value = self.finish(value);
        let depth = self.deeper(value)?;
        let dict = &mut self.dicts[row as usize];
        dict.depth = dict.depth.max(depth);
        dict.items.push((name, value));
        Ok(())
    }

    /// SETITEMS: a known record is finished at once.
    fn set_items(&mut self) -> Result<()> {
        let mark = self.mark()?;
        let dict = self.below(mark)?;
        if !(self.stack.len() - mark).is_multiple_of(2) {
            return self.refuse("a key without a value");
        }
        let Value::Shared(Shared::OpenDict(row)) = dict else {
            return self.refuse("keys are set in something that is no dict");
        };
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.clear();
        let mut depth = 0;
        for at in (mark..self.stack.len()).step_by(2) {
            let value = self.finish(self.stack[at + 1]);
            depth = self.deeper(value)?.max(depth);
            pairs.push((self.finish(self.stack[at]), value));
        }
        self.stack.truncate(mark);
        let is_new = self.dicts[row as usize].items.is_empty();
        let record = if is_new && pairs.len() > 1 { self.records.dict(&pairs, self.at) } else { None };
        if let Some(record) = record {
            self.stack[mark - 1] = Value::Shared(record);
            if let Some(memo) = self.dicts[row as usize].memo.take() {
                self.memo[memo as usize] = record;
            }
            self.free_dicts.push(row);
        } else {
            let dict = &mut self.dicts[row as usize];
            dict.depth = dict.depth.max(depth);
            dict.items.extend_from_slice(&pairs);
        }
        self.pairs = pairs;
        Ok(())
    }

    /// Makes a tuple of the values from a row of the stack on, or a list, which may grow.
    fn collect(&mut self, from: usize, may_grow: bool) -> Result<()> {
        let items = self.stack.split_off(from);
        self.open_list();
        let list = self.top()?;
        for item in items {
            self.append(list, item)?;
        }
        if !may_grow {
            let tuple = self.finish(list);
            self.stack.pop();
            self.push(tuple);
        }
        Ok(())
    }
}

/// What the whole pickle is.
#[derive(Debug)]
pub enum Root {
    /// A dict: (key, value).
    Dict(Vec<(Value, Value)>),
    /// A list of segments.
    Segments(u32),
    /// An empty list.
    Nothing,
    /// Something else.
    Other,
}

fn is_open(value: Value) -> bool {
    matches!(value, Value::Shared(Shared::OpenList(_) | Shared::OpenDict(_)))
}

/// A whole number in two's complement, least byte first.
fn long(bytes: &[u8]) -> Value {
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let fill = if is_negative { 0xff } else { 0 };
    let (low, high) = bytes.split_at(bytes.len().min(8));
    let mut wide = [fill; 8];
    wide[..low.len()].copy_from_slice(low);
    let value = i64::from_le_bytes(wide);
    if high.iter().all(|&byte| byte == fill) && (value < 0) == is_negative {
        return Value::Int(value);
    }
    if !is_negative && high.iter().all(|&byte| byte == 0) { Value::Big(value as u64) } else { Value::OutOfRange }
}

/// A number in decimal, as protocol 0 has it; `01` and `00` are flags.
fn number(line: &[u8]) -> Value {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches('L');
    match text {
        "01" => return Value::Bool(true),
        "00" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(value) = text.parse::<i64>() {
        return Value::Int(value);
    }
    if let Ok(value) = text.parse::<u64>() {
        return Value::Big(value);
    }
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_whole { Value::OutOfRange } else { text.parse().map_or(Value::None, Value::Float) }
}

/// A memo number in decimal; one that is never there if it is none.
fn row_of(line: &[u8]) -> usize {
    std::str::from_utf8(line).ok().and_then(|text| text.parse::<u32>().ok()).unwrap_or(u32::MAX) as usize
}
