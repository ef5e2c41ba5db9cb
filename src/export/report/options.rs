//! Options of a report: its contents and format.

use crate::analysis::tree::TreeKind;
use crate::analysis::what_if::{Edit, EditSet};

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For reading in a terminal.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For pasting into an issue or a chat.
    Markdown,
    /// A page with pictures, for reading and handing on.
    Html,
}

/// Contents of a report.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rows in every list; 0 for all.
    pub top: usize,
    /// Only this memory space: its name or colour.
    pub space: Option<String>,
    /// Only this program.
    pub program: Option<String>,
    /// XProf's whole curve.
    pub curve: bool,
    /// Every logical buffer.
    pub buffers: bool,
    /// Pictures, for the formats that have them.
    pub pictures: bool,
    /// First and last step of a range to measure.
    pub range: Option<(u32, u32)>,
    /// Trees of what is live.
    pub trees: Vec<TreeKind>,
    /// Levels of a tree below its root; 0 for all.
    pub depth: usize,
    /// The step at which to take the trees; `None` for the peak.
    pub step: Option<u32>,
    /// Keep the numbered scopes of a tree separate.
    pub unfolded: bool,
    /// Changes to try out.
    pub edits: Vec<Edit>,
    /// Named sets of changes to try out separately.
    pub sets: Vec<EditSet>,
    /// Names of instructions to print as HLO text.
    pub instructions: Vec<String>,
}

impl Options {
    /// Rows in a list.
    #[must_use]
    pub const fn rows(&self) -> usize {
        if self.top == 0 { usize::MAX } else { self.top }
    }
}
