//! Columns of the buffer table: plain numbers and interned text.

use std::collections::HashMap;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use rayon::prelude::*;

use crate::analysis::class::Class;
use crate::analysis::flow::label::Arguments;
use crate::analysis::map::MemoryMap;
use crate::analysis::names::scope;
use crate::analysis::once::once;
use crate::analysis::program::{ProgramAnalysis, SpaceAnalysis, category, unpadded};
use crate::model::{BufferId, Category, Program};

/// A column of the buffer table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    /// Buffer name.
    Name,
    /// Bytes including padding.
    Size,
    /// Bytes without padding.
    Useful,
    /// Bytes of padding.
    Padding,
    /// Padding as a fraction of the size.
    Share,
    /// Class (a guess).
    Class,
    /// Category.
    Category,
    /// Element type.
    Type,
    /// Shape.
    Shape,
    /// Opcode.
    Opcode,
    /// Framework op name.
    Op,
    /// Innermost source line.
    Source,
    /// First point of the live range.
    From,
    /// Last point of the live range.
    To,
    /// Length of the live range in points.
    Length,
    /// The live range as a part of the program.
    Life,
    /// Offset in the allocation.
    Offset,
    /// Allocation index.
    Allocation,
}

impl Column {
    /// All columns.
    pub const ALL: [Self; 18] = [
        Self::Name,
        Self::Size,
        Self::Useful,
        Self::Padding,
        Self::Share,
        Self::Class,
        Self::Category,
        Self::Type,
        Self::Shape,
        Self::Opcode,
        Self::Op,
        Self::Source,
        Self::From,
        Self::To,
        Self::Length,
        Self::Life,
        Self::Offset,
        Self::Allocation,
    ];

    /// Column header.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Name => "Name",
            Self::Size => "Size",
            Self::Useful => "Without padding",
            Self::Padding => "Padding",
            Self::Share => "Padding share",
            Self::Class => "Class (guess)",
            Self::Category => "Category",
            Self::Type => "Element type",
            Self::Shape => "Shape",
            Self::Opcode => "Op kind",
            Self::Op => "Op",
            Self::Source => "Source",
            Self::From => "From",
            Self::To => "To",
            Self::Length => "Steps",
            Self::Life => "Life",
            Self::Offset => "Offset",
            Self::Allocation => "Allocation",
        }
    }

    /// Whether it is about steps, which a listing in a message does not have.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self, Self::From | Self::To | Self::Length | Self::Life)
    }

    /// Whether it is numeric.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Size
                | Self::Useful
                | Self::Padding
                | Self::Share
                | Self::From
                | Self::To
                | Self::Length
                | Self::Offset
                | Self::Allocation
        )
    }

    /// Whether buffers can be grouped by it.
    #[must_use]
    pub const fn can_group(self) -> bool {
        matches!(self, Self::Class | Self::Category | Self::Type | Self::Shape | Self::Opcode | Self::Op | Self::Source)
    }
}

/// An interned text column.
#[derive(Debug, Clone, Default)]
pub struct Interned {
    /// Distinct values in order of first use.
    pub values: Vec<String>,
    /// Index of the value by table row.
    pub of: Vec<u32>,
    /// Alphabetical rank of each value.
    pub rank: Vec<u32>,
}

impl Interned {
    fn new(words: impl Iterator<Item = String>) -> Self {
        let mut rows: HashMap<String, u32, RandomState> = HashMap::default();
        let mut result = Self::default();
        for word in words {
            let row = if let Some(&row) = rows.get(&word) {
                row
            } else {
                let row = result.values.len() as u32;
                result.values.push(word.clone());
                rows.insert(word, row);
                row
            };
            result.of.push(row);
        }
        let mut order: Vec<u32> = (0..result.values.len() as u32).collect();
        order.par_sort_unstable_by(|&a, &b| result.values[a as usize].cmp(&result.values[b as usize]));
        result.rank = vec![0; order.len()];
        for (rank, &row) in order.iter().enumerate() {
            result.rank[row as usize] = rank as u32;
        }
        result
    }

    /// The value in a table row; empty if there is no such row.
    #[must_use]
    pub fn at(&self, row: usize) -> &str {
        self.of.get(row).and_then(|&word| self.values.get(word as usize)).map_or("", String::as_str)
    }
}

/// Buffer names, concatenated in one string.
#[derive(Debug, Default)]
pub struct NameColumn {
    text: String,
    ends: Vec<u32>,
    /// Alphabetical rank of each row, computed on first use.
    rank: OnceLock<Vec<u32>>,
}

impl NameColumn {
    fn new(names: Vec<String>) -> Self {
        let mut result = Self::default();
        for name in names {
            result.text.push_str(&name);
            result.ends.push(result.text.len() as u32);
        }
        result
    }

