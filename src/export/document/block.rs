//! The parts of a document.

use super::line::Line;

/// A document.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Its parts, in order.
    pub blocks: Vec<Block>,
}

/// A part of a document.
#[derive(Debug, Clone)]
pub enum Block {
    /// A heading; 1 is the highest level.
    Heading(u8, Line),
    /// The answer of a section in one sentence.
    Answer(Line, Tone),
    /// A paragraph.
    Paragraph(Line),
    /// A table.
    Table(Table),
    /// A list.
    List(Vec<Item>),
    /// A text of fixed width.
    Code(String),
    /// A remark on the data.
    Note(Line),
    /// A picture as SVG, for the formats that have pictures.
    Picture(String),
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It fits.
    Fits,
    /// It does not.
    Over,
    /// Neither.
    Neutral,
}

impl Tone {
    /// The tone of a verdict: `fits`, `over` or anything else.
    #[must_use]
    pub fn of(verdict: &str) -> Self {
        match verdict {
            "fits" => Self::Fits,
            "over" => Self::Over,
            _ => Self::Neutral,
        }
    }
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// What it lists, for the formats that have room for it.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, one cell for each column.
    pub rows: Vec<Vec<Line>>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// Whether it holds numbers, which are aligned to the right.
    pub is_number: bool,
}

impl Table {
    /// A table without rows; a `>` in front of a title is for a column of numbers.
    pub fn new<T: AsRef<str>>(titles: impl IntoIterator<Item = T>) -> Self {
        let column = |title: T| {
            let (title, is_number) = match title.as_ref().strip_prefix('>') {
                Some(title) => (title, true),
                None => (title.as_ref(), false),
            };
            Column { title: title.to_owned(), is_number }
        };
        Self { columns: titles.into_iter().map(column).collect(), ..Self::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Line>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// An item of a list.
#[derive(Debug, Clone, Default)]
pub struct Item {
    /// Level below the list, 0 for its own items.
    pub level: usize,
    /// Its number in a list of steps.
    pub number: Option<usize>,
    /// Its lines; the first one stands for it.
    pub lines: Vec<Line>,
}

impl Item {
    /// An item of one line.
    pub fn new(level: usize, line: impl Into<Line>) -> Self {
        Self { level, number: None, lines: vec![line.into()] }
    }
}

impl Document {
    /// Adds a heading.
    pub fn heading(&mut self, level: u8, line: impl Into<Line>) {
        self.blocks.push(Block::Heading(level, line.into()));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, line: impl Into<Line>) {
        self.blocks.push(Block::Paragraph(line.into()));
    }

    /// Adds a remark on the data.
    pub fn note(&mut self, line: impl Into<Line>) {
        self.blocks.push(Block::Note(line.into()));
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a list, unless it is empty.
    pub fn list(&mut self, items: Vec<Item>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Adds a text of fixed width, unless it is empty.
    pub fn code(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(Block::Code(text));
        }
    }
}
