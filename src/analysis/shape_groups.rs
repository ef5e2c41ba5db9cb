//! Groups buffers by shape and layout: their padding, and the peak without it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::map::{MapBox, MemoryMap};
use super::peak_contents::padding_in;
use super::program::{ProgramAnalysis, unpadded};
use super::steps::Steps;
use crate::model::{BufferId, Bytes, ElementType, Layout, Program, ShapeNode};

/// Buffers of one shape with one layout.
#[derive(Debug, Clone)]
pub struct ShapeGroup {
    /// The shape; all buffers have it.
    pub node: ShapeNode,
    /// Shape without layout: `f32[1000000,3]`.
    pub shape: String,
    /// Layout with tiles: `{1,0:T(8,128)}`.
    pub layout: String,
    /// Buffers of this shape among those given.
    pub buffers: Vec<BufferId>,
    /// Bytes of each, padding included.
    pub each: Bytes,
    /// Bytes of each that hold data.
    pub useful: Bytes,
    /// Total bytes that count for them: less than their sizes where others have taken over a part of the memory.
    pub bytes: Bytes,
    /// Padding in these bytes.
    pub waste: Bytes,
    /// Every buffer of this shape and layout, including those live at other times: a change of the shape affects all of
    /// them. Filled by [`rank`].
    pub everywhere: Vec<BufferId>,
    /// Bytes by which the peak would fall without the padding of all of them; computed by [`rank`].
    pub saves: Bytes,
    /// What makes or takes most of them, in words, if the compiler chooses the layout for that: no other form helps then.
    pub fixed_by: Option<&'static str>,
}

impl ShapeGroup {
    /// How many times the bytes of its data each takes; `None` for a table of addresses, which has none.
    #[must_use]
    pub fn expansion(&self) -> Option<f64> {
        (self.useful > Bytes::ZERO && !self.node.is_tuple()).then(|| self.each.0 as f64 / self.useful.0 as f64)
    }
}

/// What tells an array from others: element type, dimensions, which of them are dynamic, layout, bytes.
type Outline<'a> = (ElementType, &'a [i64], &'a [bool], Option<&'a Layout>, u64);

/// Groups buffers, with the bytes that count for each, by shape, layout and size, most padding first.
#[must_use]
pub fn shape_groups(program: &Program, analysis: &ProgramAnalysis, buffers: &[(BufferId, Bytes)]) -> Vec<ShapeGroup> {
    let mut groups: Vec<ShapeGroup> = Vec::new();
    let mut row_of: HashMap<(String, u64), usize> = HashMap::new();
    // Most equal shapes of a program are one value, whose place stands for its text; elements of tuples are not, but
    // what is the same has the same text.
    let mut known_at: HashMap<(*const ShapeNode, u64), usize, RandomState> = HashMap::default();
    let mut known: HashMap<Outline<'_>, usize, RandomState> = HashMap::default();
    for &(buffer, bytes) in buffers {
        let Some((shape, index)) = program.buffer_shape(buffer) else { continue };
        let Some(node) = shape.nodes.get(index as usize) else { continue };
        let each = program.buffers.size_of(buffer);
        let outline = (node.element_type, &*node.dimensions, &*node.dynamic, node.layout.as_deref(), each.0);
        let is_plain = node.children.is_empty() && !node.is_tuple();
        let mut of_text = || {
            *row_of.entry((shape.text_of(index), each.0)).or_insert_with(|| {
                groups.push(ShapeGroup {
                    node: node.clone(),
                    shape: shape.short_text_of(index),
                    layout: node.layout.as_ref().map(|layout| layout.text(node.dimensions.len())).unwrap_or_default(),
                    buffers: Vec::new(),
                    each,
                    useful: unpadded(program, &analysis.traces, buffer),
                    bytes: Bytes::ZERO,
                    waste: Bytes::ZERO,
                    everywhere: Vec::new(),
                    saves: Bytes::ZERO,
                    fixed_by: None,
                });
                groups.len() - 1
            })
        };
        let row = *known_at
            .entry((std::ptr::from_ref(node), each.0))
            .or_insert_with(|| if is_plain { *known.entry(outline).or_insert_with(of_text) } else { of_text() });
        let group = &mut groups[row];
        group.buffers.push(buffer);
        group.bytes += bytes;
        let padding = padding_in(program, &analysis.traces, buffer, bytes);
        group.waste += Bytes(u64::try_from(padding).unwrap_or(0));
    }
    groups.sort_by(|a, b| b.waste.cmp(&a.waste).then(b.bytes.cmp(&a.bytes)).then_with(|| a.shape.cmp(&b.shape)));
    groups
}

