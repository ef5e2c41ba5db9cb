//! Prints shapes as XLA does, with layout: `bf16[1025,1024]{1,0:T(8,128)(2,1)S(1)}`.

use std::fmt::{self, Write as _};

use super::shape::{COMBINE, Layout, Shape, ShapeNode};

impl Shape {
    /// The subshape at a node, like XLA's `HumanStringWithLayout`.
    #[must_use]
    pub fn text_of(&self, node: u32) -> String {
        let mut out = String::new();
        self.write(&mut out, node, true);
        out
    }

    /// The subshape at a node without layouts: `bf16[1025,1024]`.
    #[must_use]
    pub fn short_text_of(&self, node: u32) -> String {
        let mut out = String::new();
        self.write(&mut out, node, false);
        out
    }

    fn write(&self, out: &mut String, node: u32, layout: bool) {
        let Some(shape) = self.nodes.get(node as usize) else { return };
        if shape.is_tuple() {
            out.push('(');
            for (i, &child) in shape.children.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                // XLA numbers the elements of long tuples, in a comment.
                if layout && i > 0 && i.is_multiple_of(5) {
                    let _ = write!(out, "/*index={i}*/");
                }
                self.write(out, child, layout);
            }
            out.push(')');
        } else {
            shape.write(out, layout);
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_of(0))
    }
}

impl ShapeNode {
    fn write(&self, out: &mut String, layout: bool) {
        out.push_str(self.element_type.name());
        out.push('[');
        for (i, &dimension) in self.dimensions.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            if self.dynamic.get(i) == Some(&true) {
                out.push_str("<=");
            }
            if dimension == i64::MIN {
                out.push('?');
            } else {
                let _ = write!(out, "{dimension}");
            }
        }
        out.push(']');
        if let (true, Some(layout)) = (layout, &self.layout) {
            layout.write(out, self.dimensions.len());
        }
    }
}

impl Layout {
    /// Writes `{minor_to_major:properties}` for an array of the given rank; nothing for a scalar without properties.
    fn write(&self, out: &mut String, rank: usize) {
        let mut tail = String::new();
        if !self.tiles.is_empty() {
            tail.push('T');
        }
        for tile in &self.tiles {
            tail.push('(');
            for (i, &dimension) in tile.iter().enumerate() {
                if i > 0 {
                    tail.push(',');
                }
                if dimension == COMBINE {
                    tail.push('*');
                } else {
                    let _ = write!(tail, "{dimension}");
                }
            }
            tail.push(')');
        }
        if self.tail_padding_alignment > 1 {
            let _ = write!(tail, "L({})", self.tail_padding_alignment);
        }
        if self.element_size_in_bits != 0 {
            let _ = write!(tail, "E({})", self.element_size_in_bits);
        }
        if self.memory_space != 0 {
            let _ = write!(tail, "S({})", self.memory_space);
        }
        for (dimension, indices) in &self.splits {
            let indices: Vec<String> = indices.iter().map(ToString::to_string).collect();
            let _ = write!(tail, "SC({dimension}:{})", indices.join(","));
        }
        if self.dynamic_prefix_bytes > 0 {
            let _ = write!(tail, "M({})", self.dynamic_prefix_bytes);
        }
        if rank == 0 && tail.is_empty() {
            return;
        }
        out.push('{');
        for (i, dimension) in self.minor_to_major.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            let _ = write!(out, "{dimension}");
        }
        if !tail.is_empty() {
            out.push(':');
            out.push_str(&tail);
        }
        out.push('}');
    }

    /// The layout as printed after the shape of an array of the given rank: `{1,0:T(8,128)}`.
    #[must_use]
    pub fn text(&self, rank: usize) -> String {
        let mut out = String::new();
        self.write(&mut out, rank);
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::element_type::ElementType;
    use super::*;

    // Strings as printed by xprof 2.24.2 for the same protos.
    #[test]
    fn prints_as_xla_does() {
        let mut node = ShapeNode::array(ElementType::BF16, vec![1000, 100]);
        node.dynamic = vec![true, false];
        node.layout = Some(Arc::new(Layout {
            minor_to_major: vec![1, 0],
            tiles: vec![vec![8, 128], vec![2, 1]],
            tail_padding_alignment: 1024,
            element_size_in_bits: 16,
            memory_space: 1,
            dynamic_prefix_bytes: 64,
            splits: Vec::new(),
        }));
        let shape = Shape::from_array(node);
        assert_eq!(shape.to_string(), "bf16[<=1000,100]{1,0:T(8,128)(2,1)L(1024)E(16)S(1)M(64)}");
        assert_eq!(shape.short_text_of(0), "bf16[<=1000,100]");

        let mut split = ShapeNode::array(ElementType::F32, vec![10, 20, 30]);
        split.layout = Some(Arc::new(Layout {
            minor_to_major: vec![2, 1, 0],
            tiles: vec![vec![4, 128]],
            splits: vec![(0, vec![5])],
            ..Layout::default()
        }));
        assert_eq!(Shape::from_array(split).to_string(), "f32[10,20,30]{2,1,0:T(4,128)SC(0:5)}");

        let mut scalar = ShapeNode::array(ElementType::F32, vec![]);
        scalar.layout = Some(Arc::default());
        assert_eq!(Shape::from_array(scalar.clone()).to_string(), "f32[]");
        scalar.layout = Some(Arc::new(Layout { tiles: vec![vec![128]], ..Layout::default() }));
        let scalar = Shape::from_array(scalar);
        assert_eq!(scalar.to_string(), "f32[]{:T(128)}");
        let token = Shape::from_array(ShapeNode::array(ElementType::TOKEN, vec![]));
        assert_eq!(Shape::tuple(&[scalar, token]).to_string(), "(f32[]{:T(128)}, token[])");
    }
}
