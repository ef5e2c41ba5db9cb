//! The pictures of a report as SVG: what stands at the peak against the capacity, the curve, the scopes at the peak.

use std::fmt::Write as _;

use super::picture::Picture;
use super::schema::SpaceReport;
use super::tree::NodeReport;
use crate::analysis::class::Class;
use crate::export::document::escape;
use crate::export::palette::fill_of_class;
use crate::model::{Bytes, UnitSystem, percent};

/// Width of every picture, in its own units; a page scales it.
const WIDTH: f64 = 1000.0;
/// Left edge of what is drawn to scale, after the labels of its axis.
const LEFT: f64 = 76.0;
/// Its right edge, before the label of the limit.
const RIGHT: f64 = 880.0;

/// Height of a row of scopes.
const ROW: f64 = 26.0;

/// The pictures of a memory space.
pub fn pictures(space: &SpaceReport, picture: &Picture) -> Vec<String> {
    let mut found = vec![composition(space), curve(space, picture)];
    found.extend(picture.tree.as_ref().map(scopes));
    found
}

/// The start of a picture with its name for those who do not see it.
fn start(height: f64, name: &str) -> String {
    let name = escape(name);
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{name}\"><title>{name}</title>\n")
}

/// One bar of the classes at the peak, with the limit as a line, and a legend below it.
fn composition(space: &SpaceReport) -> String {
    let sum: u64 = space.peak.by_class.iter().map(|class| class.bytes).sum();
    let most = sum.max(space.allocated_bytes).max(space.capacity_bytes.unwrap_or(0)).max(1);
    let x = |bytes: u64| bytes as f64 / most as f64 * (WIDTH - 2.0) + 1.0;
    let rows = space.peak.by_class.len().div_ceil(3);
    let mut svg = start(64.0 + 20.0 * rows as f64, &format!("Most likely, at the peak of {}", space.name));
    let mut at = 0;
    for (row, class) in space.peak.by_class.iter().enumerate() {
        let (left, right) = (x(at), x(at + class.bytes));
        let share = percent(class.bytes, sum);
        let words = format!("{}: {}, {share}", class.class, Bytes(class.bytes).short());
        let fill = class_fill(class.class);
        let _ = writeln!(
            svg,
            "<rect class=\"f{fill}\" x=\"{left:.1}\" y=\"22\" width=\"{:.1}\" height=\"24\"><title>{}</title></rect>",
            (right - left).max(0.5),
            escape(&words)
        );
        let (column, line) = (row % 3, row / 3);
        let (x, y) = (column as f64 * WIDTH / 3.0 + 1.0, 62.0 + 20.0 * line as f64);
        let _ = writeln!(
            svg,
            "<rect class=\"f{fill}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"12\" height=\"12\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 18.0,
            y + 10.5,
            escape(&words)
        );
        at += class.bytes;
    }
    if let Some(limit) = space.capacity_bytes {
        let at = x(limit);
        let anchor = if at > WIDTH * 0.75 { "end" } else { "start" };
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"18\" y2=\"50\" stroke=\"var(--over)\" stroke-width=\"2\"/>\
             <text x=\"{at:.1}\" y=\"13\" text-anchor=\"{anchor}\">capacity {}</text>",
            UnitSystem::Binary.capacity(Bytes(limit))
        );
    }
    svg + "</svg>"
}

fn class_fill(name: &str) -> usize {
    Class::ALL.into_iter().find(|class| class.name() == name).map_or(5, fill_of_class)
}

