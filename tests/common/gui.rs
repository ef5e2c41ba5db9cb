//! The window in a test harness, drawn by Highwater's own CPU renderer, without a display or graphics driver.
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

/// Renderer for a harness: the one used for screenshots.
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

/// The window with files open; jobs run synchronously.
pub fn window<'a>(paths: &[&Path], size: [f32; 2], theme: ThemeChoice, link: DeepLink) -> Harness<'a, App> {
    window_with(paths, size, Options { theme, ..Options::default() }, link)
}

/// As [`window`], with other options. `size` is the window size before zoom.
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

/// A window with only what `show` draws, in Highwater's style and a given look.
pub fn bare<'a>(size: [f32; 2], is_dark: bool, look: Look, mut show: impl FnMut(&mut egui::Ui) + 'a) -> Harness<'a> {
    let mut is_new = true;
    Harness::builder()
        .with_size(size)
        .with_theme(if is_dark { egui::Theme::Dark } else { egui::Theme::Light })
        .renderer(Renderer::default())
        .build_ui(move |ui| {
            if std::mem::take(&mut is_new) {
                // Fonts are available from the next frame on.
                style::install(ui.ctx());
                style::apply(ui.ctx(), look);
                return ui.ctx().request_repaint();
            }
            show(ui);
        })
}

/// All accessible labels and values on the screen.
pub fn words(harness: &Harness<'_, App>) -> Vec<String> {
    let all = harness.get_all(egui_kittest::kittest::by());
    all.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()]).flatten().collect()
}

/// Whether any label or value on the screen contains the words.
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

/// A file as it is dropped onto the window.
#[derive(Debug)]
struct Dropped(std::path::PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&self.0).map_err(|error| error.to_string())
    }
}

/// Drops files onto the window, all in one frame.
pub fn drop_files(harness: &mut Harness<'_, App>, paths: &[&Path]) {
    let files = paths.iter().map(|path| std::sync::Arc::new(Dropped(path.to_path_buf())) as _);
    harness.input_mut().dropped_files.extend(files);
    harness.step();
    harness.input_mut().dropped_files.clear();
    harness.run_ok();
}
