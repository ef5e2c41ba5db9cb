//! A picture drawn on a worker thread. Until a new one is ready, the previous one is shown, panned and scaled to the
//! current axes, so the cost of a frame does not depend on the picture's contents.

use egui::{Color32, Pos2, Rect, TextureHandle, TextureOptions};

use super::job::{Job, Work};
use crate::ui::chart::{Picture, Window};
use crate::ui::widget::raster::{self, Raster};

/// What a deferred picture shows and how to draw it.
#[derive(Debug, Clone, Copy)]
pub struct Sheet<'a> {
    /// Screen rectangle and the ranges of both axes to show.
    pub window: Window,
    /// Name of the texture, for debugging.
    pub name: &'a str,
    /// Background colour.
    pub ground: Color32,
    /// Draw on this thread in the current frame instead of on a worker.
    pub at_once: bool,
}

/// A worker's result.
struct Drawn<T> {
    key: u64,
    window: Window,
    raster: Raster,
    extra: T,
}

/// The last finished picture and the one being drawn.
pub struct DeferredPicture<T> {
    texture: Option<TextureHandle>,
    shown: Option<(u64, Window, T)>,
    running: Option<(u64, Job<Drawn<T>>)>,
    /// Id of the canvas that owns the texture.
    canvas: u64,
    /// The same picture on another canvas, with that canvas's id.
    aside: Option<(u64, Box<Self>)>,
}

impl<T> Default for DeferredPicture<T> {
    fn default() -> Self {
        Self { texture: None, shown: None, running: None, canvas: 0, aside: None }
    }
}

impl<T: Send + 'static> DeferredPicture<T> {
    /// Paints the picture over its background and returns what `draw` returned for it; `None` until there is one.
    pub fn show(
        &mut self,
        ui: &egui::Ui,
        work: &Work,
        sheet: Sheet<'_>,
        key: impl std::hash::Hash,
        draw: impl FnOnce(&mut Raster) -> T + Send + 'static,
    ) -> Option<&T> {
        let (picture, extra) = self.picture(ui, work, sheet, key, draw)?;
        let rect = sheet.window.rect;
        let painter = ui.painter().with_clip_rect(rect);
        let place = sheet.window.place_of(&picture.window);
        if !place.contains_rect(rect) {
            painter.rect_filled(rect, 0.0, sheet.ground);
        }
        let uv = Rect::from_min_max(Pos2::ZERO, Pos2::new(1.0, 1.0));
        painter.image(picture.texture, place, uv, Color32::WHITE);
        Some(extra)
    }

    /// The last finished picture and what `draw` returned for it; `None` until there is one. `draw` runs on a worker when
    /// `key`, the window or the scale has changed, one run at a time.
    pub fn picture(
        &mut self,
        ui: &egui::Ui,
        work: &Work,
        sheet: Sheet<'_>,
        key: impl std::hash::Hash,
        draw: impl FnOnce(&mut Raster) -> T + Send + 'static,
    ) -> Option<(Picture, &T)> {
        use std::hash::{Hash, Hasher};
        let Sheet { window, name, ground, at_once } = sheet;
        let rect = window.rect;
        if rect.width() < 1.0 || rect.height() < 1.0 {
            return None;
        }
        let canvas = raster::canvas_of(ui.ctx());
        if canvas != 0 && self.canvas != canvas {
            if self.aside.as_ref().is_none_or(|(of, _)| *of != canvas) {
                self.aside = Some((canvas, Box::new(Self { canvas, ..Self::default() })));
            }
            let (_, aside) = self.aside.as_mut()?;
            return aside.picture(ui, work, sheet, key, draw);
        }
        let scale = ui.ctx().pixels_per_point();
        let mut state = std::hash::BuildHasher::build_hasher(&foldhash::fast::FixedState::default());
        key.hash(&mut state);
        [rect.width(), rect.height(), scale].map(f32::to_bits).hash(&mut state);
        [window.x.lo, window.x.hi, window.y.lo, window.y.hi].map(f64::to_bits).hash(&mut state);
        ground.hash(&mut state);
        let key = state.finish();
        self.take_over(ui, name);
        let is_shown = self.shown.as_ref().is_some_and(|(shown, ..)| *shown == key);
        if !is_shown && self.running.is_none() {
            let work = Work { synchronous: work.synchronous || at_once, ..work.clone() };
            let job = Job::start(&work, "picture", move || {
                let mut raster = Raster::new(rect, scale, ground);
                let extra = draw(&mut raster);
                Drawn { key, window, raster, extra }
            });
            self.running = Some((key, job));
            self.take_over(ui, name);
        }
        let texture = self.texture.as_ref()?.id();
        let (_, drawn, extra) = self.shown.as_ref()?;
        Some((Picture { texture, window: *drawn }, extra))
    }

    /// Takes a finished picture from its worker and uploads it as the texture.
    fn take_over(&mut self, ui: &egui::Ui, name: &str) {
        let Some((_, job)) = &mut self.running else { return };
        if job.poll().is_none() && !job.has_failed() {
            return;
        }
        let Some(drawn) = self.running.take().and_then(|(_, job)| job.take()) else { return };
        match &mut self.texture {
            Some(texture) => texture.set(drawn.raster.image, TextureOptions::NEAREST),
            None => self.texture = Some(ui.ctx().load_texture(name, drawn.raster.image, TextureOptions::NEAREST)),
        }
        self.shown = Some((drawn.key, drawn.window, drawn.extra));
    }
}
