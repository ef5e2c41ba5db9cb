//! The window and its views: the only place that knows egui.

pub mod app;
pub mod chart;
pub mod part;
pub mod session;
pub mod view;
pub mod widget;
pub mod work;
