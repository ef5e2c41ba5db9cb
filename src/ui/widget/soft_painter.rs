//! A software renderer for egui's meshes, for screenshots without a display or graphics driver.

use std::collections::HashMap;

use egui::epaint::{ImageData, ImageDelta, Mesh, Primitive, Vertex};
use egui::{Color32, ColorImage, FullOutput, Rect, TextureFilter, TextureId, TextureOptions, TexturesDelta};

/// Renders into an image. Blends premultiplied colours in gamma space, like egui's GPU backends.
#[derive(Default)]
pub struct SoftPainter {
    textures: HashMap<TextureId, Texture>,
}

struct Texture {
    image: ColorImage,
    options: TextureOptions,
}

impl SoftPainter {
    /// Applies new and changed textures.
    pub fn update(&mut self, delta: &mut TexturesDelta) {
        let set: Vec<_> = std::mem::take(&mut delta.set).into_iter().collect();
        for (id, changes) in set {
            for change in changes {
                self.change(id, change);
            }
        }
        let free = std::mem::take(&mut delta.free);
        self.textures.retain(|id, _| !free.contains(id));
    }

    fn change(&mut self, id: TextureId, change: ImageDelta) {
        let ImageData::Color(image) = change.image;
        let Some([x, y]) = change.pos else {
            let image = std::sync::Arc::unwrap_or_clone(image);
            self.textures.insert(id, Texture { image, options: change.options });
            return;
        };
        let Some(texture) = self.textures.get_mut(&id) else { return };
        let [width, height] = texture.image.size;
        for row in 0..image.size[1].min(height.saturating_sub(y)) {
            let len = image.size[0].min(width.saturating_sub(x));
            let from = row * image.size[0];
            let to = (y + row) * width + x;
            texture.image.pixels[to..to + len].copy_from_slice(&image.pixels[from..from + len]);
        }
    }

    /// The pixels of a texture.
    #[must_use]
    pub fn texture(&self, id: TextureId) -> Option<&ColorImage> {
        self.textures.get(&id).map(|texture| &texture.image)
    }

    /// Renders a frame; `size` is in physical pixels.
    #[must_use]
    pub fn draw(&self, ctx: &egui::Context, output: &FullOutput, size: [usize; 2], ground: Color32) -> ColorImage {
        let scale = output.pixels_per_point;
        let mut image = ColorImage::filled(size, ground);
        for clipped in ctx.tessellate(output.shapes.clone(), scale) {
            if let Primitive::Mesh(mesh) = &clipped.primitive {
                self.mesh(&mut image, mesh, clipped.clip_rect, scale);
            }
        }
        image
    }

    fn mesh(&self, image: &mut ColorImage, mesh: &Mesh, clip: Rect, scale: f32) {
        let Some(texture) = self.textures.get(&mesh.texture_id) else { return };
        let bound = |v: f32, max: usize| (v * scale).round().clamp(0.0, max as f32) as usize;
        let clip = [
            bound(clip.min.x, image.size[0]),
            bound(clip.min.y, image.size[1]),
            bound(clip.max.x, image.size[0]),
            bound(clip.max.y, image.size[1]),
        ];
        for corner in mesh.indices.chunks_exact(3) {
            let [Some(&a), Some(&b), Some(&c)] = [0, 1, 2].map(|i| mesh.vertices.get(corner[i] as usize)) else {
                continue;
            };
            triangle(image, texture, [a, b, c], clip, scale);
        }
    }
}

