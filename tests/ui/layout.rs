//! Nothing lies over anything else: for every sample, view and size of window, in light and in presenter mode, no two
//! texts overlap, none is painted out of the window, past its panel or half under another one, no number loses a digit
//! or its unit, and no control lies over another one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use egui::epaint::{ClippedShape, TextShape};
use egui::{Rect, Role, Shape};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::{Options, ThemeChoice};
use highwater::ui::view::VIEWS;

use crate::{common, gui};

/// What may lie as it does: view, kind of finding, words of it, and the reason.
const ALLOWED: &[(&str, &str, &str, &str)] = &[
    ("report", "out of its panel", "'", "the lines of the report are not wrapped: they scroll sideways"),
    ("padding", "a control over another one", "'Shape ", "the points of a plot lie where their numbers put them"),
];

/// Points by which texts may touch: the space that a glyph's picture has around it.
const TOUCH: f32 = 2.0;

/// A line of text that is seen.
struct Line {
    /// Where its glyphs are, clipped or not.
    ink: Rect,
    /// The part of the window that it is painted into.
    clip: Rect,
    /// Its words as they are shown.
    shown: String,
    /// Its words before any were left out.
    whole: String,
    /// Its place in the order of painting.
    order: usize,
}

fn lines_of(text: &TextShape, clip: Rect, order: usize, found: &mut Vec<Line>) {
    let whole = &text.galley.job.text;
    let mut add = |ink: Rect, shown: String| {
        if ink.width() > 4.0 && ink.height() > 2.0 && ink.intersect(clip).area() > 8.0 && !shown.trim().is_empty() {
            found.push(Line { ink, clip, shown, whole: whole.clone(), order });
        }
    };
    if text.angle != 0.0 {
        return add(text.visual_bounding_rect(), whole.clone());
    }
    for row in &text.galley.rows {
        let ink = row.visuals.mesh_bounds.translate(text.pos.to_vec2() + row.pos.to_vec2());
        add(ink, row.glyphs.iter().map(|glyph| glyph.chr).collect());
    }
}

/// A filled area that hides what was painted before it.
struct Cover {
    rect: Rect,
    order: usize,
}

fn gather(shape: &Shape, clip: Rect, order: &mut usize, lines: &mut Vec<Line>, covers: &mut Vec<Cover>) {
    *order += 1;
    match shape {
        Shape::Vec(shapes) => shapes.iter().for_each(|shape| gather(shape, clip, order, lines, covers)),
        Shape::Text(text) => lines_of(text, clip, *order, lines),
        Shape::Rect(rect) if rect.fill.a() == 255 => {
            covers.push(Cover { rect: rect.rect.intersect(clip), order: *order });
        }
        _ => {}
    }
}

/// Whether the shown form of a text leaves out the end of a number, or the unit that gives it its meaning.
fn cuts_a_number(shown: &str, whole: &str) -> bool {
    let Some(kept) = shown.strip_suffix('\u{2026}') else { return false };
    let Some(rest) = whole.strip_prefix(kept) else { return false };
    let last = kept.split(' ').next_back().unwrap_or_default();
    let is_number = |word: &str| {
        word.ends_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',')
            && word.trim_start_matches(['\u{2212}', '\u{d7}', '+', '(']).starts_with(|c: char| c.is_ascii_digit())
    };
    let goes_on = rest.starts_with(|c: char| c.is_ascii_digit())
        || (rest.starts_with(['.', ',']) && rest[1..].starts_with(|c: char| c.is_ascii_digit()));
    let unit = rest.trim_start().split([' ', ',', ';']).next().unwrap_or_default();
    let loses_unit = ["B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "%"].contains(&unit);
    let before = kept.trim_end().split(' ').next_back().unwrap_or_default();
    (goes_on && is_number(last)) || (loses_unit && is_number(before))
}

/// What is wrong with a frame: kind and words.
fn wrong_in(harness: &Harness<'_, App>) -> Vec<(&'static str, String)> {
    let screen = harness.ctx.content_rect();
    let (mut lines, mut covers) = (Vec::new(), Vec::new());
    let mut order = 0;
    for ClippedShape { clip_rect, shape, .. } in &harness.output().shapes {
        gather(shape, clip_rect.intersect(screen), &mut order, &mut lines, &mut covers);
    }
    let mut wrong = Vec::new();
    // What is covered whole is not seen.
    let hidden = |line: &Line| {
        let seen = line.ink.intersect(line.clip);
        covers.iter().any(|cover| cover.order > line.order && cover.rect.expand(0.5).contains_rect(seen))
    };
    lines.retain(|line| !hidden(line));
    for line in &lines {
        let sideways = (line.clip.left() - line.ink.left()).max(line.ink.right() - line.clip.right());
        if sideways > TOUCH {
            wrong.push(("out of its panel", format!("'{}' by {sideways:.0}", line.shown)));
        }
        if line.clip == screen && !screen.expand(TOUCH).contains_rect(line.ink) {
            wrong.push(("out of the window", format!("'{}'", line.shown)));
        }
        let seen = line.ink.intersect(line.clip).shrink(1.0);
        for cover in covers.iter().filter(|cover| cover.order > line.order) {
            let under = cover.rect.intersect(seen);
            if under.width() > TOUCH && under.height() > seen.height() / 2.0 {
                wrong.push(("under something", format!("'{}' by {:.0} at {:?}", line.shown, under.width(), line.ink)));
                break;
            }
        }
        if cuts_a_number(&line.shown, &line.whole) {
            wrong.push(("a cut number", format!("'{}' of '{}'", line.shown, line.whole)));
        }
    }
    for (at, line) in lines.iter().enumerate() {
        let seen = line.ink.intersect(line.clip);
        for other in &lines[at + 1..] {
            let both = other.ink.intersect(other.clip).intersect(seen);
            if both.width() > TOUCH && both.height() > TOUCH && line.shown != other.shown {
                wrong.push(("overlapping", format!("'{}' and '{}' at {both:?}", line.shown, other.shown)));
            }
        }
    }
    wrong.extend(controls_over_each_other(harness, screen));
    wrong
}

