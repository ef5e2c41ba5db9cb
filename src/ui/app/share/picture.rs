//! Renders the window to an image or to SVG, without a display or graphics driver, as it would look on screen: the
//! whole window for `screenshot`, the view alone with a title for the clipboard.

use egui::{
    Align2, CentralPanel, ColorImage, Frame, FullOutput, Panel, Pos2, RawInput, Rect, Ui, Vec2, ViewportId,
    ViewportInfo,
};

use crate::ui::app::App;
use crate::ui::chart::Fit;
use crate::ui::part::ViewContext;
use crate::ui::view::VIEWS;
use crate::ui::widget::controls::{self, paint_cut, paint_sign};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::soft_painter::SoftPainter;
use crate::ui::widget::theme::{Look, Theme, size, space};
use crate::ui::widget::vector_painter::{Page, ViewPicture};
use crate::ui::widget::{raster, style, vector_painter};
use crate::ui::work::Work;

/// Frames until the layout is stable: text is measured in one frame and drawn in the next.
const FRAMES: usize = 4;

/// Minimum number of pixels per point in a picture of a view.
const SHARPNESS: f32 = 2.0;

/// Draws the window, `size` points large, at `scale` pixels per point.
pub fn draw(ctx: &egui::Context, app: &mut App, size: Vec2, scale: f32) -> ColorImage {
    draw_window(ctx, app, size, scale).image(ctx)
}

/// The same as SVG, whose pictures have `scale` pixels per point.
pub fn draw_svg(ctx: &egui::Context, app: &mut App, size: Vec2, scale: f32) -> String {
    draw_window(ctx, app, size, scale).svg()
}

fn draw_window(ctx: &egui::Context, app: &mut App, size: Vec2, scale: f32) -> Drawn {
    let page = Page { size, zoom: app.options.scale(), ground: Theme::of(ctx).canvas };
    frames(ctx, page, scale, |ui| app.show(ui))
}

/// The last frame of what was drawn.
struct Drawn {
    painter: SoftPainter,
    output: Option<FullOutput>,
    page: Page,
    pixels: [usize; 2],
}

impl Drawn {
    fn image(&self, ctx: &egui::Context) -> ColorImage {
        let (pixels, ground) = (self.pixels, self.page.ground);
        let empty = || ColorImage::filled(pixels, ground);
        self.output.as_ref().map_or_else(empty, |output| self.painter.draw(ctx, output, pixels, ground))
    }

    fn svg(&self) -> String {
        let shapes = self.output.as_ref().map_or(&[][..], |output| &output.shapes);
        vector_painter::svg(self.page, shapes, |id| self.painter.texture(id))
    }
}

/// Draws a page at `scale` pixels per point.
fn frames(ctx: &egui::Context, page: Page, scale: f32, mut show: impl FnMut(&mut Ui)) -> Drawn {
    let mut painter = SoftPainter::default();
    let mut last = None;
    ctx.set_zoom_factor(page.zoom);
    for frame in 0..FRAMES {
        let mut input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, page.size / page.zoom)),
            time: Some(frame as f64),
            max_texture_side: Some(16_384),
            ..RawInput::default()
        };
        input
            .viewports
            .insert(ViewportId::ROOT, ViewportInfo { native_pixels_per_point: Some(scale), ..ViewportInfo::default() });
        let mut output = ctx.run_ui(input, &mut show);
        painter.update(&mut output.textures_delta);
        last = Some(output);
    }
    let pixels = [page.size.x, page.size.y].map(|v| (v * scale).round().max(1.0) as usize);
    Drawn { painter, output: last, page, pixels }
}

