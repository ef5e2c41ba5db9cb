//! Draws a view to an image on the CPU: no display, no graphics driver, exactly what the window would show.

use egui::{ColorImage, Pos2, RawInput, Rect, Vec2, ViewportId, ViewportInfo};

use super::App;
use crate::ui::widget::soft_painter::SoftPainter;
use crate::ui::widget::theme::Theme;

/// Frames until everything has its place: text is measured in one and drawn in the next.
const FRAMES: usize = 4;

/// Draws the window of `size` points at `scale` pixels a point.
pub fn draw(ctx: &egui::Context, app: &mut App, size: Vec2, scale: f32) -> ColorImage {
    let mut painter = SoftPainter::default();
    let mut last = None;
    for frame in 0..FRAMES {
        let mut input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, size)),
            time: Some(frame as f64),
            max_texture_side: Some(16_384),
            ..RawInput::default()
        };
        input
            .viewports
            .insert(ViewportId::ROOT, ViewportInfo { native_pixels_per_point: Some(scale), ..ViewportInfo::default() });
        let mut output = ctx.run_ui(input, |ui| app.show(ui));
        painter.update(&mut output.textures_delta);
        last = Some(output);
    }
    let pixels = [size.x, size.y].map(|v| (v * scale).round().max(1.0) as usize);
    let ground = Theme::of(ctx).canvas;
    last.map_or_else(|| ColorImage::filled(pixels, ground), |output| painter.draw(ctx, &output, pixels, ground))
}