fn controls_over_each_other(harness: &Harness<'_, App>, screen: Rect) -> Vec<(&'static str, String)> {
    let roles = [Role::Button, Role::Switch, Role::Tab, Role::TextInput, Role::ComboBox, Role::SpinButton, Role::Link];
    // A control is seen where something of it is painted.
    let shapes: Vec<Rect> = harness
        .output()
        .shapes
        .iter()
        .map(|clipped| clipped.shape.visual_bounding_rect().intersect(clipped.clip_rect).intersect(screen))
        .filter(Rect::is_positive)
        .collect();
    let controls: Vec<(String, Rect)> = harness
        .get_all(egui_kittest::kittest::by())
        .filter(|node| roles.contains(&node.accesskit_node().role()))
        .filter_map(|node| Some((node.accesskit_node().label()?, node.rect())))
        .filter_map(|(label, rect)| {
            let mut inside = shapes.iter().filter(|shape| rect.expand(2.0).contains_rect(**shape));
            let first = *inside.next()?;
            Some((label, inside.fold(first, |all, shape| all.union(*shape)).intersect(rect)))
        })
        .collect();
    let mut wrong = Vec::new();
    for (at, (label, rect)) in controls.iter().enumerate() {
        for (other, place) in &controls[at + 1..] {
            let both = rect.intersect(*place);
            if both.width() > TOUCH && both.height() > TOUCH {
                wrong.push(("a control over another one", format!("'{label}' and '{other}' at {both:?}")));
            }
        }
    }
    wrong
}

fn samples() -> Vec<PathBuf> {
    let others = [
        "ipu_over.cbor",
        "gpu_training.xplane.pb",
        "gpu_0_bfc.memory_dump",
        "tpu_training.prof",
        "v5e_gpt_m_oom.err.txt",
    ];
    let files = common::Files::of_project();
    common::sample_programs().into_iter().chain(others.map(|name| files.ending(name))).collect()
}

const SIZES: [[f32; 2]; 5] = [[760.0, 600.0], [1000.0, 640.0], [1280.0, 800.0], [1600.0, 1000.0], [3840.0, 2160.0]];

/// What is wrong with a file's views, and at which sizes. Each view is looked at in every size and both modes once over
/// all samples, and in each sample at some.
fn check(path: &Path, presenter: bool, take: impl Fn(usize, usize) -> bool) -> (usize, BTreeMap<String, Vec<String>>) {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut frames = 0;
    let options = Options { theme: ThemeChoice::Light, presenter, ..Options::default() };
    let scale = options.scale();
    let mut harness = gui::window_with(&[path], SIZES[0], options, DeepLink::default());
    let views: Vec<&str> = {
        let document = &harness.state().files.current().expect("open").document;
        VIEWS.shown_for(document).map(|view| view.id).collect()
    };
    for (nth, size) in SIZES.iter().enumerate() {
        for (_, view) in views.iter().enumerate().filter(|(at, _)| take(nth, *at)) {
            harness.set_size(egui::Vec2::from(*size) / scale);
            harness.state_mut().files.current_mut().expect("open").shared.show_view(view);
            harness.run_ok();
            frames += 1;
            for (kind, words) in wrong_in(&harness) {
                let is_allowed = |(of, what, part, _): &(&str, &str, &str, &str)| {
                    *of == *view && *what == kind && words.contains(part)
                };
                if ALLOWED.iter().any(is_allowed) {
                    continue;
                }
                let mode = if presenter { " presenter" } else { "" };
                let place = format!("{}x{}{mode}", size[0], size[1]);
                let places = found.entry(format!("{view}: {kind}: {words}")).or_default();
                places.push(place);
            }
        }
    }
    (frames, found)
}

#[test]
fn nothing_lies_over_anything_else() {
    let mut all = 0;
    let mut wrong = Vec::new();
    for path in samples() {
        for presenter in [false, true] {
            let (frames, found) = check(&path, presenter, |_, _| true);
            all += frames;
            wrong
                .extend(found.into_iter().map(|(words, places)| format!("{} {words} {places:?}", common::name(&path))));
        }
    }
    assert!(wrong.is_empty(), "{} things in {all} frames: {wrong:#?}", wrong.len());
}

#[test]
fn a_cut_number_is_known_as_one() {
    let whole = "needs 25.9 GiB of 15.75 GiB";
    for (shown, is_cut) in [("needs 25.\u{2026}", true), ("needs 25\u{2026}", true), ("needs 25.9\u{2026}", true)] {
        assert_eq!(cuts_a_number(shown, whole), is_cut, "{shown}");
    }
    for shown in ["needs 25.9 GiB\u{2026}", "needs\u{2026}", whole] {
        assert!(!cuts_a_number(shown, whole), "{shown}");
    }
    assert!(!cuts_a_number("fusion.12\u{2026}", "fusion.123"), "a name is no number");
}
