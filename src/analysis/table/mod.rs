//! A columnar table of all buffers in a memory space; sorts, filters and groups a million of them.

mod columns;
mod filter;
mod order;
mod terms;

pub use columns::{BufferTable, Column, Interned, NameColumn};
pub use filter::{Filter, complete};
pub use order::{Counted, GroupRow, Key, Line, Order, Shown, arrange};
pub use terms::{FilterError, is_unfinished};
