//! Values on the pickle machine's stack, and containers that are still being filled.

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// A flag.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number of 2^63 and more.
    Big(u64),
    /// A whole number that does not fit 64 bits.
    OutOfRange,
    /// A number.
    Float(f64),
    /// Something that can be remembered.
    Shared(Shared),
}

/// What the memo keeps: eight bytes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// Not remembered.
    Unset,
    /// A list being filled: a row of the machine's open lists.
    OpenList(u32),
    /// A dict being filled: a row of the machine's open dicts.
    OpenDict(u32),
    /// An interned text.
    Text(u32),
    /// A stack frame.
    Frame(u32),
    /// A call stack: a list of frames.
    Stack(u32),
    /// A list or tuple without items.
    Empty,
    /// Two whole numbers.
    Pair(u32),
    /// An event, by row.
    Event(u32),
    /// A list of events: a row of the lists of runs.
    Events(u32),
    /// A list of lists of events.
    Traces(u32),
    /// A block, by row.
    Block(u32),
    /// A list of blocks.
    Blocks(u32),
    /// A segment, by row.
    Segment(u32),
    /// A list of segments.
    Segments(u32),
    /// A former or present tenant of a block.
    Tenant(u32),
    /// A list of tenants, the newest by row.
    Tenants(u32),
    /// The beginning or end of a phase.
    Annotation(u32),
    /// A list of annotations.
    Annotations,
    /// Any other dict: a row of the maps.
    Map(u32),
    /// A remembered number: a row of the remembered numbers.
    Number(u32),
    /// Anything else; how deep it is nested.
    Other(u8),
}

impl Value {
    /// As an unsigned number; `None` if it is negative or no number.
    pub fn unsigned(self) -> Option<u64> {
        match self {
            Self::Int(value) => u64::try_from(value).ok(),
            Self::Big(value) => Some(value),
            _ => None,
        }
    }

    /// As a signed number.
    pub fn signed(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            // Handles of streams are addresses; those of the upper half keep their bits.
            Self::Big(value) => Some(value as i64),
            _ => None,
        }
    }

    /// As an interned text.
    pub fn text(self) -> Option<u32> {
        match self {
            Self::Shared(Shared::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Items of an open list. Rows that follow each other are one run, so that a list of a million events is one item.
#[derive(Debug, Default)]
pub struct OpenList {
    /// Memo entry to fill in when the list is finished.
    pub memo: Option<u32>,
    /// Its place on the stack.
    pub at: usize,
    /// (first, how many).
    pub runs: Vec<(Value, u32)>,
    /// Nesting of the deepest item.
    pub depth: u8,
}

impl OpenList {
    /// Adds a finished item.
    pub fn push(&mut self, item: Value) {
        if let Some((first, count)) = self.runs.last_mut()
            && follows(*first, *count, item)
        {
            *count += 1;
            return;
        }
        self.runs.push((item, 1));
    }
}

/// Whether an item is the row after a run.
fn follows(first: Value, count: u32, item: Value) -> bool {
    use Shared::{Annotation, Block, Event, Segment, Tenant};
    let (Value::Shared(first), Value::Shared(item)) = (first, item) else { return false };
    let rows = match (first, item) {
        (Event(a), Event(b))
        | (Block(a), Block(b))
        | (Segment(a), Segment(b))
        | (Tenant(a), Tenant(b))
        | (Annotation(a), Annotation(b)) => (a, b),
        _ => return false,
    };
    rows.0.checked_add(count) == Some(rows.1)
}

/// Items of an open dict.
#[derive(Debug, Default)]
pub struct OpenDict {
    /// Memo entry to fill in when the dict is finished.
    pub memo: Option<u32>,
    /// Its place on the stack.
    pub at: usize,
    /// (key, value), finished values.
    pub items: Vec<(Value, Value)>,
    /// Nesting of the deepest value.
    pub depth: u8,
}
