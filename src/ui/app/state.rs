//! The application state: files, options, and what is open in the window.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use egui::{Pos2, Vec2};

use super::chrome::palette_matches::CommandPalette;
use super::files::dialog::{Dialog, Purpose};
use super::files::writing::Writing;
use super::files::{EntryId, Files, PairedFolders, ShownBefore, ToCompare};
use super::frame_times::Performance;
use super::help::state::Help;
use super::milestones::Milestones;
use super::settings_store::SettingsStore;
use super::share::deep_link::DeepLink;
use super::share::pressed_keys::PressedKeys;
use crate::analysis::names::hide::Aliases;
use crate::open::Target;
use crate::ui::session::Options;
use crate::ui::view::FIRST;
use crate::ui::widget::style;
use crate::ui::widget::theme::Look;
use crate::ui::work::{FailedJobs, JobTimes, Work};

/// Minimum window width at which the overview leaves room for the panel beside it.
const OVERVIEW_WITH_PANEL: f32 = 1900.0;

/// Width of the window from which the panel stands beside the view, not over it.
const PANEL_BESIDE: f32 = 1280.0;

/// The application.
pub struct App {
    /// Open files.
    pub files: Files,
    /// Options.
    pub options: Options,
    /// The deep link to follow in the next file that is opened.
    pub link: Option<DeepLink>,
    pub(super) dialog: Option<(Dialog, Purpose)>,
    pub(super) writing: Option<Writing>,
    /// A path being typed because the desktop has no file dialog, and what it is for.
    pub(super) path_field: Option<(String, Purpose)>,
    pub(super) palette: Option<CommandPalette>,
    pub(super) settings_store: SettingsStore,
    pub(super) keys: PressedKeys,
    /// Where the pointer is, in points of the zoom at which it came there, and that zoom.
    pub(super) pointer: (Option<Pos2>, f32),
    pub(super) aliases: Arc<Aliases>,
    /// Whether the find bar takes the focus in this frame.
    pub(super) focus_find: bool,
    /// Whether the top bar had room for the find field in the last frame.
    pub(super) has_find_field: bool,
    /// Size of the view in the last frame, in points.
    pub(super) view_size: Vec2,
    /// Number of offscreen canvases created so far.
    pub(super) canvas: u64,
    pub(super) help: Option<Help>,
    /// Whether the right panel is open; `None` to open it if there is room.
    pub(super) panel: Option<bool>,
    /// The view that the panel was opened over, where it covers it.
    pub(super) panel_over: Option<&'static str>,
    /// Files that could not be read, and why; the newest is last.
    pub(super) errors: Vec<(String, String)>,
    /// How many of them are older than what was opened since, and are folded into a line.
    pub(super) folded_errors: usize,
    /// How many there were when something was opened last.
    pub(super) errors_before: usize,
    pub(super) message: Option<(String, f64)>,
    /// Text of the capacity field.
    pub(super) capacity_field: String,
    /// Search text of the program list.
    pub(super) search: String,
    /// Whether the search field has the focus.
    pub(super) searching: bool,
    /// The entry the list was last scrolled to.
    pub(super) revealed: Option<usize>,
    /// Title of the window as it was set last.
    pub(super) title: String,
    /// What to compare once it is read: before, further columns, after.
    pub(super) comparing: Vec<ToCompare>,
    /// Entries that become columns of the comparison, one after the other.
    pub(super) columns: Vec<EntryId>,
    /// The programs of two folders that are compared.
    pub(super) paired: PairedFolders,
    /// The places of a session to go to, each as soon as its file is read.
    pub(super) places: Vec<(Target, DeepLink)>,
    /// Entries before and after that the window offers to compare, until a time in seconds since the start.
    pub(super) offered: Option<(EntryId, EntryId, f64)>,
    /// What was shown when a file was opened beside it, until that is read.
    pub(super) opened_beside: Option<ShownBefore>,
    /// Paths that were dropped on the window and that the window system's library does not give us.
    pub(super) refused_drops: Option<Receiver<Vec<PathBuf>>>,
    /// What draws the window, with its version.
    pub(super) graphics: Option<String>,
    pub(super) ctx: egui::Context,
    pub(super) running: Arc<AtomicUsize>,
    pub(super) failed_jobs: FailedJobs,
    pub(super) job_times: JobTimes,
    pub(super) performance: Performance,
    /// Times of what was shown first, where they are asked for.
    pub(super) milestones: Option<Milestones>,
}

