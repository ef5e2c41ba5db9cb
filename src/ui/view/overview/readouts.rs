//! The row of readouts: peak, padding, fragmentation, arguments, outputs, temporaries.

use egui::{Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::analysis::caution;
use crate::model::{Bytes, Category, counted, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::{hairline, paint_cut, vline};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;

struct Readout {
    title: &'static str,
    bytes: Bytes,
    remark: String,
    /// The remark where there is no room for all of it.
    short: Option<String>,
    caution: bool,
}

impl Readout {
    const fn new(title: &'static str, bytes: Bytes, remark: String, caution: bool) -> Self {
        Self { title, bytes, remark, short: None, caution }
    }
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let space = scene.space;
    let peak = space.peak();
    let points = scene.analysis.live.as_ref().map(|live| live.points());
    let place = match points {
        Some(points) => format!("step {} of {points}", space.peak_point()),
        None => {
            format!("heap event {} of {}", space.peak_point(), space.event_count())
        }
    };
    let count = |category: Category| {
        space.at_peak.by_category.iter().find(|row| row.0 == category).map_or((Bytes::ZERO, 0), |r| (r.1, r.2))
    };
    let (temporaries, temporary_count) = count(Category::Temporary);
    let donated = scene
        .program
        .allocations
        .iter()
        .filter(|a| a.is_parameter && a.color == space.color && a.is_parameter_aliased)
        .count();
    let arguments = scene.program.allocations.iter().filter(|a| a.is_parameter && a.color == space.color).count();
    let outputs = space.xprof.live_out;
    let argument_words = match donated {
        0 if arguments > 0 && outputs > Bytes::ZERO => format!("none of {} donated", thousands(arguments as u64)),
        0 => counted(arguments as u64, "buffer"),
        n => format!("{} of {} donated", thousands(n as u64), thousands(arguments as u64)),
    };
    let of_peak = |bytes: Bytes| format!("{} of the peak", percent(bytes.0, peak.0));
    let buffers = counted(temporary_count as u64, "buffer");
    let readouts = [
        Readout::new("Peak", peak, place, false),
        Readout {
            short: Some(format!("{} of it", percent(space.at_peak.padding.0, peak.0))),
            ..Readout::new(
                "Padding at the peak",
                space.at_peak.padding,
                of_peak(space.at_peak.padding),
                caution::is_padding(space.at_peak.padding, peak),
            )
        },
        Readout::new(
            "Fragmentation",
            space.fragmentation(),
            format!("{} of allocated", percent(space.fragmentation().0, space.xprof.allocated.0)),
            caution::is_fragmentation(space.fragmentation(), space.xprof.allocated),
        ),
        Readout::new(
            "Arguments",
            space.xprof.parameters,
            argument_words,
            donated == 0 && caution::is_undonated(space.xprof.parameters, outputs, peak),
        ),
        Readout::new(
            "Outputs",
            outputs,
            if donated > 0 { "including donated".to_owned() } else { of_peak(outputs) },
            false,
        ),
        Readout {
            short: Some(format!("{} in {buffers}", percent(temporaries.0, peak.0))),
            ..Readout::new("Temporaries", temporaries, format!("{}, in {buffers}", of_peak(temporaries)), false)
        },
    ];
    let columns = if ui.available_width() < ONE_ROW { 3 } else { 6 };
    for row in readouts.chunks(columns) {
        let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 68.0), Sense::hover());
        hairline(ui, Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.top() + 1.0)), theme.line);
        let width = rect.width() / columns as f32;
        for (i, readout) in row.iter().enumerate() {
            let left = rect.left() + width * i as f32;
            if i > 0 {
                vline(ui, left - 1.0, rect.top() + 10.0, rect.bottom() - 8.0, theme.line);
            }
            let left = left + if i > 0 { 14.0 } else { 0.0 };
            cell(ui, context, Pos2::new(left, rect.top()), width - 22.0, readout);
        }
        hairline(ui, rect, theme.line);
    }
}

/// Width from which all numbers stand in one row with what is said about them.
const ONE_ROW: f32 = 980.0;

fn cell(ui: &Ui, context: &ViewContext<'_>, at: Pos2, width: f32, readout: &Readout) {
    let theme = context.theme;
    let painter = ui.painter();
    let top_left = egui::Align2::LEFT_TOP;
    let small = Weight::Regular.at(size::SMALL);
    let mut cut =
        paint_cut(painter, (at + Vec2::new(0.0, 8.0), top_left), readout.title, small.clone(), theme.text2, width).1;
    let (number, unit) = context.options.units.split(readout.bytes);
    let drawn =
        painter.text(at + Vec2::new(0.0, 22.0), top_left, number, Weight::SemiBold.at(size::READOUT), theme.text);
    let unit_at = Pos2::new(drawn.right() + 5.0, drawn.bottom() - 4.0);
    painter.text(unit_at, egui::Align2::LEFT_BOTTOM, unit, Weight::Medium.at(size::BODY), theme.text2);
    let mut remark_at = at + Vec2::new(0.0, 49.0);
    let mut room = width;
    let color = if readout.caution { theme.warn } else { theme.text2 };
    if readout.caution {
        // A caution is marked by a sign as well as by colour.
        painter.text(remark_at, top_left, "!", Weight::SemiBold.at(size::SMALL), theme.warn);
        remark_at.x += 8.0;
        room -= 8.0;
    }
    let fits = |words: &str| painter.layout_no_wrap(words.to_owned(), small.clone(), color).size().x <= room;
    let remark = readout.short.as_ref().filter(|_| !fits(&readout.remark)).unwrap_or(&readout.remark);
    cut |= remark != &readout.remark;
    cut |= paint_cut(painter, (remark_at, top_left), remark, small.clone(), color, room).1;
    let rect = Rect::from_min_size(at, Vec2::new(width, 66.0));
    let response = ui.interact(rect, ui.scope_id().with(("readout", readout.title)), Sense::hover());
    let words = format!("{} {} {}", readout.title, context.short(readout.bytes), readout.remark);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &words));
    let exact = readout.bytes.exact();
    let hover = if cut { format!("{exact}\n{}", readout.remark) } else { exact };
    response.on_hover_text(hover);
}
