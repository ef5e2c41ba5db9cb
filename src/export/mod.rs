//! What leaves the program: reports as text, JSON and Markdown, pictures; and the files of changes that go with them.

pub mod diff;
pub mod gate;
pub mod image;
pub mod report;
pub mod sets;
pub mod table;
