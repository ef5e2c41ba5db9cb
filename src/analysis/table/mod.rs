//! All buffers of a memory space in columns: to sort, filter and group a million of them.

mod columns;
mod filter;
mod order;
mod terms;

pub use columns::{BufferTable, Column, Interned, NameColumn};
pub use filter::{Filter, complete};
pub use order::{GroupRow, Key, Line, Order, Shown, arrange};
pub use terms::FilterError;
