//! Parses shapes as XLA prints them, with or without layout; the inverse of `shape_text`.

use std::sync::Arc;

use super::element_type::ElementType;
use super::shape::{COMBINE, Layout, Shape, ShapeNode};

/// Maximum nesting depth of tuples.
const MAX_DEPTH: u32 = 32;

/// Maximum length of a list of numbers; longer ones are taken for damaged text.
const MAX_NUMBERS: usize = 4096;

impl Shape {
    /// Parses a shape; `None` if `text` is not exactly one shape.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (shape, rest) = Self::parse_prefix(text.trim())?;
        rest.is_empty().then_some(shape)
    }

    /// Parses a shape at the start of `text` and returns it with the rest; `None` if there is none.
    #[must_use]
    pub fn parse_prefix(text: &str) -> Option<(Self, &str)> {
        let mut parser = Parser { rest: text };
        let shape = parser.shape(0)?;
        Some((shape, parser.rest))
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Skips spaces and comments such as `/*index=5*/`.
    fn skip_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let Some(end) = self.rest.strip_prefix("/*").and_then(|rest| rest.find("*/")) else { return };
            self.rest = &self.rest[end + 4..];
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Option<i64> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().ok()
    }

    /// Comma-separated numbers up to `end`; `*` and `?` are read as `i64::MIN`.
    fn numbers(&mut self, end: &str) -> Option<Vec<i64>> {
        let mut numbers = Vec::new();
        if self.eat(end) {
            return Some(numbers);
        }
        loop {
            if self.eat("*") || self.eat("?") {
                numbers.push(COMBINE);
            } else {
                numbers.push(self.number()?);
            }
            if self.eat(end) {
                return Some(numbers);
            }
            if !self.eat(",") || numbers.len() > MAX_NUMBERS {
                return None;
            }
        }
    }

    fn shape(&mut self, depth: u32) -> Option<Shape> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.eat("(") {
            let mut elements = Vec::new();
            self.skip_blank();
            if self.eat(")") {
                return Some(Shape::tuple(&elements));
            }
            loop {
                self.skip_blank();
                elements.push(self.shape(depth + 1)?);
                self.skip_blank();
                if self.eat(")") {
                    return Some(Shape::tuple(&elements));
                }
                if !self.eat(",") {
                    return None;
                }
            }
        }
        let element_type = ElementType::from_name(self.word())?;
        if element_type == ElementType::TUPLE || !self.eat("[") {
            return None;
        }
        let mut node = ShapeNode::array(element_type, Vec::new());
        if !self.eat("]") {
            loop {
                let dynamic = self.eat("<=");
                node.dimensions.push(if self.eat("?") { i64::MIN } else { self.number()? });
                node.dynamic.push(dynamic);
                if self.eat("]") {
                    break;
                }
                if !self.eat(",") || node.dimensions.len() > MAX_NUMBERS {
                    return None;
                }
            }
        }
        if !node.dynamic.contains(&true) {
            node.dynamic.clear();
        }
        if self.eat("{") {
            node.layout = Some(Arc::new(self.layout()?));
        } else if node.dimensions.is_empty() {
            node.layout = Some(Arc::default());
        }
        Some(Shape::from_array(node))
    }

    /// The layout after the opening brace, including the closing one.
    fn layout(&mut self) -> Option<Layout> {
        let mut layout = Layout::default();
        if self.eat("}") {
            return Some(layout);
        }
        while !self.rest.starts_with([':', '}']) {
            layout.minor_to_major.push(u32::try_from(self.number()?).ok()?);
            if layout.minor_to_major.len() > MAX_NUMBERS || (!self.eat(",") && !self.rest.starts_with([':', '}'])) {
                return None;
            }
        }
        if self.eat(":") {
            while !self.rest.starts_with('}') {
                self.property(&mut layout)?;
            }
        }
        self.eat("}").then_some(layout)
    }

    fn property(&mut self, layout: &mut Layout) -> Option<()> {
        if self.eat("SC(") {
            let dimension = self.number()?;
            let indices = if self.eat(":") { self.numbers(")")? } else { self.eat(")").then(Vec::new)? };
            layout.splits.push((dimension, indices));
        } else if self.eat("T(") {
            layout.tiles.push(self.numbers(")")?);
            while self.eat("(") {
                layout.tiles.push(self.numbers(")")?);
            }
        } else if self.eat("L(") {
            layout.tail_padding_alignment = *self.numbers(")")?.first()?;
        } else if self.eat("E(") {
            layout.element_size_in_bits = u32::try_from(*self.numbers(")")?.first()?).ok()?;
        } else if self.eat("S(") {
            layout.memory_space = *self.numbers(")")?.first()?;
        } else if self.eat("M(") {
            layout.dynamic_prefix_bytes = *self.numbers(")")?.first()?;
        } else {
            // D(..), #(..), *(..) and P(..) do not affect sizes.
            let open = self.rest.find('(')?;
            let mut depth = 0u32;
            for (at, c) in self.rest.char_indices().skip(open) {
                match c {
                    '(' => depth += 1,
                    ')' if depth == 1 => {
                        self.rest = &self.rest[at + 1..];
                        return Some(());
                    }
                    ')' => depth = depth.checked_sub(1)?,
                    _ => {}
                }
            }
            return None;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn printed_shapes_round_trip() {
        for text in [
            "f32[]",
            "f32[]{:T(128)}",
            "bf16[<=1000,100]{1,0:T(8,128)(2,1)L(1024)E(16)S(1)M(64)}",
            "f32[10,20,30]{2,1,0:T(4,128)SC(0:5)}",
            "s4[1024,1024]{1,0:E(4)}",
            "(f32[]{:T(128)}, token[])",
            "()",
            "((f32[4,2]{1,0}), u32[]{:S(2)}, pred[7]{0}, s8[1]{0}, f32[], /*index=5*/f32[2]{0})",
        ] {
            let shape = Shape::parse(text).unwrap_or_else(|| panic!("{text} is not parsed"));
            assert_eq!(shape.to_string(), text);
        }
        let (shape, rest) = Shape::parse_prefix("f32[2,3]{1,0} fusion(%a)").expect("a shape");
        assert_eq!((shape.to_string().as_str(), rest), ("f32[2,3]{1,0}", " fusion(%a)"));
    }

    #[test]
    fn invalid_shapes_are_rejected() {
        for text in ["", "f32", "f32[", "f32[1", "q7[1]", "f32[1]{0:T(8}", "(f32[1]", "f32[1]x", "tuple[1]"] {
            assert!(Shape::parse(text).is_none(), "{text}");
        }
        assert!(Shape::parse(&"(".repeat(10_000)).is_none());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[fsu(){}0-9,:TSLEMP*#<=? /]{0,60}") {
            if let Some(shape) = Shape::parse(&text) {
                prop_assert!(Shape::parse(&shape.to_string()).is_some() || shape.to_string().contains('?'));
            }
        }
    }
}
