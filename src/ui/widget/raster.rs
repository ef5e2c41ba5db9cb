//! Rectangles rasterised on the CPU at physical pixels and shown as one texture, so the cost of a frame does not depend
//! on their number.

use egui::{Color32, ColorImage, Rect, TextureHandle, TextureId, TextureOptions};

use super::theme::blend;

/// An image being drawn. Coordinates are physical pixels.
pub struct Raster {
    /// The pixels.
    pub image: ColorImage,
    scale: f32,
}

impl Raster {
    /// An image filled with `ground`, covering a screen rectangle in points.
    #[must_use]
    pub fn new(rect: Rect, pixels_per_point: f32, ground: Color32) -> Self {
        let size = [rect.width(), rect.height()].map(|v| ((v * pixels_per_point).round() as usize).clamp(1, 16_384));
        Self { image: ColorImage::filled(size, ground), scale: pixels_per_point }
    }

    /// Width in pixels.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.image.size[0]
    }

    /// Height in pixels.
    #[must_use]
    pub const fn height(&self) -> usize {
        self.image.size[1]
    }

    /// Pixels per point.
    #[must_use]
    pub const fn scale(&self) -> f32 {
        self.scale
    }

    /// Fills pixels `x0..x1`, `y0..y1`, clipped to the image.
    pub fn fill(&mut self, x0: i64, y0: i64, x1: i64, y1: i64, color: Color32) {
        let (width, height) = (self.width() as i64, self.height() as i64);
        let (x0, x1) = (x0.clamp(0, width) as usize, x1.clamp(0, width) as usize);
        if x0 >= x1 {
            return;
        }
        for y in y0.clamp(0, height)..y1.clamp(0, height) {
            let row = y as usize * width as usize;
            self.image.pixels[row + x0..row + x1].fill(color);
        }
    }

    /// Hatches pixels `x0..x1`, `y0..y1` at 45°. The lines are fixed to the screen and do not move with the data.
    pub fn hatch(&mut self, x0: i64, y0: i64, x1: i64, y1: i64, hatch: Hatch) {
        let (width, height) = (self.width() as i64, self.height() as i64);
        let period = (f64::from(hatch.period * self.scale) * std::f64::consts::SQRT_2).max(2.0);
        let line = (f64::from(hatch.width * self.scale) * std::f64::consts::SQRT_2).max(1.0);
        for y in y0.clamp(0, height)..y1.clamp(0, height) {
            for x in x0.clamp(0, width)..x1.clamp(0, width) {
                if ((x + y) as f64).rem_euclid(period) < line {
                    let pixel = &mut self.image.pixels[(y * width + x) as usize];
                    *pixel = blend(*pixel, hatch.color);
                }
            }
        }
    }
}

/// Style of a hatch; lengths in points.
#[derive(Debug, Clone, Copy)]
pub struct Hatch {
    /// Distance between lines.
    pub period: f32,
    /// Thickness of a line.
    pub width: f32,
    /// Colour, premultiplied.
    pub color: Color32,
}

impl Hatch {
    /// Style of padding over a fill.
    #[must_use]
    pub const fn padding(color: Color32) -> Self {
        Self { period: 6.0, width: 1.6, color }
    }

    /// Style of the area over the limit under a curve.
    #[must_use]
    pub fn beyond(color: Color32) -> Self {
        Self { period: 8.0, width: 2.0, color: color.gamma_multiply(0.35) }
    }

    /// Style of the area over the limit in a memory map.
    #[must_use]
    pub fn beyond_map(color: Color32) -> Self {
        Self { period: 12.0, width: 1.6, color: color.gamma_multiply(0.3) }
    }
}

/// Where a picture is shown, and what it is drawn on.
#[derive(Debug, Clone, Copy)]
pub struct RasterArea<'a> {
    /// Its place in points.
    pub rect: Rect,
    /// Name of the texture, for debugging.
    pub name: &'a str,
    /// Colour of the ground.
    pub ground: Color32,
}

/// A texture that is redrawn only when its inputs change.
#[derive(Default)]
pub struct CachedRaster {
    key: u64,
    /// Id of the canvas that owns the texture.
    canvas: u64,
    /// The same picture on another canvas, with that canvas's id.
    aside: Option<(u64, Box<Self>)>,
    texture: Option<TextureHandle>,
}

/// Makes a context draw on an offscreen canvas, which does not share textures with the window.
pub fn use_canvas(ctx: &egui::Context, canvas: u64) {
    ctx.data_mut(|data| data.insert_temp(egui::Id::unique("canvas"), canvas));
}

/// Id of the canvas a context draws on; 0 is the window.
#[must_use]
pub fn canvas_of(ctx: &egui::Context) -> u64 {
    ctx.data(|data| data.get_temp(egui::Id::unique("canvas"))).unwrap_or(0)
}

impl CachedRaster {
    /// Shows the picture. `draw` runs when `key`, the size or the theme has changed.
    pub fn show(
        &mut self,
        ui: &egui::Ui,
        area: RasterArea<'_>,
        key: impl std::hash::Hash,
        draw: impl FnOnce(&mut Raster),
    ) {
        let rect = area.rect;
        if let Some(texture) = self.texture(ui, area, key, draw) {
            let uv = Rect::from_min_max(egui::pos2(0.0, 0.0), egui::pos2(1.0, 1.0));
            ui.painter().image(texture, rect, uv, Color32::WHITE);
        }
    }

    /// The picture as a texture, redrawn if needed; `None` if the area is smaller than a point.
    pub fn texture(
        &mut self,
        ui: &egui::Ui,
        area: RasterArea<'_>,
        key: impl std::hash::Hash,
        draw: impl FnOnce(&mut Raster),
    ) -> Option<TextureId> {
        use std::hash::{Hash, Hasher};
        let RasterArea { rect, name, ground } = area;
        if rect.width() < 1.0 || rect.height() < 1.0 {
            return None;
        }
        let canvas = canvas_of(ui.ctx());
        if canvas != 0 && self.canvas != canvas {
            if self.aside.as_ref().is_none_or(|(of, _)| *of != canvas) {
                self.aside = Some((canvas, Box::new(Self { canvas, ..Self::default() })));
            }
            return self.aside.as_mut().and_then(|(_, aside)| aside.texture(ui, area, key, draw));
        }
        let scale = ui.ctx().pixels_per_point();
        let mut state = std::hash::BuildHasher::build_hasher(&foldhash::fast::FixedState::default());
        key.hash(&mut state);
        [rect.width(), rect.height(), scale].map(f32::to_bits).hash(&mut state);
        ground.hash(&mut state);
        let key = state.finish();
        if self.texture.is_none() || key != self.key {
            let mut raster = Raster::new(rect, scale, ground);
            draw(&mut raster);
            match &mut self.texture {
                Some(texture) => texture.set(raster.image, TextureOptions::NEAREST),
                None => self.texture = Some(ui.ctx().load_texture(name, raster.image, TextureOptions::NEAREST)),
            }
            self.key = key;
        }
        self.texture.as_ref().map(TextureHandle::id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_clipped_to_the_image() {
        let rect = Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(10.0, 10.0));
        let mut raster = Raster::new(rect, 1.0, Color32::BLACK);
        raster.fill(-5, -5, 3, 2, Color32::WHITE);
        raster.fill(8, 9, 100, 100, Color32::WHITE);
        raster.fill(5, 5, 4, 9, Color32::WHITE);
        assert_eq!(raster.image.pixels.iter().filter(|&&p| p == Color32::WHITE).count(), 6 + 2);
    }
}
