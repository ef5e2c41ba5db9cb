//! An icicle chart: a tree as rows of boxes, each with a width proportional to its bytes and placed below its parent. The
//! cost of a frame depends on the pixels: narrow boxes are merged, and the picture is redrawn only when it changes.

use egui::{Align2, Color32, Pos2, Rect, Response, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::controls::{link_sized, paint_cut};
use super::fonts::{Weight, text};
use super::keys;
use super::raster::{CachedRaster, Hatch, RasterArea};
use super::theme::{Slot, Theme, dimmed, size};

/// Height of a row in points.
pub const ROW: f32 = 22.0;
/// Boxes narrower than this many points are merged.
const MIN_WIDTH: f64 = 1.5;
/// Minimum width in points of a box with a label.
const MIN_LABEL_WIDTH: f32 = 44.0;
/// Maximum number of rows laid out; deeper ones are reached by zooming in.
const MAX_ROWS: u32 = 400;
/// Maximum number of boxes laid out.
const MAX_PLACED: usize = 20_000;

/// A tree of bytes: node 0 is the root and its own parent.
pub trait IcicleTree {
    /// The parent of a node.
    fn parent(&self, node: usize) -> usize;
    /// Children of a node, largest first.
    fn children(&self, node: usize) -> &[usize];
    /// Bytes of a node including its descendants.
    fn bytes(&self, node: usize) -> u64;
    /// Label of a node.
    fn name(&self, node: usize) -> &str;
    /// Fraction of its bytes that is padding, 0 to 1; drawn hatched.
    fn padding_share(&self, _node: usize) -> f64 {
        0.0
    }
    /// Colour of a node.
    fn slot(&self, node: usize) -> Slot;
    /// Fill of a node and colour of the words on it, where they are not those of its slot.
    fn fill(&self, _node: usize, _theme: &Theme) -> Option<(Color32, Color32)> {
        None
    }
    /// What is written behind the name of a node, where it is not its bytes.
    fn amount(&self, _node: usize) -> Option<String> {
        None
    }
}

/// The path from the root to `node`, both included.
#[must_use]
pub fn trail(tree: &dyn IcicleTree, node: usize) -> Vec<usize> {
    let mut trail = vec![node];
    let mut at = node;
    while at != 0 && trail.len() <= MAX_ROWS as usize * 4 {
        at = tree.parent(at);
        trail.push(at);
    }
    trail.reverse();
    trail
}

/// A laid-out box.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Placed {
    node: usize,
    /// Number of narrow nodes merged into this box; 0 if it is a single node.
    rest: u32,
    left: f32,
    right: f32,
    row: u32,
}

/// State of an icicle between frames.
#[derive(Default)]
pub struct IcicleState {
    /// The node zoomed to.
    pub root: usize,
    /// Scroll offset in points.
    top: f32,
    /// The node selected by keyboard.
    at: Option<usize>,
    placed: Vec<Placed>,
    rows: u32,
    key: Option<(u64, usize, u32)>,
    raster: CachedRaster,
}

impl IcicleState {
    /// Zooms to a node.
    pub fn go(&mut self, node: usize) {
        self.root = node;
        self.top = 0.0;
    }
}

/// An icicle to show.
pub struct Icicle<'a> {
    /// The tree.
    pub tree: &'a dyn IcicleTree,
    /// Changes whenever the tree does.
    pub version: u64,
    /// Which nodes are highlighted, with a number that changes whenever the answer does; the others are dimmed.
    pub lit: Option<(&'a dyn Fn(usize) -> bool, u64)>,
    /// Formats bytes.
    pub words: &'a dyn Fn(u64) -> String,
    /// Accessible name.
    pub name: &'a str,
}

/// Result of showing an icicle.
pub struct IcicleResponse {
    /// The node under the pointer; for merged nodes, their parent.
    pub hovered: Option<usize>,
    /// Number of nodes merged in the box under the pointer.
    pub rest: u32,
    /// Whether the user zoomed to another node.
    pub went: bool,
    /// The node selected by keyboard and its rectangle, for its context menu.
    pub focused: Option<(usize, Rect)>,
    /// Response of the box under the pointer, for a tooltip.
    pub response: Response,
}

