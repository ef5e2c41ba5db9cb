//! The shapes of what changes resize, each of them once: a change is worked out for a shape, not for every buffer that
//! has it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::resize;
use crate::model::{BufferId, Bytes, ElementType, NO_ROW, Program, ShapeNode};

/// A shape with what is asked about it again and again.
#[derive(Debug, Clone)]
pub struct Known {
    /// The shape.
    pub node: ShapeNode,
    /// Its bytes, padding included; `None` where the formula gives none.
    pub padded: Option<Bytes>,
    /// The same number for every shape of these dimensions and this element type, whatever its layout.
    pub array: u32,
}

/// Shapes in rows. Those of a changed program lie behind those of the unchanged one.
#[derive(Debug, Clone, Default)]
pub struct Shapes {
    rows: Vec<Known>,
    arrays: HashMap<(ElementType, Vec<i64>), u32, RandomState>,
}

impl Shapes {
    /// The shapes of some buffers, and the row of each buffer: `NO_ROW` for what is no array.
    #[must_use]
    pub fn of_buffers(program: &Program, buffers: impl Iterator<Item = BufferId>) -> (Self, Vec<u32>) {
        let mut shapes = Self::default();
        // Most equal shapes of a program are one value, whose place stands for it; elements of tuples are not.
        let mut row_at: HashMap<*const ShapeNode, u32, RandomState> = HashMap::default();
        let mut row_of: HashMap<ShapeNode, u32, RandomState> = HashMap::default();
        let rows = buffers
            .map(|buffer| {
                let Some(node) = resize::node_of(program, buffer) else { return NO_ROW };
                *row_at.entry(std::ptr::from_ref(node)).or_insert_with(|| {
                    // Where it stands in a tuple makes no difference.
                    let node = ShapeNode { parent: 0, ..node.clone() };
                    match row_of.get(&node) {
                        Some(&row) => row,
                        None => *row_of.entry(node.clone()).or_insert_with(|| shapes.add(None, node)),
                    }
                })
            })
            .collect();
        (shapes, rows)
    }

    /// Number of shapes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// A shape by its row.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<&Known> {
        self.rows.get(row as usize)
    }

    /// The number of an array, a new one where it is not known; `before` are shapes whose numbers go on here.
    fn array(&mut self, before: Option<&Self>, array: (ElementType, Vec<i64>)) -> u32 {
        let known = before.map_or(0, |before| before.arrays.len());
        let next = (known + self.arrays.len()) as u32;
        match before.and_then(|before| before.arrays.get(&array)) {
            Some(&number) => number,
            None => *self.arrays.entry(array).or_insert(next),
        }
    }

    /// The number of the array that a shape is.
    pub fn array_of(&mut self, node: &ShapeNode) -> u32 {
        self.array(None, (node.element_type, node.dimensions.clone()))
    }

    /// Adds a shape.
    fn add(&mut self, before: Option<&Self>, node: ShapeNode) -> u32 {
        let array = self.array(before, (node.element_type, node.dimensions.clone()));
        let row = self.rows.len() as u32;
        self.rows.push(Known { padded: node.padded_size(), node, array });
        row
    }
}

/// The shapes of a program that is being changed: those it has, and those that changes make.
#[derive(Debug)]
pub struct Changed<'a> {
    before: &'a Shapes,
    made: Shapes,
}

impl<'a> Changed<'a> {
    /// Nothing is changed yet.
    pub fn new(before: &'a Shapes) -> Self {
        Self { before, made: Shapes::default() }
    }

    /// Number of shapes.
    pub fn len(&self) -> usize {
        self.before.len() + self.made.len()
    }

    /// A shape by its row.
    pub fn get(&self, row: u32) -> Option<&Known> {
        match (row as usize).checked_sub(self.before.len()) {
            None => self.before.get(row),
            Some(row) => self.made.get(row as u32),
        }
    }

    /// The row of what a change makes of a shape; `None` where it leaves it alone.
    pub fn changed(&mut self, row: u32, how: impl FnOnce(&mut ShapeNode) -> bool) -> Option<u32> {
        let mut node = self.get(row)?.node.clone();
        how(&mut node).then(|| self.before.len() as u32 + self.made.add(Some(self.before), node))
    }

    /// The number of an array of these dimensions.
    pub fn array(&mut self, ty: ElementType, dimensions: Vec<i64>) -> u32 {
        self.made.array(Some(self.before), (ty, dimensions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_equal_dimensions_have_one_number_before_and_after_a_change() {
        let mut shapes = Shapes::default();
        let array = |dims: &[i64]| ShapeNode::array(ElementType::F32, dims.to_vec());
        assert_eq!((shapes.add(None, array(&[4, 8])), shapes.add(None, array(&[2, 8]))), (0, 1));
        let mut changed = Changed::new(&shapes);
        let halve = |node: &mut ShapeNode| {
            resize::set_dimension(node, 0, node.dimensions[0] / 2);
            true
        };
        assert_eq!(changed.changed(0, halve), Some(2));
        assert_eq!(changed.changed(1, halve), Some(3));
        assert_eq!(changed.changed(1, |_| false), None);
        let number = |row| changed.get(row).map(|known| known.array);
        assert_eq!(number(2), number(1));
        assert_eq!((number(3), number(4)), (Some(2), None));
        assert_eq!((changed.array(ElementType::F32, vec![1, 8]), changed.array(ElementType::F32, vec![7])), (2, 3));
    }
}