/// Live memory over the program, stacked by class, with the limit and the peak.
fn curve(space: &SpaceReport, picture: &Picture) -> String {
    const TOP: f64 = 34.0;
    const BOTTOM: f64 = 290.0;
    let (step, bytes) = picture.peak;
    let most = bytes.max(space.capacity_bytes.unwrap_or(0)).max(1);
    let x = |step: u32| LEFT + f64::from(step) / f64::from(picture.steps.max(1)) * (RIGHT - LEFT);
    let y = |bytes: u64| BOTTOM - bytes as f64 / most as f64 * (BOTTOM - TOP);
    let place = space.reserved_peak_instruction.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    let peak = format!("peak {} at {} {step} of {}{place}", Bytes(bytes).short(), picture.unit, picture.steps);
    let mut svg = start(BOTTOM + 30.0, &format!("Live memory by class: {peak}"));
    let (unit, unit_name) = UnitSystem::Binary.unit_for(Bytes(most));
    for tick in ticks(most) {
        let at = y(tick);
        let number = tick as f64 / unit as f64;
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"var(--line)\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number} {unit_name}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for (place, class) in picture.classes.iter().enumerate() {
        let sums = |count: usize| picture.columns.iter().map(move |(_, bytes)| bytes.iter().take(count).sum::<u64>());
        let steps: Vec<u32> = picture.columns.iter().map(|column| column.0).chain([picture.steps]).collect();
        let mut path = String::new();
        for (i, top) in sums(place + 1).enumerate() {
            let start = if i == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{start}{:.1} {:.1}H{:.1}", x(steps[i]), y(top), x(steps[i + 1]));
        }
        let below: Vec<u64> = sums(place).collect();
        for (i, low) in below.into_iter().enumerate().rev() {
            let _ = write!(path, "L{:.1} {:.1}H{:.1}", x(steps[i + 1]), y(low), x(steps[i]));
        }
        let _ = writeln!(
            svg,
            "<path class=\"f{}\" d=\"{path}Z\"><title>{}</title></path>",
            fill_of_class(*class),
            escape(class.name())
        );
    }
    if let Some(limit) = space.capacity_bytes {
        let at = y(limit);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"var(--over)\" \
             stroke-width=\"2\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text><text x=\"{:.1}\" y=\"{:.1}\">capacity</text>",
            RIGHT + 6.0,
            at + 4.0,
            UnitSystem::Binary.capacity(Bytes(limit)),
            RIGHT + 6.0,
            at + 18.0
        );
    }
    let (at, top) = (x(step), y(bytes));
    let anchor = if at > f64::midpoint(LEFT, RIGHT) { "end" } else { "start" };
    let _ = writeln!(
        svg,
        "<path d=\"M{at:.1} {top:.1}l-6 -10h12Z\" fill=\"var(--ink)\"/>\
         <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>\
         <line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\" stroke=\"var(--line2)\"/>\
         <text x=\"{LEFT}\" y=\"{:.1}\">{} 0</text><text x=\"{RIGHT}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        top - 14.0,
        escape(&peak),
        BOTTOM + 18.0,
        picture.unit,
        BOTTOM + 18.0,
        picture.steps.saturating_sub(1)
    );
    svg + "</svg>"
}

/// Round values of an axis: three to five of them below `most`.
fn ticks(most: u64) -> impl Iterator<Item = u64> {
    let step = (most / 3).max(1);
    let step = 1 << (u64::BITS - 1 - step.leading_zeros());
    (0..=most / step).map(move |count| count * step)
}

/// Live memory at the peak by scope: the whole at the top, the parts of each below it.
fn scopes(root: &NodeReport) -> String {
    let depth = depth(root);
    let mut svg = start(ROW * depth as f64 + 22.0, "Live memory at the peak by name scope");
    svg.push_str("<text x=\"1\" y=\"13\">at the peak, by name scope</text>\n");
    add_scope(&mut svg, root, (1.0, WIDTH - 2.0), 20.0, root.bytes.max(1));
    svg + "</svg>"
}

/// A scope over the width that its bytes take, and those inside it below.
fn add_scope(svg: &mut String, node: &NodeReport, (left, width): (f64, f64), top: f64, whole: u64) {
    let name = node.display_name();
    let words = format!("{name}: {}, {}", Bytes(node.bytes).short(), percent(node.bytes, whole));
    // A character takes about 6.5 units; what does not fit is in the title.
    let room = ((width - 8.0) / 6.5).max(0.0) as usize;
    let label: String = if words.chars().count() <= room { words.clone() } else { name.chars().take(room).collect() };
    let label = if name.chars().count() <= room { label } else { String::new() };
    let _ = writeln!(
        svg,
        "<g><title>{}</title><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"24\" \
         fill=\"var(--panel)\" stroke=\"var(--line2)\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escape(&words),
        left + 5.0,
        top + 16.0,
        escape(&label)
    );
    let mut at = left;
    for child in &node.children {
        let wide = width * child.bytes as f64 / node.bytes.max(1) as f64;
        if wide >= 1.0 {
            add_scope(svg, child, (at, wide), top + ROW, whole);
        }
        at += wide;
    }
}

fn depth(node: &NodeReport) -> usize {
    1 + node.children.iter().map(depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_three_to_seven_round_values() {
        for most in [1, 5, 1000, 16_911_433_728, 103_079_215_104, u64::MAX] {
            let count = ticks(most).count();
            assert!((2..=7).contains(&count), "{count} ticks below {most}");
        }
    }
}