    /// The name in a row; empty if there is no such row.
    #[must_use]
    pub fn at(&self, row: usize) -> &str {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0) as usize;
        self.ends.get(row).and_then(|&end| self.text.get(start..end as usize)).unwrap_or("")
    }

    /// Alphabetical rank of each row.
    pub fn rank(&self) -> &[u32] {
        once::<Vec<u32>>(&self.rank, || {
            let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
            order.par_sort_unstable_by(|&a, &b| self.at(a as usize).cmp(self.at(b as usize)).then(a.cmp(&b)));
            let mut rank = vec![0; order.len()];
            for (place, &row) in order.iter().enumerate() {
                rank[row as usize] = place as u32;
            }
            rank
        })
    }
}

/// All buffers of a memory space, one per row.
#[derive(Debug, Default)]
pub struct BufferTable {
    /// The buffers in order of their ids.
    pub buffers: Vec<BufferId>,
    /// Bytes with padding.
    pub size: Vec<u64>,
    /// Bytes of padding; negative for a few tuple tables whose unpadded size is the larger.
    pub padding: Vec<i64>,
    /// First point at which its memory is in use; `u32::MAX` if unknown.
    pub start: Vec<u32>,
    /// Last point at which its memory is in use, by it or by what is written in place of it; `u32::MAX` if unknown.
    pub end: Vec<u32>,
    /// Length of that in steps; 0 if unknown.
    pub length: Vec<u32>,
    /// First and last point of the buffer itself, of rows whose memory is in use longer.
    own: HashMap<usize, (u32, u32)>,
    /// Whether the memory is set aside for the whole program, whenever the buffer is written.
    pub throughout: Vec<bool>,
    /// Offset in the allocation.
    pub offset: Vec<u64>,
    /// Allocation index.
    pub allocation: Vec<i64>,
    /// Classes (guesses).
    pub class: Vec<Class>,
    /// Category.
    pub category: Vec<Category>,
    /// Buffer id in the file.
    pub number: Vec<i64>,
    /// Names.
    pub name: NameColumn,
    /// Framework op names.
    pub op: Interned,
    /// Op names with layers folded and without the last part, for grouping.
    pub scope: Interned,
    /// Opcodes.
    pub opcode: Interned,
    /// Shapes without layout.
    pub shape: Interned,
    /// Element types.
    pub element_type: Interned,
    /// `file:line`.
    pub source: Interned,
}

/// Text values of a buffer.
struct Texts {
    name: String,
    op: String,
    opcode: String,
    shape: String,
    element_type: String,
    source: String,
}

