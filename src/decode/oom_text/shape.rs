//! Shapes as XLA prints them, read back: `bf16[12,60000,4096]{2,1,0:T(8,128)(2,1)S(1)}`, or a tuple of such.

use std::sync::Arc;

use crate::model::{COMBINE, ElementType, Layout, Shape, ShapeNode};

/// Tuples inside tuples beyond this depth are not read.
const MAX_DEPTH: usize = 16;
/// A shape with more parts is not read.
const MAX_NODES: usize = 100_000;

/// The shape at the start of a text, and what follows it. `None` where the text does not begin with a whole shape.
pub fn parse(text: &str) -> Option<(Shape, &str)> {
    let mut nodes = 0;
    let (shape, rest) = parse_at(text, 0, &mut nodes)?;
    Some((shape, rest))
}

/// The dimensions and the element type at the start of a text that may be cut after them.
pub fn parse_array(text: &str) -> Option<(ShapeNode, &str)> {
    let bracket = text.find('[')?;
    let element_type = ElementType::from_name(text.get(..bracket)?)?;
    let rest = &text[bracket + 1..];
    let (dims, rest) = rest.split_once(']')?;
    let mut node = ShapeNode::array(element_type, Vec::new());
    if !dims.is_empty() {
        for dim in dims.split(',') {
            let bound = dim.strip_prefix("<=");
            node.dynamic.push(bound.is_some());
            let dim = bound.unwrap_or(dim);
            node.dimensions.push(if dim == "?" { i64::MIN } else { dim.parse().ok()? });
        }
    }
    if !node.dynamic.contains(&true) {
        node.dynamic.clear();
    }
    Some((node, rest))
}

fn parse_at<'a>(text: &'a str, depth: usize, nodes: &mut usize) -> Option<(Shape, &'a str)> {
    *nodes += 1;
    if depth > MAX_DEPTH || *nodes > MAX_NODES {
        return None;
    }
    if let Some(mut rest) = text.strip_prefix('(') {
        let mut elements = Vec::new();
        loop {
            rest = rest.trim_start();
            // XLA numbers the elements of long tuples: `/*index=5*/`.
            if let Some(comment) = rest.strip_prefix("/*") {
                rest = comment.split_once("*/")?.1;
            }
            if let Some(after) = rest.strip_prefix(')') {
                return Some((Shape::tuple(&elements), after));
            }
            let (element, after) = parse_at(rest, depth + 1, nodes)?;
            elements.push(element);
            rest = after.strip_prefix(',').unwrap_or(after);
            if rest.len() == after.len() && !rest.starts_with(')') {
                return None;
            }
        }
    }
    let (mut node, rest) = parse_array(text)?;
    let Some(body) = rest.strip_prefix('{') else { return Some((Shape::from_array(node), rest)) };
    let (layout, rest) = body.split_once('}')?;
    node.layout = Some(Arc::new(parse_layout(layout)?));
    Some((Shape::from_array(node), rest))
}

/// `2,1,0:T(8,128)(2,1)L(1024)E(4)S(1)`.
fn parse_layout(text: &str) -> Option<Layout> {
    let (order, mut tail) = text.split_once(':').unwrap_or((text, ""));
    let mut layout = Layout::default();
    for dim in order.split(',').filter(|dim| !dim.is_empty()) {
        layout.minor_to_major.push(dim.trim().parse().ok()?);
    }
    let mut section = ' ';
    while let Some(first) = tail.chars().next() {
        if first != '(' {
            section = first;
            tail = &tail[first.len_utf8()..];
            // `SC(..)`, `#(..)`: of two letters the last one counts, only `S` followed by `C` is another thing.
            if section == 'S' && tail.starts_with('C') {
                section = 'C';
                tail = &tail[1..];
            }
            continue;
        }
        let (inside, rest) = tail[1..].split_once(')')?;
        tail = rest;
        match section {
            'T' => {
                let tile: Option<Vec<i64>> =
                    inside.split(',').map(|n| if n == "*" { Some(COMBINE) } else { n.parse().ok() }).collect();
                layout.tiles.push(tile?);
            }
            'L' => layout.tail_padding_alignment = inside.parse().ok()?,
            'E' => layout.element_size_in_bits = inside.parse().ok()?,
            'S' => layout.memory_space = inside.parse().ok()?,
            'M' => layout.dynamic_prefix_bytes = inside.parse().ok()?,
            'C' => {
                let (dimension, indices) = inside.split_once(':')?;
                let indices: Option<Vec<i64>> = indices.split(',').map(|n| n.parse().ok()).collect();
                layout.splits.push((dimension.parse().ok()?, indices?));
            }
            _ => {}
        }
    }
    Some(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_shapes_are_read_back() {
        for text in [
            "bf16[12,60000,4096]{2,1,0:T(8,128)(2,1)}",
            "f32[]{:T(128)}",
            "f32[]",
            "bf16[<=1000,100]{1,0:T(8,128)(2,1)L(1024)E(16)S(1)M(64)}",
            "f32[10,20,30]{2,1,0:T(4,128)SC(0:5)}",
            "(s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)})",
        ] {
            let (shape, rest) = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((shape.to_string().as_str(), rest), (text, ""));
        }
        let long = "(s32[], s32[], s32[], s32[], s32[], /*index=5*/s32[]) fusion(";
        let (shape, rest) = parse(long).unwrap_or_else(|| panic!("{long}"));
        assert_eq!((shape.root().children.len(), rest), (6, " fusion("));
    }

    #[test]
    fn cut_and_hostile_shapes_are_none() {
        for text in ["", "f32[12,", "f32[12]{0:T(8", "q32[1]", "(f32[1]", "f32[1]{x}", "(((((((((((((((((((((((((("] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(parse(&"(".repeat(1 << 20)).is_none());
    }
}
