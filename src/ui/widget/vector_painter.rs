//! Renders what egui painted as SVG: text stays text, fills and lines stay shapes; pictures become rectangles where a few
//! thousand of them tell the same, else embedded PNG.

use std::collections::HashMap;
use std::fmt::Write as _;

use egui::epaint::{ClippedShape, ColorMode, Mesh, PathShape, RectShape, TextShape};
use egui::{Color32, ColorImage, FontFamily, Pos2, Rect, Shape, Stroke, StrokeKind, TextureId, Vec2};

use crate::export::document::escape;
use crate::export::image::png;

/// Most rectangles of one colour each that stand for a picture.
const MOST_RECTANGLES: usize = 6000;

/// A picture of a view, in both forms.
pub struct ViewPicture {
    /// Its pixels.
    pub image: ColorImage,
    /// The same as SVG.
    pub svg: String,
}

/// The size of a picture and its ground.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Width and height in points.
    pub size: Vec2,
    /// How much everything is magnified.
    pub zoom: f32,
    /// Colour behind everything.
    pub ground: Color32,
}

/// Writes the shapes of a frame; `texture` gives the pixels of what was drawn as a picture.
pub fn svg<'a>(page: Page, shapes: &[ClippedShape], texture: impl Fn(TextureId) -> Option<&'a ColorImage>) -> String {
    let inner = page.size / page.zoom.max(0.01);
    let mut out = Svg { body: String::new(), clips: HashMap::new(), whole: Rect::from_min_size(Pos2::ZERO, inner) };
    for ClippedShape { clip_rect, shape, .. } in shapes {
        let clip = clip_rect.intersect(out.whole);
        if clip.is_positive() && clip.intersects(shape.visual_bounding_rect()) {
            out.clipped(clip, shape, &texture);
        }
    }
    let mut clips: Vec<(&[u32; 4], &usize)> = out.clips.iter().collect();
    clips.sort_by_key(|clip| clip.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\">\n<defs>\n",
        page.size.x, page.size.y, inner.x, inner.y
    );
    for (bits, number) in clips {
        let [x, y, width, height] = bits.map(f32::from_bits);
        let _ = writeln!(
            svg,
            "<clipPath id=\"c{number}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
        );
    }
    let ground = paint("fill", page.ground);
    let _ = writeln!(svg, "</defs>\n<rect width=\"100%\" height=\"100%\"{ground}/>");
    svg + &out.body + "</svg>\n"
}

struct Svg {
    body: String,
    /// Numbers of the clip rectangles, by left, top, width and height.
    clips: HashMap<[u32; 4], usize>,
    whole: Rect,
}

/// A colour as an attribute with its opacity.
fn paint(attribute: &str, color: Color32) -> String {
    let [r, g, b, a] = color.to_srgba_unmultiplied();
    match a {
        0 => format!(" {attribute}=\"none\""),
        255 => format!(" {attribute}=\"#{r:02x}{g:02x}{b:02x}\""),
        _ => format!(" {attribute}=\"#{r:02x}{g:02x}{b:02x}\" {attribute}-opacity=\"{:.3}\"", f32::from(a) / 255.0),
    }
}

fn outline(width: f32, color: Color32) -> String {
    if width <= 0.0 || color == Color32::TRANSPARENT {
        return String::new();
    }
    format!("{} stroke-width=\"{width:.2}\"", paint("stroke", color))
}

fn path(points: &[Pos2], closed: bool) -> String {
    let mut found = String::new();
    for (at, point) in points.iter().enumerate() {
        let _ = write!(found, "{}{:.2} {:.2}", if at == 0 { 'M' } else { 'L' }, point.x, point.y);
    }
    if closed {
        found.push('Z');
    }
    found
}

