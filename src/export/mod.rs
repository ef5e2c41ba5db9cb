//! Output: reports as text, JSON and Markdown, tables and pictures; and reading the what-if sets for them.

pub mod diff;
pub mod gate;
pub mod image;
pub mod report;
pub mod sets;
pub mod table;
