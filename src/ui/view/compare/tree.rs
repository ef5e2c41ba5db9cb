//! The difference as an icicle: classes, then the parts of their scopes, each as wide as the larger of before and after and
//! coloured by how much of it is more or less than before.

use std::collections::HashMap;

use egui::{Align2, Color32, Pos2, Rect, Ui, Vec2};

use super::map::{self, Part, amount, classes, fill};
use super::state::{Found, State};
use crate::export::diff::SpaceDiff;
use crate::model::{Bytes, UnitSystem};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::icicle::{Icicle, IcicleTree};
use crate::ui::widget::theme::{Slot, Theme, size};

/// Height of the title and of the legend below it.
const TITLE: f32 = 22.0;
const LEGEND: f32 = 18.0;

/// A tree of what both peaks hold.
pub struct Differences {
    of: u64,
    units: UnitSystem,
    nodes: Vec<Node>,
}

struct Node {
    part: Part,
    /// The sum of the larger sides of everything in it.
    area: u64,
    parent: usize,
    children: Vec<usize>,
}

impl Differences {
    fn new(of: u64, space: &SpaceDiff, units: UnitSystem) -> Self {
        let part = |name: &str| Part { name: name.to_owned(), before: 0, after: 0, row: None };
        let root = Node { part: part("Everything"), area: 0, parent: 0, children: Vec::new() };
        let mut tree = Self { of, units, nodes: vec![root] };
        let mut known: HashMap<(usize, String), usize> = HashMap::new();
        for (class, parts) in classes(space) {
            for found in parts {
                let mut at = 0;
                for name in std::iter::once(class).chain(found.name.split('/').filter(|name| !name.is_empty())) {
                    let next = tree.nodes.len();
                    let node = *known.entry((at, name.to_owned())).or_insert(next);
                    if node == next {
                        tree.nodes.push(Node { part: part(name), area: 0, parent: at, children: Vec::new() });
                        tree.nodes[at].children.push(node);
                    }
                    at = node;
                }
                tree.nodes[at].part.row = tree.nodes[at].part.row.or(found.row);
                tree.add(at, &found);
            }
        }
        let areas: Vec<u64> = tree.nodes.iter().map(|node| node.area).collect();
        for node in &mut tree.nodes {
            node.children.sort_by_key(|&child| std::cmp::Reverse(areas[child]));
        }
        tree
    }

    /// Adds the bytes of a part to a node and to all that it is in.
    fn add(&mut self, mut at: usize, found: &Part) {
        loop {
            let node = &mut self.nodes[at];
            node.part.before = node.part.before.saturating_add(found.before);
            node.part.after = node.part.after.saturating_add(found.after);
            node.area = node.area.saturating_add(found.largest());
            if at == 0 {
                return;
            }
            at = node.parent;
        }
    }
}

impl IcicleTree for Differences {
    fn parent(&self, node: usize) -> usize {
        self.nodes[node].parent
    }

    fn children(&self, node: usize) -> &[usize] {
        &self.nodes[node].children
    }

    fn bytes(&self, node: usize) -> u64 {
        self.nodes[node].area
    }

    fn name(&self, node: usize) -> &str {
        &self.nodes[node].part.name
    }

    fn slot(&self, _node: usize) -> Slot {
        Slot::Temporary
    }

    fn fill(&self, node: usize, theme: &Theme) -> Option<(Color32, Color32)> {
        let share = self.nodes[node].part.share();
        let words = if share.abs() > map::STRONG { theme.halo } else { theme.text };
        Some((fill(theme, share), words))
    }

    fn amount(&self, node: usize) -> Option<String> {
        Some(amount(self.units, &self.nodes[node].part))
    }
}

