//! A document of headings, tables, lists and pictures, which Markdown and HTML are written from. Texts are as they are
//! in the data; each format escapes them in one place.

mod block;
mod html;
mod line;
mod markdown;

pub use block::{Block, Column, Document, Item, Table, Tone};
pub use html::{escape, write as html};
pub use line::{Line, Span, Weight};
pub use markdown::write as markdown;
