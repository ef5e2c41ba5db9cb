//! Generic widgets, independent of memory profiles: theme, controls, tables, heat maps, icicles and rasters.

pub mod controls;
pub mod cut;
pub mod fonts;
pub mod heat_legend;
pub mod heat_map;
pub mod icicle;
pub mod keys;
pub mod magnifier;
pub mod raster;
mod shorter;
pub mod soft_painter;
pub mod style;
pub mod table;
pub mod telling;
pub mod theme;
#[cfg(test)]
mod theme_vision;
pub mod treemap;
pub mod vector_painter;
