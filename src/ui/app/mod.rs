//! The application window: frame, files, commands.

mod chrome;
mod commands;
mod files;
mod frame;
mod frame_times;
pub mod help;
mod milestones;
#[cfg(target_os = "linux")]
mod refused_drops;
mod run;
mod settings;
mod settings_store;
mod share;
mod state;
mod window;

pub use commands::{COMMANDS, Command};
pub use files::{FileState, Files, MAX_DECODED};
pub use settings_store::SettingsStore;
pub use share::deep_link::DeepLink;
pub use share::picture::{draw as draw_picture, draw_svg};
pub use state::App;
pub use window::{Stats, WindowError, run as run_window};