fn triangle(image: &mut ColorImage, texture: &Texture, mut v: [Vertex; 3], clip: [usize; 4], scale: f32) {
    let mut p = v.map(|v| [f64::from(v.pos.x * scale), f64::from(v.pos.y * scale)]);
    let mut area = edge(p[0], p[1], p[2]);
    if area == 0.0 || !area.is_finite() {
        return;
    }
    if area < 0.0 {
        v.swap(1, 2);
        p.swap(1, 2);
        area = -area;
    }
    let min = |i: usize| p[0][i].min(p[1][i]).min(p[2][i]).floor().max(0.0) as usize;
    let max = |i: usize| p[0][i].max(p[1][i]).max(p[2][i]).ceil().max(0.0) as usize;
    let (left, right) = (min(0).max(clip[0]), max(0).min(clip[2]));
    let (top, bottom) = (min(1).max(clip[1]), max(1).min(clip[3]));
    // Top-left rule: a pixel on a shared edge belongs to the triangle for which it is a top or left edge.
    let owns = |a: [f64; 2], b: [f64; 2]| (a[1] == b[1] && b[0] > a[0]) || b[1] < a[1];
    let edges = [owns(p[1], p[2]), owns(p[2], p[0]), owns(p[0], p[1])];
    let flat = v[0].color == v[1].color && v[0].color == v[2].color;
    let same_uv = v[0].uv == v[1].uv && v[0].uv == v[2].uv;
    let fixed = same_uv.then(|| sample(texture, v[0].uv.x, v[0].uv.y));
    for y in top..bottom {
        let row = y * image.size[0];
        for x in left..right {
            let at = [x as f64 + 0.5, y as f64 + 0.5];
            let w = [edge(p[1], p[2], at), edge(p[2], p[0], at), edge(p[0], p[1], at)];
            if (0..3).any(|i| w[i] < 0.0 || (w[i] == 0.0 && !edges[i])) {
                continue;
            }
            let share = w.map(|w| (w / area) as f32);
            let color = if flat { rgba(v[0].color) } else { blend3(v.map(|v| rgba(v.color)), share) };
            let texel = fixed.unwrap_or_else(|| {
                let uv = |f: fn(&Vertex) -> f32| (0..3).map(|i| f(&v[i]) * share[i]).sum::<f32>();
                sample(texture, uv(|v| v.uv.x), uv(|v| v.uv.y))
            });
            put(&mut image.pixels[row + x], [0, 1, 2, 3].map(|i| color[i] * texel[i] / 255.0));
        }
    }
}

fn edge(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

fn rgba(color: Color32) -> [f32; 4] {
    color.to_array().map(f32::from)
}

fn blend3(colors: [[f32; 4]; 3], share: [f32; 3]) -> [f32; 4] {
    [0, 1, 2, 3].map(|c| (0..3).map(|i| colors[i][c] * share[i]).sum())
}

fn put(pixel: &mut Color32, source: [f32; 4]) {
    if source[3] <= 0.0 && source[0] <= 0.0 && source[1] <= 0.0 && source[2] <= 0.0 {
        return;
    }
    let keep = 1.0 - source[3] / 255.0;
    let old = rgba(*pixel);
    let new = [0, 1, 2, 3].map(|c| old[c].mul_add(keep, source[c]).round().clamp(0.0, 255.0) as u8);
    *pixel = Color32::from_rgba_premultiplied(new[0], new[1], new[2], new[3]);
}

fn sample(texture: &Texture, u: f32, v: f32) -> [f32; 4] {
    let [width, height] = texture.image.size;
    if width == 0 || height == 0 {
        return [0.0; 4];
    }
    let texel = |x: i64, y: i64| {
        let x = x.clamp(0, width as i64 - 1) as usize;
        let y = y.clamp(0, height as i64 - 1) as usize;
        rgba(texture.image.pixels[y * width + x])
    };
    let (x, y) = (u * width as f32, v * height as f32);
    if texture.options.magnification == TextureFilter::Nearest {
        return texel(x.floor() as i64, y.floor() as i64);
    }
    let (x, y) = (x - 0.5, y - 0.5);
    let (fx, fy) = (x - x.floor(), y - y.floor());
    let (x, y) = (x.floor() as i64, y.floor() as i64);
    if fx.abs() < 1e-3 && fy.abs() < 1e-3 {
        return texel(x, y);
    }
    let (a, b, c, d) = (texel(x, y), texel(x + 1, y), texel(x, y + 1), texel(x + 1, y + 1));
    [0, 1, 2, 3].map(|i| {
        let top = (b[i] - a[i]).mul_add(fx, a[i]);
        let bottom = (d[i] - c[i]).mul_add(fx, c[i]);
        (bottom - top).mul_add(fy, top)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_rectangles_neither_overlap_nor_leave_a_seam() {
        let ctx = egui::Context::default();
        let input = egui::RawInput {
            screen_rect: Some(Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(32.0, 32.0))),
            ..Default::default()
        };
        let mut output = ctx.run_ui(input, |ui| {
            let half = Color32::from_rgba_premultiplied(100, 0, 0, 128);
            for x in 0..4 {
                let rect = Rect::from_min_size(egui::pos2(x as f32 * 8.0, 0.0), egui::vec2(8.0, 32.0));
                let mut mesh = Mesh::default();
                mesh.add_colored_rect(rect, half);
                ui.painter().add(mesh);
            }
        });
        let mut painter = SoftPainter::default();
        painter.update(&mut output.textures_delta);
        let image = painter.draw(&ctx, &output, [32, 32], Color32::BLACK);
        let first = image.pixels[0];
        assert_ne!(first, Color32::BLACK);
        assert!(image.pixels.iter().all(|&p| p == first));
    }
}
