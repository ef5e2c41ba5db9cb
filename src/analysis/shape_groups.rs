//! Buffers of equal shape and layout together: what they waste, what else they could look like, and where the peak
//! would be then.

use std::collections::HashMap;

use super::map::MemoryMap;
use super::program::{ProgramAnalysis, unpadded};
use super::steps::Steps;
use crate::model::{BufferId, Bytes, Program, ShapeNode};

/// Buffers of one shape with one layout.
#[derive(Debug, Clone)]
pub struct ShapeGroup {
    /// The shape; all buffers have it.
    pub node: ShapeNode,
    /// Shape without layout: `f32[1000000,3]`.
    pub shape: String,
    /// Layout with tiles: `{1,0:T(8,128)}`.
    pub layout: String,
    /// The buffers.
    pub buffers: Vec<BufferId>,
    /// Bytes of one.
    pub each: Bytes,
    /// Bytes of one that hold data.
    pub useful: Bytes,
}

impl ShapeGroup {
    /// Bytes of all.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.each.0.saturating_mul(self.buffers.len() as u64))
    }

    /// Padding of all.
    #[must_use]
    pub fn waste(&self) -> Bytes {
        Bytes(self.each.saturating_sub(self.useful).0.saturating_mul(self.buffers.len() as u64))
    }
}

/// Groups buffers by shape, layout and size; those that waste most come first.
#[must_use]
pub fn shape_groups(program: &Program, analysis: &ProgramAnalysis, buffers: &[BufferId]) -> Vec<ShapeGroup> {
    let mut groups: Vec<ShapeGroup> = Vec::new();
    let mut row_of: HashMap<(String, u64), usize> = HashMap::new();
    for &buffer in buffers {
        let Some((shape, index)) = program.buffer_shape(buffer) else { continue };
        let Some(node) = shape.nodes.get(index as usize) else { continue };
        let each = program.buffers.size_of(buffer);
        let row = *row_of.entry((shape.text_of(index), each.0)).or_insert_with(|| {
            groups.push(ShapeGroup {
                node: node.clone(),
                shape: shape.short_text_of(index),
                layout: node.layout.as_ref().map(|layout| layout.text(node.dimensions.len())).unwrap_or_default(),
                buffers: Vec::new(),
                each,
                useful: unpadded(program, &analysis.traces, buffer),
            });
            groups.len() - 1
        });
        groups[row].buffers.push(buffer);
    }
    groups
        .sort_by(|a, b| b.waste().cmp(&a.waste()).then(b.bytes().cmp(&a.bytes())).then_with(|| a.shape.cmp(&b.shape)));
    groups
}

/// Another form of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// What to change, in words.
    pub words: String,
    /// Bytes of one then.
    pub each: Bytes,
    /// What it means: `same data`, `less data`, `room for more`.
    pub effect: &'static str,
}

/// What else an array could look like: other layouts, merged minor dimensions, the nearest sizes that waste nothing.
/// Exact by the tile formula; whether the compiler takes a layout is its own choice.
#[must_use]
pub fn alternatives(node: &ShapeNode) -> Vec<Alternative> {
    let (Some(now), rank) = (node.padded_size(), node.dimensions.len()) else { return Vec::new() };
    let mut found = Vec::new();
    if rank == 0 || node.first_tile().is_empty() {
        return found;
    }
    if let Some(best) = best_layout(node).filter(|other| other.each < now) {
        found.push(best);
    }
    if let Some(merged) = merged(node).filter(|other| other.each < now) {
        found.push(merged);
    }
    let mut wasted = node.padding_by_dimension();
    wasted.retain(|p| p.padded > p.size && p.tile > 1);
    wasted.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    for padding in wasted.into_iter().take(2) {
        let below = padding.size / padding.tile * padding.tile;
        for (size, effect) in [(below, "less data"), (padding.padded, "room for more data")] {
            if size == 0 || size == padding.size {
                continue;
            }
            let mut other = node.clone();
            let Some(dimension) = other.dimensions.get_mut(padding.dimension as usize) else { continue };
            *dimension = size as i64;
            if let Some(each) = other.padded_size() {
                let words = format!("dimension {}: {} \u{2192} {size}", padding.dimension, padding.size);
                found.push(Alternative { words, each, effect });
            }
        }
    }
    found
}

