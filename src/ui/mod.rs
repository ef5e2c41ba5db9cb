//! The user interface: the window and its views. No other module depends on egui.

pub mod app;
pub mod chart;
pub mod part;
pub mod session;
pub mod view;
pub mod widget;
pub mod work;
