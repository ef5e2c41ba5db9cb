//! Controls and other building blocks of views, in small pictures in every theme. To add one, add a line to
//! [`PARTS`].

use egui::{Rect, Sense, Ui, Vec2};
use egui_kittest::{Harness, SnapshotResults};
use highwater::ui::chart::legend::{self as chart_legend, Sign};
use highwater::ui::widget::controls::{self, Mark};
use highwater::ui::widget::heat_legend::{self, HeatLegend};
use highwater::ui::widget::style;
use highwater::ui::widget::theme::{Look, Slot, Theme};

use crate::{gui, picture};

type Part = (&'static str, Vec2, fn(&mut Ui, &Theme));

const PARTS: &[Part] = &[
    ("controls", Vec2::new(420.0, 190.0), show_controls),
    ("signs", Vec2::new(420.0, 120.0), show_signs),
    ("legends", Vec2::new(420.0, 150.0), show_legends),
];

/// A strip of the available width, to paint on.
fn strip(ui: &mut Ui, height: f32) -> Rect {
    ui.allocate_exact_size(Vec2::new(ui.available_width(), height), Sense::hover()).0
}

fn show_controls(ui: &mut Ui, theme: &Theme) {
    controls::button(ui, "Open…", "Ctrl O", theme);
    controls::toggle_button(ui, "Hide names", "", controls::On(true), theme);
    controls::toggle(ui, controls::On(true), "Padding hatched", theme);
    controls::toggle(ui, controls::On(false), "Layers folded", theme);
    controls::segmented(ui, &["Treemap", "Icicle", "Both"], 1, theme);
    controls::link(ui, "fusion.218 at step 1,204", theme);
    controls::menu_row(ui, "Show in the memory map", "M", theme);
}

fn show_signs(ui: &mut Ui, theme: &Theme) {
    let rect = strip(ui, 40.0);
    let at = |place: f32| rect.left_center() + Vec2::new(place, 0.0);
    for (place, mark) in [(20.0, Mark::Over), (60.0, Mark::Fits), (100.0, Mark::Unknown)] {
        controls::paint_mark(ui.painter(), at(place), mark, theme);
    }
    controls::paint_pin(ui.painter(), at(140.0), 3, theme);
    controls::paint_sign(ui.painter(), Rect::from_center_size(at(190.0), Vec2::splat(28.0)), theme);
    for used in [0.5, 0.95, 1.5] {
        let gauge = strip(ui, 16.0).shrink2(Vec2::new(4.0, 4.0));
        controls::paint_gauge(ui.painter(), gauge, used, Some(1.0), theme);
    }
}

fn show_legends(ui: &mut Ui, theme: &Theme) {
    let slots = [
        (Slot::Weight, "weights"),
        (Slot::Optimizer, "optimizer state"),
        (Slot::Output, "outputs"),
        (Slot::Activation, "activations"),
        (Slot::Gradient, "gradients"),
        (Slot::Temporary, "temporaries"),
        (Slot::Constant, "constants"),
    ];
    ui.horizontal_wrapped(|ui| {
        for (slot, words) in slots {
            controls::legend(ui, slot, words, theme);
        }
        for (sign, words) in [(Sign::Line, "now"), (Sign::Dashes, "before"), (Sign::Free, "free"), (Sign::Gaps, "gaps")]
        {
            chart_legend::entry(ui, theme, sign, words);
        }
        controls::guess(ui, "by its name", theme);
    });
    let lines = [("0 to 624 KiB".to_owned(), theme.text2)];
    let heat = HeatLegend {
        end: 0.8,
        over_end: 1.0,
        reversed: false,
        floor: 0.0,
        limit: Some((0.8, "capacity".to_owned())),
        ticks: vec![(0.0, "0".to_owned()), (0.8, "624 KiB".to_owned())],
        bars: vec![(0.1, 0.2, 7, false), (0.4, 0.5, 20, false), (0.9, 1.0, 3, true)],
        lines: &lines,
    };
    let rect = strip(ui, heat_legend::HEIGHT);
    heat.show(ui, theme, rect);
}

fn draw(results: &mut SnapshotResults, (name, size, show): Part, (dark, contrast): (bool, bool)) {
    let mut is_ready = false;
    let mut harness = Harness::builder()
        .with_size(size)
        .with_theme(if dark { egui::Theme::Dark } else { egui::Theme::Light })
        .renderer(gui::Renderer::default())
        .build_ui(move |ui| {
            let ctx = ui.ctx().clone();
            if !is_ready {
                // Fonts are available from the next frame on.
                style::install(&ctx);
                style::apply(&ctx, Look { contrast, presenter: false });
                is_ready = true;
                ctx.request_repaint();
                return;
            }
            let theme = Theme::of(&ctx);
            ui.painter().rect_filled(ctx.content_rect(), 0.0, theme.canvas);
            show(ui, &theme);
        });
    harness.run_ok();
    let theme = match (dark, contrast) {
        (false, false) => "light",
        (true, false) => "dark",
        (false, true) => "contrast_light",
        (true, true) => "contrast_dark",
    };
    picture::compare(results, &mut harness, &format!("part_{name}_{theme}"));
}

#[test]
fn parts_look_as_they_did_in_every_theme() {
    let mut results = SnapshotResults::default();
    for part in PARTS {
        for look in [(false, false), (true, false), (false, true), (true, true)] {
            draw(&mut results, *part, look);
        }
    }
}