impl BufferTable {
    /// Collects the buffers of a memory space.
    #[must_use]
    pub fn new(program: &Program, analysis: &ProgramAnalysis, space: &SpaceAnalysis, map: &MemoryMap) -> Self {
        let mut table = Self { buffers: space.buffers.clone(), ..Self::default() };
        table.buffers.sort_unstable();
        table.buffers.dedup();
        let classes = analysis.classes(program);
        for &buffer in &table.buffers {
            let size = program.buffers.size_of(buffer).0;
            let item = map.box_of(buffer);
            let held = map.held(buffer);
            if let Some(item) = item.filter(|item| held.is_some_and(|held| held != (item.start, item.end))) {
                table.own.insert(table.size.len(), (item.start, item.end));
            }
            let allocation = program.buffers.allocation_of(buffer).map(|id| &program.allocations[id.index()]);
            table.size.push(size);
            table.padding.push(size as i64 - unpadded(program, &analysis.traces, buffer).0 as i64);
            table.start.push(held.map_or(u32::MAX, |held| held.0));
            table.end.push(held.map_or(u32::MAX, |held| held.1));
            table.length.push(held.map_or(0, |held| map.length(held.0, held.1)));
            let region = item.and_then(|item| map.regions.get(item.region as usize));
            table.throughout.push(region.is_some_and(|region| region.always_live && region.largest == Some(buffer)));
            table.offset.push(program.buffers.offset.get(buffer.index()).copied().unwrap_or(0));
            table.allocation.push(allocation.map_or(-1, |allocation| allocation.index));
            table.class.push(classes.of(buffer));
            table.category.push(category(program, buffer));
            table.number.push(program.buffers.number.get(buffer.index()).copied().unwrap_or(0));
        }
        let each = |known: &mut Arguments, &buffer: &BufferId| texts(program, analysis, buffer, known);
        let texts: Vec<Texts> = table.buffers.par_iter().map_init(Arguments::default, each).collect();
        let mut names = Vec::with_capacity(texts.len());
        let mut columns: [Vec<String>; 5] = std::array::from_fn(|_| Vec::with_capacity(texts.len()));
        for row in texts {
            names.push(row.name);
            for (column, word) in columns.iter_mut().zip([row.op, row.opcode, row.shape, row.element_type, row.source])
            {
                column.push(word);
            }
        }
        table.name = NameColumn::new(names);
        let mut done: Vec<Interned> = columns.into_par_iter().map(|words| Interned::new(words.into_iter())).collect();
        let mut take = || if done.is_empty() { Interned::default() } else { done.remove(0) };
        (table.op, table.opcode, table.shape, table.element_type, table.source) =
            (take(), take(), take(), take(), take());
        let folded: Vec<String> = table.op.values.iter().map(|op| scope::folded(op)).collect();
        table.scope = Interned::new(folded.into_iter());
        // By table row, via the op names.
        table.scope.of = table.op.of.iter().map(|&op| table.scope.of[op as usize]).collect();
        table
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// The row of a buffer; `None` if it is not in the memory space.
    #[must_use]
    pub fn row_of(&self, buffer: BufferId) -> Option<u32> {
        self.buffers.binary_search(&buffer).ok().map(|row| row as u32)
    }

    /// The interned text of a column; `None` if it has none.
    #[must_use]
    pub fn words(&self, column: Column) -> Option<&Interned> {
        Some(match column {
            Column::Op => &self.op,
            Column::Opcode => &self.opcode,
            Column::Shape => &self.shape,
            Column::Type => &self.element_type,
            Column::Source => &self.source,
            _ => return None,
        })
    }

    /// Sort key of a row: the number, or the alphabetical rank of text.
    #[must_use]
    pub fn key(&self, column: Column, row: usize) -> i64 {
        let points = |point: u32| if point == u32::MAX { i64::MAX } else { i64::from(point) };
        let rank = |words: &Interned| words.of.get(row).map_or(0, |&word| i64::from(words.rank[word as usize]));
        match column {
            Column::Name => self.name.rank().get(row).map_or(0, |&rank| i64::from(rank)),
            Column::Size => self.size[row] as i64,
            Column::Useful => self.size[row] as i64 - self.padding[row],
            Column::Padding => self.padding[row],
            Column::Share => {
                let parts = i128::from(self.padding[row]) * (1 << 40) / i128::from(self.size[row].max(1));
                i64::try_from(parts).unwrap_or(i64::MAX)
            }
            Column::Class => self.class[row] as i64,
            Column::Category => self.category[row] as i64,
            Column::Type => rank(&self.element_type),
            Column::Shape => rank(&self.shape),
            Column::Opcode => rank(&self.opcode),
            Column::Op => rank(&self.op),
            Column::Source => rank(&self.source),
            Column::From | Column::Life => points(self.start[row]),
            Column::To => points(self.end[row]),
            Column::Length => i64::from(self.steps(row).unwrap_or(0)),
            Column::Offset => self.offset[row] as i64,
            Column::Allocation => self.allocation[row],
        }
    }

    /// Length of a row's live range in steps; `None` if unknown.
    #[must_use]
    pub fn steps(&self, row: usize) -> Option<u32> {
        self.length.get(row).copied().filter(|&length| length > 0)
    }

    /// Whether memory is set aside for a row's buffer at a point, as in [`crate::analysis::live_at`].
    #[must_use]
    pub fn lives_at(&self, row: usize, point: u32) -> bool {
        let (start, end) = self.own.get(&row).copied().unwrap_or((self.start[row], self.end[row]));
        let is_written = start <= point && point <= end;
        self.start[row] != u32::MAX && (is_written || self.throughout[row])
    }
}

fn texts(program: &Program, analysis: &ProgramAnalysis, buffer: BufferId, known: &mut Arguments) -> Texts {
    let instruction = program.buffers.instruction_of(buffer);
    let metadata = instruction.map(|i| program.text.metadata(i)).unwrap_or_default();
    let source = metadata.source.map(|line| {
        let file = line.file.rsplit(['/', '\\']).next().unwrap_or(&line.file).to_owned();
        if line.line > 0 { format!("{file}:{}", line.line) } else { file }
    });
    let shape = program.buffer_shape(buffer);
    Texts {
        name: program.buffer_name(buffer),
        op: analysis
            .label_of_next(program, buffer, known)
            .map_or_else(|| scope::without_attributes(&metadata.op_name).into_owned(), |label| label.text),
        opcode: instruction.map(|i| program.opcode_name(i).to_owned()).unwrap_or_default(),
        shape: shape.map(|(shape, node)| shape.short_text_of(node)).unwrap_or_default(),
        element_type: program.buffer_node(buffer).map(|node| node.element_type.name().to_owned()).unwrap_or_default(),
        source: source.unwrap_or_default(),
    }
}
