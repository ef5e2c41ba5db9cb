//! Building blocks of views that know nothing of memory profiles: theme, axis, table, raster.

pub mod controls;
pub mod cut;
pub mod fonts;
pub mod heat_legend;
pub mod heat_map;
pub mod icicle;
pub mod keys;
pub mod raster;
pub mod soft_painter;
pub mod style;
pub mod table;
pub mod theme;
#[cfg(test)]
mod theme_vision;
pub mod treemap;