/// The peak if each of these boxes were smaller by `less` bytes, with all live ranges unchanged.
#[must_use]
pub fn peak_with(map: &MemoryMap, total: &Steps, boxes: &[MapBox], less: Bytes) -> Bytes {
    let mut events: Vec<(u32, i128)> = Vec::with_capacity(boxes.len() * 2);
    let mut regions = std::collections::HashSet::new();
    for item in boxes {
        let always = map.regions.get(item.region as usize).is_some_and(|region| region.always_live);
        // A result in an argument's memory is the same bytes.
        if always && !regions.insert(item.region) {
            continue;
        }
        let (start, end) = if always { (0, map.points) } else { (item.start, item.end.saturating_add(1)) };
        events.extend([(start, -i128::from(less.0)), (end, i128::from(less.0))]);
    }
    events.sort_unstable_by_key(|event| event.0);
    let (mut peak, mut saved, mut from) = (0i128, 0i128, 0);
    for at_once in events.chunk_by(|a, b| a.0 == b.0) {
        let point = at_once[0].0.min(map.points);
        peak = peak.max(i128::from(total.highest(from, point)) + saved);
        saved += at_once.iter().map(|event| event.1).sum::<i128>();
        from = point;
    }
    peak = peak.max(i128::from(total.highest(from, map.points)) + saved);
    Bytes(u64::try_from(peak).unwrap_or(0))
}

/// Most groups whose saving is computed; the others have less padding.
const RANKED: usize = 100;

/// Computes what each group would save at the peak without its padding, and sorts by that. `all` are the groups of the
/// whole memory space.
pub fn rank(groups: &mut [ShapeGroup], all: &[ShapeGroup], map: &MemoryMap, total: &Steps) {
    let peak = total.changes().map(|(_, value)| value).max().unwrap_or(0);
    let of_all: HashMap<(&str, &str, Bytes), &ShapeGroup> =
        all.iter().map(|group| ((group.shape.as_str(), group.layout.as_str(), group.each), group)).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.waste));
    for (i, group) in groups.iter_mut().enumerate() {
        let whole = of_all.get(&(group.shape.as_str(), group.layout.as_str(), group.each));
        group.everywhere.clone_from(whole.map_or(&group.buffers, |whole| &whole.buffers));
        if i < RANKED && group.waste > Bytes::ZERO {
            let boxes: Vec<MapBox> = group.everywhere.iter().filter_map(|&b| map.box_of(b).copied()).collect();
            let after = peak_with(map, total, &boxes, group.each.saturating_sub(group.useful));
            // Where others have taken over a part of the memory, less counts than the buffers' sizes.
            group.saves = Bytes(peak.saturating_sub(after.0)).min(group.waste);
        }
    }
    groups.sort_by(|a, b| {
        let key = |group: &ShapeGroup| std::cmp::Reverse((group.saves, group.waste, group.bytes));
        key(a).cmp(&key(b)).then_with(|| a.shape.cmp(&b.shape))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;

    fn table() -> ShapeNode {
        ShapeNode::tiled(ElementType::F32, &[1_000_000, 3], &[1, 0], &[&[8, 128]])
    }

    fn group(shape: &str, buffers: &[u32], each: u64, useful: u64) -> ShapeGroup {
        ShapeGroup {
            node: table(),
            shape: shape.to_owned(),
            layout: String::new(),
            buffers: buffers.iter().map(|&b| BufferId(b)).collect(),
            each: Bytes(each),
            useful: Bytes(useful),
            bytes: Bytes(each * buffers.len() as u64),
            waste: Bytes((each - useful) * buffers.len() as u64),
            everywhere: Vec::new(),
            saves: Bytes::ZERO,
            fixed_by: None,
        }
    }

    #[test]
    fn what_saves_at_the_peak_comes_before_what_wastes_elsewhere() {
        let at = |buffer, start, end| MapBox { buffer: BufferId(buffer), start, end, address: 0, size: 0, region: 0 };
        // 0 lives at the peak (points 2 to 3), 1 and 2 at its foot.
        let boxes = [at(0, 2, 3), at(1, 4, 5), at(2, 6, 7)];
        let map = MemoryMap::of_boxes(8, 100, boxes.to_vec());
        let mut total = Steps::default();
        for (point, value) in [(0, 10), (1, 10), (2, 100), (3, 100), (4, 90), (5, 90), (6, 50), (7, 50)] {
            total.push(point, value);
        }
        let mut groups = vec![group("b", &[1, 2], 60, 10), group("a", &[0], 40, 20)];
        let all = groups.clone();
        rank(&mut groups, &all, &map, &total);
        let found: Vec<_> = groups.iter().map(|g| (g.shape.as_str(), g.saves.0, g.waste.0)).collect();
        // Without its 20 the peak is 90, where the other group stands.
        assert_eq!(found, [("a", 10, 20), ("b", 0, 100)]);
        // Seen at the peak, one of two equal buffers; the other stands at another time and changes with it.
        let mut one = vec![group("c", &[0], 40, 20)];
        rank(&mut one, &[group("c", &[0, 1], 40, 20)], &map, &total);
        assert_eq!((one[0].saves, one[0].everywhere.len()), (Bytes(20), 2));
        assert_eq!(peak_with(&map, &total, &boxes[..1], Bytes(5)), Bytes(95));
        assert_eq!(peak_with(&map, &total, &[], Bytes(5)), Bytes(100));
    }
}
