//! Opens the application window, or reports why it could not be opened.

use std::path::PathBuf;

use super::milestones::Milestones;
#[cfg(target_os = "linux")]
use super::refused_drops;
use super::{App, SettingsStore};
use crate::open::Target;
use crate::ui::session::Options;
use crate::ui::session::settings::SettingsFile;

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// There is no display.
    #[error("no display: neither DISPLAY nor WAYLAND_DISPLAY is set")]
    NoDisplay,
    /// There is a display, but no window could be opened.
    #[error("no window: {0}")]
    Refused(String),
}

/// Whether to say on standard error when the window showed what a person waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stats {
    /// Say nothing.
    Quiet,
    /// Say it.
    Said,
}

/// Shows the window until it is closed, with `targets` open and a folder `followed`.
///
/// # Errors
/// [`WindowError`] if no window could be opened; nothing was shown in that case.
pub fn run(
    targets: Vec<Target>,
    followed: Option<PathBuf>,
    options: Options,
    link: super::DeepLink,
    stats: Stats,
) -> Result<(), WindowError> {
    let milestones = (stats == Stats::Said).then(Milestones::default);
    if cfg!(target_os = "linux") && !has("DISPLAY") && !has("WAYLAND_DISPLAY") {
        return Err(WindowError::NoDisplay);
    }
    let native = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title("Highwater")
            .with_app_id("highwater")
            .with_inner_size([1600.0, 1000.0])
            .with_min_inner_size([720.0, 480.0])
            .with_drag_and_drop(true),
        ..eframe::NativeOptions::default()
    };
    #[cfg(target_os = "linux")]
    let native = if has("DISPLAY") { on_x11(native) } else { native };
    // A missing library makes winit panic; that must not look like a crash of Highwater.
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let started = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&started);
    let hook = std::sync::Mutex::new(Some(quiet));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        eframe::run_native(
            "Highwater",
            native,
            Box::new(move |creation| {
                flag.store(true, std::sync::atomic::Ordering::Relaxed);
                // From here on, a panic is a bug and is reported as one.
                if let Some(hook) = hook.lock().ok().and_then(|mut hook| hook.take()) {
                    std::panic::set_hook(hook);
                }
                let mut app = App::new(&creation.egui_ctx, options);
                if let Some(file) = SettingsFile::of_person() {
                    app.use_settings(SettingsStore::new(file));
                }
                app.graphics = creation.gl.as_ref().map(|gl| {
                    use eframe::glow::HasContext as _;
                    let version = gl.version();
                    format!("OpenGL {}.{} {}", version.major, version.minor, version.vendor_info)
                });
                #[cfg(target_os = "linux")]
                {
                    app.refused_drops = refused_drops::watch(creation, &creation.egui_ctx);
                }
                app.link = Some(link);
                app.milestones = milestones;
                app.open_named(targets);
                if let Some(folder) = followed {
                    app.follow(folder);
                }
                Ok(Box::new(app))
            }),
        )
    }));
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(WindowError::Refused(error.to_string())),
        Err(panic) if started.load(std::sync::atomic::Ordering::Relaxed) => std::panic::resume_unwind(panic),
        Err(panic) => {
            let words = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "the window system did not start".to_owned());
            Err(WindowError::Refused(words.lines().next().unwrap_or_default().to_owned()))
        }
    }
}

fn has(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Files can only be dropped on X11 windows, so Wayland is used only without X.
#[cfg(target_os = "linux")]
fn on_x11(native: eframe::NativeOptions) -> eframe::NativeOptions {
    use winit::platform::x11::EventLoopBuilderExtX11 as _;
    eframe::NativeOptions {
        event_loop_builder: Some(Box::new(|builder| {
            builder.with_x11();
        })),
        ..native
    }
}
