//! Applies the theme to egui's style.

use egui::style::{Selection, WidgetVisuals};
use egui::{CornerRadius, Margin, Shadow, Stroke, TextStyle, Vec2, Visuals};

use super::fonts::{self, Weight};
use super::theme::{Look, Theme, size, space};

/// Sets up a new context with the fonts and both themes.
pub fn install(ctx: &egui::Context) {
    fonts::install(ctx);
    // The application has its own zoom commands and persists the zoom factor.
    ctx.options_mut(|options| options.zoom_with_keyboard = false);
    apply(ctx, Look::default());
    for which in [egui::Theme::Light, egui::Theme::Dark] {
        ctx.style_mut_of(which, |style| {
            style.text_styles = [
                (TextStyle::Heading, Weight::SemiBold.at(size::HEADLINE)),
                (TextStyle::Body, Weight::Regular.at(size::BODY)),
                (TextStyle::Button, Weight::Medium.at(size::BODY)),
                (TextStyle::Small, Weight::Regular.at(size::SMALL)),
                (TextStyle::Monospace, Weight::Mono.at(size::SMALL)),
            ]
            .into();
            style.spacing.item_spacing = Vec2::new(8.0, 4.0);
            style.spacing.button_padding = Vec2::new(10.0, 4.0);
            style.spacing.interact_size.y = space::CONTROL;
            style.spacing.menu_margin = Margin::same(6);
            style.spacing.tooltip_width = 420.0;
            style.animation_time = 0.08;
            style.interaction.tooltip_delay = 0.0;
            style.interaction.show_tooltips_only_when_still = false;
            style.interaction.selectable_labels = false;
            style.url_in_tooltip = false;
        });
    }
}

/// Applies a look to a context.
pub fn apply(ctx: &egui::Context, look: Look) {
    look.set(ctx);
    let themes =
        if look.contrast { [Theme::CONTRAST_LIGHT, Theme::CONTRAST_DARK] } else { [Theme::LIGHT, Theme::DARK] };
    for (which, theme) in [egui::Theme::Light, egui::Theme::Dark].into_iter().zip(themes) {
        ctx.set_visuals_of(which, visuals(&theme));
    }
}

fn visuals(theme: &Theme) -> Visuals {
    let mut visuals = if theme.dark { Visuals::dark() } else { Visuals::light() };
    let radius = CornerRadius::same(space::RADIUS);
    let widget = |fill, edge, text| WidgetVisuals {
        bg_fill: fill,
        weak_bg_fill: fill,
        bg_stroke: Stroke::new(theme.outline, edge),
        corner_radius: radius,
        fg_stroke: Stroke::new(1.0, text),
        expansion: 0.0,
    };
    visuals.widgets.noninteractive = widget(theme.panel, theme.line, theme.text);
    visuals.widgets.inactive = widget(theme.canvas, theme.line2, theme.text);
    visuals.widgets.hovered = widget(theme.hover, theme.line2, theme.text);
    visuals.widgets.active = widget(theme.accent_bg, theme.accent, theme.text);
    visuals.widgets.open = widget(theme.hover, theme.line2, theme.text);
    visuals.selection = Selection { bg_fill: theme.accent_bg, stroke: Stroke::new(theme.outline, theme.accent) };
    visuals.override_text_color = None;
    visuals.hyperlink_color = theme.accent;
    visuals.faint_bg_color = theme.panel;
    visuals.extreme_bg_color = theme.canvas;
    visuals.code_bg_color = theme.inset;
    visuals.warn_fg_color = theme.warn;
    visuals.error_fg_color = theme.danger;
    visuals.window_corner_radius = CornerRadius::same(6);
    visuals.menu_corner_radius = radius;
    visuals.window_fill = theme.panel;
    visuals.panel_fill = theme.canvas;
    visuals.window_stroke = Stroke::new(theme.outline, theme.line2);
    visuals.window_shadow = Shadow::NONE;
    visuals.popup_shadow = Shadow { offset: [0, 2], blur: 8, spread: 0, color: egui::Color32::from_black_alpha(40) };
    visuals.striped = false;
    visuals
}