impl Icicle<'_> {
    /// Shows the icicle. A click or Enter zooms in, Backspace zooms out, the wheel scrolls.
    pub fn show(&self, ui: &Ui, state: &mut IcicleState, rect: Rect) -> IcicleResponse {
        let theme = Theme::of(ui.ctx());
        let ground = ui.interact(rect, ui.scope_id().with((self.name, "icicle")), Sense::click());
        let whole = (self.words)(self.tree.bytes(state.root));
        self.place(state, rect.width());
        let pressed = keys::field(ui, &ground);
        self.move_by(state, &pressed, rect.height());
        let here = state
            .at
            .filter(|_| pressed.has_focus)
            .map_or_else(String::new, |node| format!("; {} {}", self.tree.name(node), self.amount(node)));
        ground.widget_info(|| {
            let spoken = format!("{}: {}, {whole}{here}", self.name, self.tree.name(state.root));
            WidgetInfo::labeled(Role::Image, true, spoken)
        });
        let below = (state.rows as f32 * ROW - rect.height()).max(0.0);
        if ui.rect_contains_pointer(rect) {
            state.top -= ui.input(|i| i.smooth_scroll_delta().y);
        }
        state.top = state.top.clamp(0.0, below).round();
        self.draw(ui, state, rect, &theme);
        let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
        let pointer =
            ui.input(|i| i.pointer.hover_pos()).filter(|at| ui.rect_contains_pointer(rect) && rect.contains(*at));
        let mut out = IcicleResponse { hovered: None, rest: 0, went: false, focused: None, response: ground };
        let mut to = state.at.filter(|_| pressed.enter);
        for (i, placed) in state.placed.iter().enumerate() {
            let place = Self::rect_of(placed, state, rect);
            if place.bottom() <= rect.top() || place.top() >= rect.bottom() {
                continue;
            }
            let seen = place.intersect(rect);
            let under = pointer.is_some_and(|at| seen.contains(at));
            if place.width() >= MIN_LABEL_WIDTH && placed.rest == 0 {
                self.caption(&painter, placed, place, &theme);
                let id = ui.scope_id().with((self.name, i));
                let response = ui.interact(seen, id, Sense::CLICK);
                response.widget_info(|| {
                    let bytes = self.amount(placed.node);
                    WidgetInfo::labeled(Role::TreeItem, true, format!("{} {bytes}", self.tree.name(placed.node)))
                });
                if response.clicked() {
                    to = Some(placed.node);
                }
                if under {
                    out.response = response;
                }
            }
            if under {
                (out.hovered, out.rest) = (Some(placed.node), placed.rest);
                painter.rect_stroke(place, 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Inside);
            }
            if pressed.has_focus && placed.rest == 0 && state.at == Some(placed.node) {
                out.focused = Some((placed.node, seen));
            }
        }
        if let Some((_, place)) = out.focused {
            keys::ring_at(&painter, place, &theme);
        }
        if out.response.clicked_by(egui::PointerButton::Primary) {
            to = out.hovered;
        }
        if pressed.back || (keys::are_free(ui.ctx()) && ui.input(|i| i.key_pressed(egui::Key::Backspace))) {
            to = Some(self.tree.parent(state.root));
            state.at = Some(state.root);
        }
        if let Some(node) = to.filter(|node| *node != state.root) {
            if pressed.enter {
                state.at = self.tree.children(node).first().copied().or(Some(node));
            }
            state.go(node);
            out.went = true;
        }
        if below > 0.0 {
            Self::bar(&painter, state, rect, below, &theme);
        }
        out
    }

    /// Moves the keyboard selection from box to box and scrolls it into view.
    fn move_by(&self, state: &mut IcicleState, pressed: &keys::Pressed, height: f32) {
        if !pressed.has_focus || (state.at.is_some() && !pressed.moves()) {
            return;
        }
        let zero = Rect::from_min_size(Pos2::ZERO, Vec2::ZERO);
        let boxes: Vec<&Placed> = state.placed.iter().filter(|placed| placed.rest == 0).collect();
        let first = self.tree.children(state.root).first().copied().unwrap_or(state.root);
        let at = state.at.and_then(|node| boxes.iter().position(|placed| placed.node == node));
        let to = match at {
            None => Some(first),
            Some(_) if pressed.first => Some(state.root),
            Some(_) if pressed.last => boxes.iter().max_by_key(|placed| placed.row).map(|placed| placed.node),
            Some(at) => {
                let places: Vec<Rect> = boxes.iter().map(|placed| Self::rect_of(placed, state, zero)).collect();
                keys::neighbour(&places, at, pressed.by).map(|to| boxes[to].node)
            }
        };
        let row = to.and_then(|to| boxes.iter().find(|placed| placed.node == to)).map(|placed| placed.row as f32 * ROW);
        state.at = to.or(state.at);
        if let Some(top) = row {
            state.top = state.top.max((top + ROW - height).max(0.0)).min(top.max(0.0));
        }
    }

    /// Height of all rows below [`IcicleState::root`] in points.
    pub fn height(&self, state: &mut IcicleState, width: f32) -> f32 {
        self.place(state, width);
        state.rows as f32 * ROW
    }

    fn rect_of(placed: &Placed, state: &IcicleState, rect: Rect) -> Rect {
        let top = rect.top() + placed.row as f32 * ROW - state.top;
        Rect::from_min_max(Pos2::new(rect.left() + placed.left, top), Pos2::new(rect.left() + placed.right, top + ROW))
    }

    /// Lays out the boxes below the root if the tree, the root or the width has changed.
    fn place(&self, state: &mut IcicleState, width: f32) {
        let key = (self.version, state.root, width.to_bits());
        if state.key == Some(key) {
            return;
        }
        if state.key.is_some_and(|known| known.0 != key.0) {
            state.at = None;
        }
        state.key = Some(key);
        state.placed.clear();
        let width = f64::from(width);
        let mut open = vec![(state.root, 0.0, width, 0u32)];
        state.rows = 0;
        while let Some((node, left, right, row)) = open.pop() {
            if state.placed.len() >= MAX_PLACED {
                break;
            }
            state.placed.push(Placed { node, rest: 0, left: left as f32, right: right as f32, row });
            state.rows = state.rows.max(row + 1);
            let bytes = self.tree.bytes(node);
            if row + 1 >= MAX_ROWS || bytes == 0 {
                continue;
            }
            let scale = (right - left) / bytes as f64;
            let children = self.tree.children(node);
            let mut x = left;
            for (i, &child) in children.iter().enumerate() {
                let share = self.tree.bytes(child) as f64 * scale;
                if share < MIN_WIDTH {
                    // Children are sorted by size, so the rest is narrower.
                    let rest: u64 =
                        children[i..].iter().map(|&child| self.tree.bytes(child)).fold(0, u64::saturating_add);
                    let end = (x + (rest as f64 * scale).max(1.0)).min(right);
                    if rest > 0 && end > x {
                        let (left, right) = (x as f32, end as f32);
                        state.placed.push(Placed {
                            node,
                            rest: (children.len() - i) as u32,
                            left,
                            right,
                            row: row + 1,
                        });
                        state.rows = state.rows.max(row + 2);
                    }
                    break;
                }
                open.push((child, x, (x + share).min(right), row + 1));
                x += share;
            }
        }
    }

    fn draw(&self, ui: &Ui, state: &mut IcicleState, rect: Rect, theme: &Theme) {
        let key = (state.key, state.top.to_bits(), self.lit.map(|lit| lit.1), theme.dark);
        let (placed, top) = (&state.placed, state.top);
        state.raster.show(ui, RasterArea { rect, name: self.name, ground: theme.panel }, key, |raster| {
            let scale = raster.scale();
            let pixel = |v: f32| (v * scale).round() as i64;
            for placed in placed {
                let y = placed.row as f32 * ROW - top;
                if y + ROW <= 0.0 || y >= rect.height() {
                    continue;
                }
                let (x0, x1, y0, y1) = (pixel(placed.left), pixel(placed.right), pixel(y), pixel(y + ROW) - 1);
                // Every box is at least one pixel wide.
                let x1 = (x1 - i64::from(x1 - x0 > 3)).max(x0 + 1);
                let fill = if placed.rest > 0 { Slot::Temporary.color() } else { self.colors(placed.node, theme).0 };
                let lit = self.lit.is_none_or(|(lit, _)| placed.rest == 0 && lit(placed.node));
                let color = if lit { fill } else { dimmed(fill, theme) };
                raster.fill(x0, y0, x1, y1, color);
                let padding = if placed.rest > 0 { 0.0 } else { self.tree.padding_share(placed.node).clamp(0.0, 1.0) };
                let wasted = ((x1 - x0) as f64 * padding).round() as i64;
                if lit && wasted > 0 {
                    raster.hatch(x1 - wasted, y0, x1, y1, Hatch::padding(theme.hatch));
                }
            }
        });
    }

    /// Fill of a node and colour of the words on it.
    fn colors(&self, node: usize, theme: &Theme) -> (Color32, Color32) {
        let slot = self.tree.slot(node);
        self.tree.fill(node, theme).unwrap_or((slot.color(), slot.text()))
    }

    /// What is written behind the name of a node.
    fn amount(&self, node: usize) -> String {
        self.tree.amount(node).unwrap_or_else(|| (self.words)(self.tree.bytes(node)))
    }

    fn caption(&self, painter: &egui::Painter, placed: &Placed, place: Rect, theme: &Theme) {
        if self.lit.is_some_and(|(lit, _)| !lit(placed.node)) {
            return;
        }
        let color = self.colors(placed.node, theme).1;
        let at = Pos2::new(place.left() + 6.0, place.center().y - 0.5);
        let room = place.width() - 10.0;
        let bytes = self.amount(placed.node);
        let font = Weight::Medium.at(size::SMALL);
        let (drawn, cut) =
            paint_cut(painter, (at, Align2::LEFT_CENTER), self.tree.name(placed.node), font, color, room);
        let number = Weight::Regular.at(size::SMALL);
        let wide = painter.layout_no_wrap(bytes.clone(), number.clone(), color).size().x;
        if !cut && drawn.right() + 10.0 + wide < place.right() - 4.0 {
            painter.text(Pos2::new(drawn.right() + 10.0, at.y), Align2::LEFT_CENTER, bytes, number, color);
        }
    }

    /// Paints the scroll bar.
    fn bar(painter: &egui::Painter, state: &IcicleState, rect: Rect, below: f32, theme: &Theme) {
        let length = (rect.height() * rect.height() / (below + rect.height())).max(24.0);
        let top = rect.top() + (rect.height() - length) * state.top / below;
        let thumb = Rect::from_min_size(Pos2::new(rect.right() - 6.0, top), Vec2::new(4.0, length));
        painter.rect_filled(thumb, 2.0, theme.text3);
    }
}