impl Svg {
    fn clipped<'a>(&mut self, clip: Rect, shape: &Shape, texture: &impl Fn(TextureId) -> Option<&'a ColorImage>) {
        let is_inside = clip.contains_rect(shape.visual_bounding_rect().intersect(self.whole));
        if !is_inside {
            let bits = [clip.left(), clip.top(), clip.width(), clip.height()].map(f32::to_bits);
            let next = self.clips.len();
            let number = *self.clips.entry(bits).or_insert(next);
            let _ = writeln!(self.body, "<g clip-path=\"url(#c{number})\">");
        }
        self.shape(shape, texture);
        if !is_inside {
            self.body.push_str("</g>\n");
        }
    }

    fn shape<'a>(&mut self, shape: &Shape, texture: &impl Fn(TextureId) -> Option<&'a ColorImage>) {
        match shape {
            Shape::Noop | Shape::Callback(_) | Shape::Band(_) => {}
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| self.shape(shape, texture)),
            Shape::Circle(circle) => {
                let (fill, line) = (paint("fill", circle.fill), stroke(circle.stroke));
                let (center, radius) = (circle.center, circle.radius);
                let (x, y) = (center.x, center.y);
                let _ = writeln!(self.body, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\"{fill}{line}/>");
            }
            Shape::Ellipse(ellipse) => {
                let (fill, line) = (paint("fill", ellipse.fill), stroke(ellipse.stroke));
                let (center, radius) = (ellipse.center, ellipse.radius);
                let _ = writeln!(
                    self.body,
                    "<ellipse cx=\"{:.2}\" cy=\"{:.2}\" rx=\"{:.2}\" ry=\"{:.2}\"{fill}{line}/>",
                    center.x, center.y, radius.x, radius.y
                );
            }
            Shape::LineSegment { points: [from, to], stroke: line } => {
                let _ = writeln!(
                    self.body,
                    "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\"{}/>",
                    from.x,
                    from.y,
                    to.x,
                    to.y,
                    stroke(*line)
                );
            }
            Shape::Path(shape) => self.path(shape),
            Shape::Rect(rect) => match rect.brush.as_ref().map(|brush| (brush.fill_texture_id, brush.uv)) {
                Some((id, uv)) if uv.is_positive() => self.picture(rect.rect, uv, texture(id)),
                _ => self.rect(rect),
            },
            Shape::Text(text) => self.text(text),
            Shape::Mesh(mesh) => self.mesh(mesh, texture),
            Shape::QuadraticBezier(curve) => {
                let [from, by, to] = curve.points;
                let line = outline(curve.stroke.width, solid(&curve.stroke.color));
                let _ = writeln!(
                    self.body,
                    "<path d=\"M{:.2} {:.2}Q{:.2} {:.2} {:.2} {:.2}\"{}{line}/>",
                    from.x,
                    from.y,
                    by.x,
                    by.y,
                    to.x,
                    to.y,
                    paint("fill", curve.fill)
                );
            }
            Shape::CubicBezier(curve) => {
                let [from, by, over, to] = curve.points;
                let line = outline(curve.stroke.width, solid(&curve.stroke.color));
                let _ = writeln!(
                    self.body,
                    "<path d=\"M{:.2} {:.2}C{:.2} {:.2} {:.2} {:.2} {:.2} {:.2}\"{}{line}/>",
                    from.x,
                    from.y,
                    by.x,
                    by.y,
                    over.x,
                    over.y,
                    to.x,
                    to.y,
                    paint("fill", curve.fill)
                );
            }
        }
    }

    fn path(&mut self, shape: &PathShape) {
        let fill = paint("fill", shape.fill);
        let line = outline(shape.stroke.width, solid(&shape.stroke.color));
        let _ = writeln!(self.body, "<path d=\"{}\"{fill}{line}/>", path(&shape.points, shape.closed));
    }

    fn rect(&mut self, shape: &RectShape) {
        // Blurred rectangles are shadows.
        if shape.blur_width > 0.0 {
            return;
        }
        let half = shape.stroke.width / 2.0;
        let rect = match shape.stroke_kind {
            StrokeKind::Inside => shape.rect.shrink(half),
            StrokeKind::Middle => shape.rect,
            StrokeKind::Outside => shape.rect.expand(half),
        };
        let rect = if shape.stroke.is_empty() { shape.rect } else { rect };
        if !rect.is_positive() {
            return;
        }
        let radius = shape.corner_radius.nw;
        let round = if radius > 0 { format!(" rx=\"{radius}\"") } else { String::new() };
        let _ = writeln!(
            self.body,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\"{round}{}{}/>",
            rect.left(),
            rect.top(),
            rect.width(),
            rect.height(),
            paint("fill", shape.fill),
            stroke(shape.stroke)
        );
    }

    /// Text by runs of one format in a row, each as long as it is on the screen, whatever fonts there are.
    fn text(&mut self, shape: &TextShape) {
        let galley = &shape.galley;
        let turned = shape.angle != 0.0;
        if turned {
            let degrees = shape.angle.to_degrees();
            let _ = writeln!(self.body, "<g transform=\"rotate({degrees:.2} {} {})\">", shape.pos.x, shape.pos.y);
        }
        let mut byte = 0;
        for placed in &galley.rows {
            let origin = shape.pos + placed.pos.to_vec2();
            let mut runs: Vec<(usize, Vec<&egui::epaint::text::Glyph>)> = Vec::new();
            for glyph in &placed.row.glyphs {
                let sections = &galley.job.sections;
                let section = sections.iter().position(|section| byte < section.byte_range.end.0);
                let section = section.unwrap_or(sections.len().saturating_sub(1));
                match runs.last_mut() {
                    Some((last, glyphs)) if *last == section => glyphs.push(glyph),
                    _ => runs.push((section, vec![glyph])),
                }
                byte += glyph.chr.len_utf8();
            }
            byte += usize::from(placed.ends_with_newline);
            for (section, glyphs) in runs {
                let words: String = glyphs.iter().map(|glyph| glyph.chr).collect();
                let (Some(first), Some(last)) = (glyphs.first(), glyphs.last()) else { continue };
                let Some(section) = galley.job.sections.get(section).filter(|_| !words.trim().is_empty()) else {
                    continue;
                };
                let own = if section.format.color == Color32::PLACEHOLDER {
                    shape.fallback_color
                } else {
                    section.format.color
                };
                let color = shape.override_text_color.unwrap_or(own).gamma_multiply(shape.opacity_factor);
                let (family, weight) = font(&section.format.font_id.family);
                let at = origin + first.pos.to_vec2();
                let width = last.pos.x + last.advance_width - first.pos.x;
                let _ = writeln!(
                    self.body,
                    "<text x=\"{:.2}\" y=\"{:.2}\" textLength=\"{width:.2}\" font-family=\"{family}\" \
                     font-weight=\"{weight}\" font-size=\"{}\" xml:space=\"preserve\"{}>{}</text>",
                    at.x,
                    at.y,
                    section.format.font_id.size,
                    paint("fill", color),
                    escape(&words)
                );
            }
        }
        if turned {
            self.body.push_str("</g>\n");
        }
    }

    fn mesh<'a>(&mut self, mesh: &Mesh, texture: &impl Fn(TextureId) -> Option<&'a ColorImage>) {
        if mesh.texture_id != TextureId::default() {
            let at = mesh.vertices.iter().map(|vertex| vertex.pos);
            let (place, uv) = (Rect::from_points(&at.collect::<Vec<_>>()), mesh.vertices.iter().map(|v| v.uv));
            return self.picture(place, Rect::from_points(&uv.collect::<Vec<_>>()), texture(mesh.texture_id));
        }
        for corners in mesh.indices.chunks_exact(3) {
            let corner = |at: usize| mesh.vertices.get(corners[at] as usize);
            let (Some(a), Some(b), Some(c)) = (corner(0), corner(1), corner(2)) else { continue };
            let d = path(&[a.pos, b.pos, c.pos], true);
            let _ = writeln!(self.body, "<path d=\"{d}\"{}/>", paint("fill", a.color));
        }
    }

    fn picture(&mut self, place: Rect, uv: Rect, image: Option<&ColorImage>) {
        let Some(image) = image.filter(|image| place.is_positive() && image.size.iter().all(|side| *side > 0)) else {
            return;
        };
        // All of the texture is mapped onto this rectangle.
        let whole = Vec2::new(place.width() / uv.width().max(1e-6), place.height() / uv.height().max(1e-6));
        let origin = place.min - Vec2::new(uv.left() * whole.x, uv.top() * whole.y);
        let [width, height] = image.size;
        let scale = Vec2::new(whole.x / width as f32, whole.y / height as f32);
        let _ = writeln!(
            self.body,
            "<g transform=\"translate({:.3} {:.3}) scale({:.6} {:.6})\" shape-rendering=\"crispEdges\">",
            origin.x, origin.y, scale.x, scale.y
        );
        match rectangles(image) {
            Some(found) => {
                for (color, d) in found {
                    let _ = writeln!(self.body, "<path d=\"{d}\"{}/>", paint("fill", color));
                }
            }
            None => {
                let Ok(bytes) = png(image.size, image.as_raw()) else { return self.body.push_str("</g>\n") };
                let _ = writeln!(
                    self.body,
                    "<image width=\"{width}\" height=\"{height}\" image-rendering=\"pixelated\" \
                     href=\"data:image/png;base64,{}\"/>",
                    base64(&bytes)
                );
            }
        }
        self.body.push_str("</g>\n");
    }
}