/// Draws the tree; a click zooms in, and chooses the row of a scope.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, rect: Rect) {
    let Some(space) = found.space() else { return };
    let theme = context.theme;
    let units = context.options.units;
    let at = (Pos2::new(rect.left(), rect.top() + 8.0), Align2::LEFT_CENTER);
    let words = found.words().whole;
    paint_cut(ui.painter(), at, words, Weight::SemiBold.at(size::BODY), theme.text, rect.width());
    map::legend(ui, theme, Pos2::new(rect.left(), rect.top() + TITLE + LEGEND / 2.0 - 2.0), rect.width());
    let plot = Rect::from_min_max(rect.min + Vec2::new(0.0, TITLE + LEGEND), rect.max);
    let of = found.number;
    let tree = state.tree.take().filter(|tree| tree.of == of && tree.units == units);
    let tree = tree.unwrap_or_else(|| {
        state.icicle.go(0);
        Differences::new(of, space, units)
    });
    let words = |bytes: u64| units.short(Bytes(bytes));
    let icicle = Icicle { tree: &tree, version: of, lit: None, words: &words, name: "Tree of differences" };
    let response = icicle.show(ui, &mut state.icicle, plot);
    let row = |node: usize| tree.nodes.get(node).and_then(|node| node.part.row);
    if response.went
        && let Some(row) = row(state.icicle.root)
    {
        state.choose(row);
        context.shared.select(space.groups.get(row as usize).and_then(|row| row.largest_after));
    }
    if let Some(node) = response.hovered.and_then(|node| tree.nodes.get(node)) {
        let part = &node.part;
        let (before, after) = (units.short(Bytes(part.before)), units.short(Bytes(part.after)));
        let sizes = format!("{before} \u{2192} {after}, {}", amount(units, part));
        response.response.on_hover_ui_at_pointer(|ui| {
            ui.label(text(&part.name, size::BODY, Weight::SemiBold, theme.text));
            ui.label(text(sizes, size::SMALL, Weight::Medium, theme.text));
        });
    }
    state.tree = Some(tree);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::diff::{GroupDiff, StepDiff, StepName};

    #[test]
    fn every_node_holds_what_is_below_it() {
        let row = |class, scope: &str, before: u64, after: u64| GroupDiff {
            change: "grew",
            change_words: "grew",
            class: std::borrow::Cow::Borrowed(class),
            scope: scope.to_owned(),
            before,
            after,
            difference: i128::from(after) - i128::from(before),
            count_before: 1,
            count_after: 1,
            shape_before: String::new(),
            shape_after: String::new(),
            is_mixed: false,
            largest_before: None,
            largest_after: None,
        };
        let step = |class, before: i128, after: i128| StepDiff {
            name: StepName::Class(class),
            before,
            after,
            difference: after - before,
            appeared: 0,
            gone: 0,
            resized: 0,
            came: 0,
            left: 0,
        };
        let groups =
            vec![row("Activation", "a/b", 10, 30), row("Activation", "a/c", 20, 0), row("Weight", "a/b", 0, 7)];
        let waterfall = vec![step("Activation", 130, 130), step("Weight", 50, 57)];
        let space = SpaceDiff { waterfall, groups, ..SpaceDiff::default() };
        let tree = Differences::new(0, &space, UnitSystem::Binary);
        for (at, node) in tree.nodes.iter().enumerate().filter(|(_, node)| !node.children.is_empty()) {
            let sum = |of: fn(&Node) -> u64| node.children.iter().map(|&child| of(&tree.nodes[child])).sum::<u64>();
            assert_eq!(sum(|node| node.area), node.area, "{at}");
            assert_eq!(sum(|node| node.part.before), node.part.before, "{at}");
            assert_eq!(sum(|node| node.part.after), node.part.after, "{at}");
        }
        assert_eq!((tree.nodes[0].part.before, tree.nodes[0].part.after), (180, 187));
        assert_eq!(tree.nodes[0].area, 130 - 30 + 30 + 20 + 57);
        let scope = tree.nodes.iter().find(|node| node.part.name == "a").expect("a scope");
        assert_eq!((scope.part.before, scope.part.after, scope.children.len()), (30, 30, 2));
    }
}