/// Adds breadcrumbs for the path to the zoomed node; clicking one zooms out to it. The middle of long paths is elided.
pub fn crumbs(ui: &mut Ui, tree: &dyn IcicleTree, state: &mut IcicleState, theme: &Theme) {
    const ENDS: usize = 3;
    let trail = trail(tree, state.root);
    let mut to = None;
    for (i, &node) in trail.iter().enumerate() {
        if trail.len() > ENDS * 2 && i >= ENDS && i + ENDS < trail.len() {
            if i == ENDS {
                ui.label(text("\u{2026} /", size::LEAD, Weight::Regular, theme.text3));
            }
            continue;
        }
        if i + 1 == trail.len() {
            ui.label(text(tree.name(node), size::LEAD, Weight::SemiBold, theme.text));
        } else {
            if link_sized(ui, tree.name(node), size::LEAD, theme).clicked() {
                to = Some(node);
            }
            ui.label(text("/", size::LEAD, Weight::Regular, theme.text3));
        }
    }
    if let Some(node) = to {
        state.go(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with children of `widths` bytes, the first of which has a chain of `depth` descendants.
    struct Fan {
        children: Vec<Vec<usize>>,
        parents: Vec<usize>,
        bytes: Vec<u64>,
    }

    impl Fan {
        fn new(widths: &[u64], depth: usize) -> Self {
            let mut fan = Self { children: vec![vec![]], parents: vec![0], bytes: vec![widths.iter().sum()] };
            for &width in widths {
                fan.add(0, width);
            }
            let mut at = 1;
            for _ in 0..depth {
                at = fan.add(at, widths[0]);
            }
            fan
        }

        fn add(&mut self, parent: usize, bytes: u64) -> usize {
            let node = self.bytes.len();
            self.children.push(vec![]);
            self.parents.push(parent);
            self.bytes.push(bytes);
            self.children[parent].push(node);
            node
        }
    }

    impl IcicleTree for Fan {
        fn parent(&self, node: usize) -> usize {
            self.parents[node]
        }
        fn children(&self, node: usize) -> &[usize] {
            &self.children[node]
        }
        fn bytes(&self, node: usize) -> u64 {
            self.bytes[node]
        }
        fn name(&self, _: usize) -> &'static str {
            "n"
        }
        fn slot(&self, _: usize) -> Slot {
            Slot::Weight
        }
    }

    fn placed(tree: &Fan, width: f32) -> Vec<Placed> {
        let mut state = IcicleState::default();
        let icicle = Icicle { tree, version: 1, lit: None, words: &|b| b.to_string(), name: "test" };
        icicle.place(&mut state, width);
        state.placed
    }

    #[test]
    fn widths_are_proportional_and_narrow_boxes_are_merged() {
        let tree = Fan::new(&[50, 30, 1, 1, 1], 0);
        let all = placed(&tree, 83.0);
        let of = |node: usize| all.iter().find(|p| p.node == node && p.rest == 0).map(|p| (p.left, p.right));
        assert_eq!(of(0), Some((0.0, 83.0)));
        assert_eq!(of(1), Some((0.0, 50.0)));
        assert_eq!(of(2), Some((50.0, 80.0)));
        let rest = all.iter().find(|p| p.rest > 0).map(|p| (p.rest, p.left, p.right));
        assert_eq!(rest, Some((3, 80.0, 83.0)));
    }

    #[test]
    fn large_trees_lay_out_few_boxes() {
        let many = Fan::new(&vec![1; 100_000], 0);
        assert!(placed(&many, 1000.0).len() <= 2);
        let deep = Fan::new(&[7], 100_000);
        assert_eq!(placed(&deep, 1000.0).len(), MAX_ROWS as usize);
        assert!(trail(&deep, 100_001).len() > MAX_ROWS as usize);
    }
}