fn stroke(stroke: Stroke) -> String {
    outline(stroke.width, stroke.color)
}

/// The colour of a path; one that changes along it has none of its own.
fn solid(color: &ColorMode) -> Color32 {
    match color {
        ColorMode::Solid(color) => *color,
        ColorMode::UV(_) => Color32::GRAY,
    }
}

/// Names of typefaces, the window's first, and the weight.
fn font(family: &FontFamily) -> (&'static str, u32) {
    const SANS: &str = "Inter, 'Segoe UI', Helvetica, Arial, sans-serif";
    const MONO: &str = "'JetBrains Mono', Menlo, Consolas, monospace";
    match family {
        FontFamily::Proportional => (SANS, 400),
        FontFamily::Monospace => (MONO, 400),
        FontFamily::Name(name) => match &**name {
            "medium" => (SANS, 500),
            "mono-medium" => (MONO, 500),
            _ => (SANS, 600),
        },
    }
}

/// A picture as rectangles of one colour each, by colour; `None` if there are too many. Transparent pixels are left out.
fn rectangles(image: &ColorImage) -> Option<Vec<(Color32, String)>> {
    let [width, height] = image.size;
    let mut is_done = vec![false; width * height];
    let mut found: Vec<(Color32, String)> = Vec::new();
    let mut places: HashMap<Color32, usize> = HashMap::new();
    let mut count = 0;
    for start in 0..width * height {
        let color = image.pixels[start];
        if is_done[start] || color == Color32::TRANSPARENT {
            continue;
        }
        count += 1;
        if count > MOST_RECTANGLES {
            return None;
        }
        let (left, top) = (start % width, start / width);
        let is_free = |at: usize, done: &[bool]| !done[at] && image.pixels[at] == color;
        let wide = (left..width).take_while(|x| is_free(top * width + x, &is_done)).count();
        let is_row = |y: &usize| (left..left + wide).all(|x| is_free(y * width + x, &is_done));
        let high = 1 + (top + 1..height).take_while(is_row).count();
        for y in top..top + high {
            is_done[y * width + left..y * width + left + wide].fill(true);
        }
        let place = *places.entry(color).or_insert_with(|| {
            found.push((color, String::new()));
            found.len() - 1
        });
        let _ = write!(found[place].1, "M{left} {top}h{wide}v{high}h-{wide}z");
    }
    Some(found)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| three.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let is_there = digit <= three.len();
            text.push(if is_there { DIGITS[(bits >> (18 - 6 * digit) & 63) as usize].into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [("", ""), ("s", "cw=="), ("su", "c3U="), ("sun", "c3Vu"), ("sunset", "c3Vuc2V0")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn rectangles_cover_every_pixel_once() {
        let (w, b) = (Color32::WHITE, Color32::BLACK);
        let mut image = ColorImage::filled([7, 5], w);
        for at in [0, 1, 8, 9, 15, 16, 20, 34] {
            image.pixels[at] = b;
        }
        let found = rectangles(&image).expect("a few");
        let mut seen = ColorImage::filled([7, 5], Color32::TRANSPARENT);
        for (color, d) in found {
            for one in d.split('M').skip(1) {
                let numbers: Vec<usize> =
                    one.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
                let [left, top, wide, high, _] = numbers[..] else { panic!("{one}") };
                for y in top..top + high {
                    for x in left..left + wide {
                        assert_eq!(seen.pixels[y * 7 + x], Color32::TRANSPARENT);
                        seen.pixels[y * 7 + x] = color;
                    }
                }
            }
        }
        assert_eq!(seen.pixels, image.pixels);
    }
}
