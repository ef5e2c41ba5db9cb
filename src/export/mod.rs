//! What leaves the program: reports as text, JSON and Markdown.

pub mod report;
pub mod image;