/// The order of dimensions that needs the least, with the same tile.
fn best_layout(node: &ShapeNode) -> Option<Alternative> {
    let rank = node.dimensions.len();
    if !(2..=8).contains(&rank) {
        return None;
    }
    let mut best: Option<(Bytes, Vec<u32>)> = None;
    for minor in 0..rank as u32 {
        for second in (0..rank as u32).filter(|&second| second != minor) {
            let mut order = vec![minor, second];
            order.extend((0..rank as u32).rev().filter(|d| *d != minor && *d != second));
            let mut other = node.clone();
            if let Some(layout) = &mut other.layout {
                layout.minor_to_major.clone_from(&order);
            }
            let Some(each) = other.padded_size() else { continue };
            if best.as_ref().is_none_or(|(least, _)| each < *least) {
                best = Some((each, order));
            }
        }
    }
    let (each, order) = best?;
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    Some(Alternative { words: format!("layout {{{}}}", order.join(",")), each, effect: "same data" })
}

/// The two fastest varying dimensions as one.
fn merged(node: &ShapeNode) -> Option<Alternative> {
    let (first, second) = (node.minor(0)?, node.minor(1)?);
    // Only neighbours can be merged by a reshape.
    if first.abs_diff(second) != 1 {
        return None;
    }
    let (low, high) = (first.min(second), first.max(second));
    let mut other = node.clone();
    let product = node.dimensions.get(low)?.checked_mul(*node.dimensions.get(high)?)?;
    other.dimensions[low] = product;
    other.dimensions.remove(high);
    if let Some(layout) = &mut other.layout {
        layout.minor_to_major = layout
            .minor_to_major
            .iter()
            .filter(|d| **d as usize != high)
            .map(|&d| if d as usize > high { d - 1 } else { d })
            .collect();
        layout.splits.clear();
    }
    if other.dimensions.len() < 2 {
        // One dimension alone would get a tile of its own.
        return None;
    }
    let each = other.padded_size()?;
    let dims: Vec<String> = other.dimensions.iter().map(ToString::to_string).collect();
    let words = format!("merge dimensions {low} and {high}: [{}]", dims.join(","));
    Some(Alternative { words, each, effect: "same data, a reshape" })
}

/// The peak if each of these buffers were smaller by `less`, everything else staying where it is in time.
#[must_use]
pub fn peak_with(map: &MemoryMap, total: &Steps, buffers: &[BufferId], less: Bytes) -> Bytes {
    let mut change: Vec<i128> = vec![0; map.points as usize + 1];
    let wanted: std::collections::HashSet<BufferId> = buffers.iter().copied().collect();
    for item in map.boxes.iter().filter(|item| wanted.contains(&item.buffer)) {
        let always = map.regions.get(item.region as usize).is_some_and(|region| region.always_live);
        let (start, end) = if always { (0, map.points) } else { (item.start, item.end + 1) };
        change[start as usize] -= i128::from(less.0);
        change[(end.min(map.points)) as usize] += i128::from(less.0);
    }
    let mut peak = 0i128;
    let mut now = 0i128;
    let mut rows = total.changes().peekable();
    let mut value = 0u64;
    for point in 0..map.points {
        while let Some(&(at, next)) = rows.peek() {
            if at > point {
                break;
            }
            value = next;
            rows.next();
        }
        now += change[point as usize];
        peak = peak.max(i128::from(value) + now);
    }
    Bytes(u64::try_from(peak).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ElementType, Layout};

    fn table() -> ShapeNode {
        let mut node = ShapeNode::array(ElementType::F32, vec![1_000_000, 3]);
        node.layout =
            Some(Box::new(Layout { minor_to_major: vec![1, 0], tiles: vec![vec![8, 128]], ..Layout::default() }));
        node
    }

    #[test]
    fn a_narrow_table_is_better_the_other_way_round() {
        let all = alternatives(&table());
        let layout = all.iter().find(|a| a.words.starts_with("layout")).map(|a| (a.words.clone(), a.each));
        // 3 rows become 8, a million columns 1,000,064.
        assert_eq!(layout, Some(("layout {0,1}".to_owned(), Bytes(8 * 1_000_064 * 4))));
        let wider = all.iter().find(|a| a.words == "dimension 1: 3 \u{2192} 128").map(|a| a.each);
        assert_eq!(wider, table().padded_size());
    }

    #[test]
    fn what_wastes_nothing_has_no_alternative() {
        let mut node = table();
        node.dimensions = vec![1024, 256];
        assert_eq!(alternatives(&node), Vec::new());
    }
}
