//! What leaves the program: reports as text, JSON and Markdown.

pub mod image;
pub mod report;
pub mod table;