impl App {
    /// An application without open files.
    #[must_use]
    pub fn new(ctx: &egui::Context, options: Options) -> Self {
        style::install(ctx);
        let app = Self {
            files: Files::default(),
            options,
            link: None,
            dialog: None,
            writing: None,
            path_field: None,
            palette: None,
            settings_store: SettingsStore::default(),
            keys: PressedKeys::default(),
            aliases: Arc::default(),
            pointer: (None, 1.0),
            focus_find: false,
            has_find_field: false,
            view_size: Vec2::ZERO,
            canvas: 0,
            help: None,
            panel: None,
            panel_over: None,
            errors: Vec::new(),
            folded_errors: 0,
            errors_before: 0,
            message: None,
            capacity_field: String::new(),
            search: String::new(),
            searching: false,
            revealed: None,
            title: String::new(),
            comparing: Vec::new(),
            columns: Vec::new(),
            paired: PairedFolders::default(),
            places: Vec::new(),
            offered: None,
            opened_beside: None,
            refused_drops: None,
            graphics: None,
            ctx: ctx.clone(),
            running: Arc::default(),
            failed_jobs: FailedJobs::default(),
            job_times: JobTimes::default(),
            performance: Performance::default(),
            milestones: None,
        };
        app.apply_look();
        app
    }

    /// Applies the theme, style and zoom from the options.
    pub(super) fn apply_look(&self) {
        let look = Look { contrast: self.options.theme.is_contrast(), presenter: self.options.presenter };
        style::apply(&self.ctx, look);
        self.ctx.set_theme(self.options.theme.preference());
        self.ctx.set_zoom_factor(self.options.scale());
    }

    /// Whether a file is loading or a job is running.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.files.is_loading() || self.running.load(Ordering::Relaxed) > 0
    }

    /// Takes the errors since the last call: file name and reason.
    pub fn take_errors(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.errors)
    }

    /// The context for background work.
    #[must_use]
    pub fn work(&self) -> Work {
        Work {
            ctx: self.ctx.clone(),
            synchronous: self.options.synchronous,
            running: self.running.clone(),
            failed: self.failed_jobs.clone(),
            times: self.job_times.clone(),
        }
    }

    /// Whether the right panel is open.
    pub(super) fn panel_open(&self) -> bool {
        let is_wide = self.ctx.content_rect().width() >= PANEL_BESIDE;
        self.panel.unwrap_or(is_wide && (!self.panel_overlays() || self.has_selection()))
    }

    /// Whether the panel overlays the view instead of taking space beside it: over the overview, which needs the width
    /// for findings, curve and table, until the user opens the panel.
    pub(super) fn panel_overlays(&self) -> bool {
        let is_overview = self.files.current().is_some_and(|open| open.shared.view == FIRST);
        self.panel.is_none() && is_overview && self.ctx.content_rect().width() < OVERVIEW_WITH_PANEL
    }

    /// Whether the window is so narrow that the open panel lies over the view, as a sheet does.
    pub(super) fn panel_covers(&self) -> bool {
        self.panel_open() && self.ctx.content_rect().width() < PANEL_BESIDE
    }

    /// Folds a panel that lies over the view once another view is shown, which it would cover.
    pub(super) fn fold_over_new_view(&mut self, view: &'static str) {
        if !self.panel_covers() {
            self.panel_over = None;
        } else if *self.panel_over.get_or_insert(view) != view {
            (self.panel, self.panel_over) = (None, None);
        }
    }

    /// Whether something was selected in this view: what is brought from another is not laid over this one.
    fn has_selection(&self) -> bool {
        self.files.current().is_some_and(|open| open.shared.selects_here())
    }

    /// Shows a short message in the status bar.
    pub(super) fn say(&mut self, words: &str) {
        let now = self.ctx.input(|i| i.time);
        self.message = Some((words.to_owned(), now + 3.0));
        self.ctx.request_repaint_after(std::time::Duration::from_secs(3));
    }
}
