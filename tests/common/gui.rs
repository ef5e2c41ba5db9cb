//! The window in a test harness, drawn by the program's own CPU painter: no display, no graphics driver.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::Path;

use egui_kittest::kittest::{NodeT as _, Queryable as _};
use egui_kittest::{Harness, TestRenderer};
use highwater::open::Target;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::{Options, ThemeChoice};
use highwater::ui::widget::soft_painter::SoftPainter;
use highwater::ui::widget::style;
use highwater::ui::widget::theme::{Look, Theme};

/// Draws a harness as the program does without a graphics card.
#[derive(Default)]
pub struct Renderer(SoftPainter);

impl TestRenderer for Renderer {
    fn handle_delta(&mut self, delta: &mut egui::TexturesDelta) {
        self.0.update(delta);
    }

    fn render(&mut self, ctx: &egui::Context, output: &egui::FullOutput) -> Result<image::RgbaImage, String> {
        let size = ctx.content_rect().size() * output.pixels_per_point;
        let size = [size.x.round() as usize, size.y.round() as usize];
        let picture = self.0.draw(ctx, output, size, Theme::of(ctx).canvas);
        image::RgbaImage::from_raw(size[0] as u32, size[1] as u32, picture.as_raw().to_vec())
            .ok_or_else(|| "the picture has another size than it says".to_owned())
    }
}

/// The window with files open; work is done at once.
pub fn window<'a>(paths: &[&Path], size: [f32; 2], theme: ThemeChoice, link: DeepLink) -> Harness<'a, App> {
    window_with(paths, size, Options { theme, ..Options::default() }, link)
}

/// As [`window`], with other options. `size` is that of the window before any zoom.
#[allow(clippy::needless_pass_by_value, reason = "each test makes its options")]
pub fn window_with<'a>(paths: &[&Path], size: [f32; 2], options: Options, link: DeepLink) -> Harness<'a, App> {
    let sources: Vec<Target> = paths.iter().map(|path| Target::Path(path.to_path_buf())).collect();
    let dark = matches!(options.theme, ThemeChoice::Dark | ThemeChoice::ContrastDark);
    let mut harness = Harness::builder()
        .with_size(size.map(|side| side / options.scale()))
        .with_max_steps(40)
        .with_theme(if dark { egui::Theme::Dark } else { egui::Theme::Light })
        .renderer(Renderer::default())
        .build_eframe(move |creation| {
            let options = Options { synchronous: true, ..options };
            let mut app = App::new(&creation.egui_ctx, options);
            app.link = Some(link);
            for source in sources {
                app.open(source);
            }
            app
        });
    harness.run_ok();
    harness
}

/// A window of its own with nothing but what `show` draws, in the program's style and a look.
pub fn bare<'a>(size: [f32; 2], is_dark: bool, look: Look, mut show: impl FnMut(&mut egui::Ui) + 'a) -> Harness<'a> {
    let mut is_new = true;
    Harness::builder()
        .with_size(size)
        .with_theme(if is_dark { egui::Theme::Dark } else { egui::Theme::Light })
        .renderer(Renderer::default())
        .build_ui(move |ui| {
            if std::mem::take(&mut is_new) {
                // Fonts are there from the next frame on.
                style::install(ui.ctx());
                style::apply(ui.ctx(), look);
                return ui.ctx().request_repaint();
            }
            show(ui);
        })
}

/// Everything that is said on the screen: labels and values.
pub fn words(harness: &Harness<'_, App>) -> Vec<String> {
    let all = harness.get_all(egui_kittest::kittest::by());
    all.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()]).flatten().collect()
}

/// Whether something on the screen contains some words.
pub fn says(harness: &Harness<'_, App>, part: &str) -> bool {
    words(harness).iter().any(|label| label.contains(part))
}

/// A text that is painted.
pub struct Painted {
    /// Its place, as far as it is seen.
    pub place: egui::Rect,
    /// Its words.
    pub words: String,
    /// Whether some of them are left out.
    pub cut: bool,
    /// Its colour.
    pub color: egui::Color32,
}

fn texts(shape: &egui::Shape, clip: egui::Rect, found: &mut Vec<Painted>) {
    match shape {
        egui::Shape::Vec(shapes) => shapes.iter().for_each(|shape| texts(shape, clip, found)),
        egui::Shape::Text(text) => {
            let place = egui::Rect::from_min_size(text.pos, text.galley.size()).intersect(clip);
            if place.width() > 4.0 && place.height() > 4.0 {
                found.push(Painted {
                    place,
                    words: text.galley.job.text.clone(),
                    cut: text.galley.elided,
                    color: text.fallback_color,
                });
            }
        }
        _ => {}
    }
}

/// Every text that is painted.
pub fn painted(harness: &Harness<'_, App>) -> Vec<Painted> {
    let mut found = Vec::new();
    for shape in &harness.output().shapes {
        texts(&shape.shape, shape.clip_rect, &mut found);
    }
    found
}
