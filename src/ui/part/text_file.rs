//! A text that is to be written to a file: made on a worker, once the person has said where.

use std::fmt::{Debug, Formatter};
use std::sync::Arc;

/// Name to suggest, and how the text is made.
#[derive(Clone)]
pub struct TextFile {
    /// Name to suggest.
    pub name: String,
    make: Arc<dyn Fn() -> String + Send + Sync>,
}

impl TextFile {
    /// A file of a text that is made when it is needed.
    #[must_use]
    pub fn new(name: String, make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { name, make: Arc::new(make) }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> String {
        (self.make)()
    }
}

impl Debug for TextFile {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("TextFile").field("name", &self.name).finish_non_exhaustive()
    }
}