impl App {
    /// A picture of the current view under a title; `None` if no file is open.
    pub fn picture_of_view(&mut self) -> Option<ViewPicture> {
        if self.veiled() {
            return None;
        }
        let window = self.ctx.clone();
        let look = Look::of(&window);
        let ctx = egui::Context::default();
        style::install(&ctx);
        style::apply(&ctx, look);
        Fit::of(&window).set(&ctx);
        ctx.set_theme(window.theme());
        self.canvas += 1;
        raster::use_canvas(&ctx, self.canvas);
        let scale = window.pixels_per_point().max(SHARPNESS);
        let size = self.view_size.max(Vec2::new(400.0, 240.0)) + Vec2::new(0.0, space::TOP_BAR);
        let work = Work { ctx: ctx.clone(), synchronous: true, ..self.work() };
        let options = self.options.clone();
        let title = self.picture_title()?;
        let open = self.files.current_mut()?;
        let entry = VIEWS.shown_or_first(open.shared.view, &open.document);
        let before = open.shared.clone();
        let document = open.document.clone();
        let hits = open.derived.hits(&work, &document, &before);
        let mut kept = self.settings_store.settings.kept.clone();
        let page = Page { size, zoom: 1.0, ground: Theme::of(&ctx).canvas };
        let drawn = frames(&ctx, page, scale, |ui| {
            let theme = Theme::of(ui.ctx());
            let bar = Frame::new().fill(theme.chrome);
            Panel::top("title").exact_size(space::TOP_BAR).frame(bar).show(ui, |ui| title_bar(ui, &theme, &title));
            CentralPanel::default().frame(Frame::new().fill(theme.canvas)).show(ui, |ui| {
                let mut context = ViewContext {
                    theme: &theme,
                    views: VIEWS,
                    document: &document,
                    shared: &mut open.shared,
                    locals: &mut open.locals,
                    derived: &mut open.derived,
                    options: &options,
                    work: &work,
                    actions: &mut Vec::new(),
                    hits: hits.clone(),
                    kept: &mut kept,
                };
                context.shared.clear_hover();
                (entry.show)(ui, &mut context);
            });
        });
        open.shared = before;
        Some(ViewPicture { image: drawn.image(&ctx), svg: drawn.svg() })
    }

    /// Title of the picture: view, file, program, memory space, step.
    fn picture_title(&self) -> Option<(String, String)> {
        let open = self.files.current()?;
        let document = &open.document;
        let shared = &open.shared;
        let title = VIEWS.by_id(shared.view).map_or("", |entry| entry.title).to_owned();
        let mut parts = vec![document.profile.name.clone()];
        if let Some((program, analysis)) = document.program(shared.program) {
            if program.name != document.profile.name {
                parts.push(program.name.clone());
            }
            if let Some(space) = analysis.space(shared.color) {
                let capacity = shared.capacity.get(&shared.color).or(space.capacity.as_ref());
                let capacity = capacity.map(|c| format!(" of {}", self.options.units.capacity(c.bytes)));
                parts.push(format!("{}{}", space.name, capacity.unwrap_or_default()));
            }
        }
        parts.extend(document.profile.device.name.clone());
        if let Some(step) = shared.step {
            parts.push(format!("step {step}"));
        }
        if !shared.filter.trim().is_empty() {
            parts.push(format!("highlighted: {}", shared.filter.trim()));
        }
        Some((title, parts.join("   \u{b7}   ")))
    }

    /// Copies a picture of the view to the clipboard.
    pub(in crate::ui::app) fn copy_picture(&mut self) {
        match self.picture_of_view() {
            Some(ViewPicture { image, .. }) => {
                let [width, height] = image.size;
                self.ctx.copy_image(image);
                self.say(&format!("Picture copied, {width} \u{d7} {height}"));
            }
            None => self.say("There is no view to copy"),
        }
    }
}

fn title_bar(ui: &Ui, theme: &Theme, (title, words): &(String, String)) {
    let rect = ui.max_rect();
    controls::hairline(ui, rect, theme.line);
    let y = rect.center().y;
    let sign = Rect::from_center_size(Pos2::new(rect.left() + 25.0, y), Vec2::splat(18.0));
    paint_sign(ui.painter(), sign, theme);
    let at = Pos2::new(rect.left() + 44.0, y);
    let drawn = ui.painter().text(at, Align2::LEFT_CENTER, title, Weight::SemiBold.at(size::HEADLINE), theme.text);
    let right = Pos2::new(rect.right() - 16.0, y);
    let brand =
        ui.painter().text(right, Align2::RIGHT_CENTER, "Highwater", Weight::Medium.at(size::SMALL), theme.text3);
    let at = Pos2::new(drawn.right() + 20.0, y + 1.0);
    let room = brand.left() - at.x - 16.0;
    paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), words, Weight::Regular.at(size::BODY), theme.text2, room);
}
