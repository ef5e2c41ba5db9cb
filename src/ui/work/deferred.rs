//! A picture drawn on a worker thread. Until a new one is ready, the previous one is shown, panned and scaled to the
//! current axes, so the cost of a frame does not depend on the picture's contents.

use egui::{Color32, Pos2, Rect, TextureHandle, TextureOptions};

use super::job::{Job, Work};
use crate::ui::widget::axis::Span;
use crate::ui::widget::raster::{self, Raster};

/// A picture's rectangle on the screen and the ranges of both axes that it shows.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Screen rectangle in points.
    pub rect: Rect,
    /// Range of the x axis, left to right.
    pub x: Span,
    /// Range of the y axis, bottom to top.
    pub y: Span,
}

impl Window {
    /// The screen rectangle, on this window's axes, of the ranges that `other` shows.
    #[must_use]
    pub fn place_of(&self, other: &Self) -> Rect {
        let x = |value: f64| self.rect.left() + (self.x.share(value) * f64::from(self.rect.width())) as f32;
        let y = |value: f64| self.rect.bottom() - (self.y.share(value) * f64::from(self.rect.height())) as f32;
        Rect::from_min_max(Pos2::new(x(other.x.lo), y(other.y.hi)), Pos2::new(x(other.x.hi), y(other.y.lo)))
    }
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
    /// The canvas that owns the texture.
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
    /// Shows the picture. `draw` runs on a worker (with `at_once`, on this thread) when `key`, the window or the scale
    /// has changed, one run at a time. Returns what `draw` returned for the picture shown; `None` until there is one.
    #[expect(clippy::too_many_arguments, reason = "everything the picture depends on")]
    pub fn show(
        &mut self,
        ui: &egui::Ui,
        work: &Work,
        window: Window,
        name: &str,
        key: impl std::hash::Hash,
        ground: Color32,
        at_once: bool,
        draw: impl FnOnce(&mut Raster) -> T + Send + 'static,
    ) -> Option<&T> {
        use std::hash::{Hash, Hasher};
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
            return aside.show(ui, work, window, name, key, ground, at_once, draw);
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
        let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
        let (_, drawn, extra) = self.shown.as_ref()?;
        let place = if drawn.x == window.x && drawn.y == window.y { rect } else { window.place_of(drawn) };
        if !place.contains_rect(rect) {
            painter.rect_filled(rect, 0.0, ground);
        }
        if let Some(texture) = &self.texture {
            let uv = Rect::from_min_max(Pos2::ZERO, Pos2::new(1.0, 1.0));
            painter.image(texture.id(), place, uv, Color32::WHITE);
        }
        Some(extra)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_picture_is_mapped_to_the_current_axes() {
        let rect = Rect::from_min_max(Pos2::new(100.0, 0.0), Pos2::new(300.0, 100.0));
        let old = Window { rect, x: Span::new(0.0, 10.0), y: Span::new(0.0, 4.0) };
        let now = Window { rect, x: Span::new(5.0, 10.0), y: Span::new(0.0, 8.0) };
        let expected = Rect::from_min_max(Pos2::new(-100.0, 50.0), Pos2::new(300.0, 100.0));
        assert_eq!(now.place_of(&old), expected);
    }
}
