//! Links from numbers in cards: each step, address, buffer, group, shape, padding or source line links to the view that
//! shows it.

use egui::{Align, Layout, Response, Role, Ui, WidgetInfo};

use crate::ui::part::{ViewContext, Views};
use crate::ui::session::RowScope;
use crate::ui::widget::controls::cut_label;
use crate::ui::widget::cut::cut_link;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Target of a link.
#[derive(Debug, Clone)]
pub enum To {
    /// To a step, in the current view.
    Step(u32),
    /// To a live range in the timeline.
    Life(u32, u32),
    /// To another view.
    View(&'static str),
    /// To the buffers at the peak or at the step, in the table.
    Rows(RowScope),
    /// To the buffers that match a filter, in the table.
    Filter(String),
}

impl To {
    /// A filter `key:"words"`.
    pub fn words(key: &str, words: &str) -> Self {
        Self::Filter(format!("{key}:\"{}\"", words.replace('"', "")))
    }

    /// Whether the target view applies to the document.
    fn is_there(&self, context: &ViewContext<'_>) -> bool {
        let id = match self {
            Self::Step(_) => return true,
            Self::Life(..) => "timeline",
            Self::View(id) => id,
            Self::Rows(_) | Self::Filter(_) => "buffers",
        };
        context.views.shown(id, context.document).is_some()
    }

    /// Tooltip with what a click does.
    fn hint(&self, views: Views) -> String {
        let title = |id: &str| views.by_id(id).map_or("", |view| view.title);
        match self {
            Self::Step(_) => "Go to this step".to_owned(),
            Self::Life(..) => "Show its live range in Timeline".to_owned(),
            Self::View(id) => format!("Show in {}", title(id)),
            Self::Rows(_) => "Show in Buffers".to_owned(),
            Self::Filter(filter) => format!("Show in Buffers: {filter}"),
        }
    }

    fn go(self, context: &mut ViewContext<'_>) {
        match self {
            Self::Step(step) => context.shared.choose_step(step),
            Self::View(id) => context.go(id),
            Self::Life(start, end) => {
                let points = context.data().map_or(1, |data| data.map.points.max(1));
                let (lo, hi) = (f64::from(start), f64::from(end) + 1.0);
                let margin = ((hi - lo) * 0.25).max(4.0);
                context.shared.zoom_to(((lo - margin).max(0.0), (hi + margin).min(f64::from(points))));
                context.go("timeline");
            }
            Self::Rows(rows) => {
                context.shared.list_rows(rows);
                context.go("buffers");
            }
            Self::Filter(filter) => {
                context.shared.set_filter(filter);
                context.shared.list_rows(RowScope::All);
                context.go("buffers");
            }
        }
    }
}

/// A link at most `width` points wide; `name` is the label for screen readers. Plain text if the target does not apply.
pub fn number(ui: &mut Ui, context: &mut ViewContext<'_>, name: &str, words: &str, width: f32, to: To) {
    let theme = context.theme;
    if !to.is_there(context) {
        cut_label(ui, words, Weight::Medium.at(size::SMALL), theme.text, width);
        return;
    }
    let response = cut_link(ui, words, Weight::Medium.at(size::SMALL), width, theme);
    let spoken = format!("{name} {words}");
    response.widget_info(|| WidgetInfo::labeled(Role::Link, true, spoken.trim()));
    let hint = to.hint(context.views);
    let response: Response = response.on_hover_text(format!("{words}\n{hint}"));
    if response.clicked() {
        to.go(context);
    }
}

/// A name on the left, a linked value on the right.
pub fn fact(ui: &mut Ui, context: &mut ViewContext<'_>, name: &str, value: &str, to: To) {
    facts(ui, context, name, &[(value.to_owned(), Some(to))]);
}

/// A name on the left, and on the right texts of which some are links.
pub fn facts(ui: &mut Ui, context: &mut ViewContext<'_>, name: &str, values: &[(String, Option<To>)]) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        let width = ui.available_width();
        ui.label(text(name, size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = 4.0;
            for (words, to) in values.iter().rev() {
                let room = ui.available_width().min(width * 0.68);
                match to {
                    Some(to) => number(ui, context, name, words, room, to.clone()),
                    None => {
                        cut_label(ui, words, Weight::Medium.at(size::SMALL), theme.text, room);
                    }
                }
            }
        });
    });
}
