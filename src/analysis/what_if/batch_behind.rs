//! A batch that stands behind what each sample has, as the division over devices shows it: tokens as positions by samples,
//! and fields as points by members.

use super::base::{Base, Role};
use super::batch::{DataArgument, node_of};
use crate::analysis::class::{Class, Classes};
use crate::model::{Program, ShapeNode};

/// How many times as many points as samples a field has at least in each dimension before that of the samples.
const MORE_POINTS: i64 = 4;

/// Fewer integers of each sample are labels, not positions.
const FEWEST_POSITIONS: i64 = 256;

/// The dimension of the samples where they stand behind what each of them has, and are what is divided over devices:
/// tokens as positions by samples, of which there are fewer than positions, and fields as points by samples.
pub(super) fn samples_behind(node: &ShapeNode, tiles: &[i64]) -> Option<usize> {
    let mut divided = (0..node.dimensions.len()).filter(|&place| tiles.get(place).is_some_and(|&parts| parts > 1));
    let place = divided.next().filter(|&place| place > 0 && divided.next().is_none())?;
    let samples = node.dimensions[place].saturating_mul(tiles[place]);
    let before = &node.dimensions[..place];
    let is_behind = if node.element_type.is_index() {
        node.dimensions.len() == 2 && before[0] > samples.max(FEWEST_POSITIONS)
    } else {
        node.element_type.is_float()
            && place > 1
            && before.iter().all(|&points| points >= samples.saturating_mul(MORE_POINTS))
    };
    is_behind.then_some(place)
}

/// Fewest fields that have samples behind their points.
const FEWEST_FIELDS: usize = 3;

/// The fields that a step passes on or is given, such as the members of an ensemble, where these are divided over devices:
/// of all fields of three dimensions and more half, or as many as there are of any other batch. The heads of a cache are
/// no samples.
pub(super) fn samples_of_fields<'a>(
    program: &Program,
    (bases, classes): (&[Base], &Classes),
    tiles_of: &dyn Fn(i64) -> &'a [i64],
) -> Option<Vec<DataArgument>> {
    let mut found = Vec::new();
    let mut others = 0usize;
    for (row, base) in bases.iter().enumerate() {
        let (Role::Argument { number, .. }, Some(node)) = (&base.role, node_of(program, base)) else { continue };
        if node.dimensions.len() < 3 || !node.element_type.is_float() || classes.of(base.buffer) == Class::Cache {
            continue;
        }
        let tiles = tiles_of(*number);
        let Some(place) = samples_behind(node, tiles) else {
            others += 1;
            continue;
        };
        let mut dimensions = node.dimensions.clone();
        dimensions[..=place].rotate_right(1);
        found.push(DataArgument { base: row as u32, dimensions, parts: tiles[place], by_name: false, pages: 0 });
    }
    let batch = found.first().map(DataArgument::batch)?;
    let is_one = found.iter().all(|data| data.batch() == batch);
    (is_one && found.len() >= FEWEST_FIELDS.max(others)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;

    #[test]
    fn what_is_divided_behind_many_positions_or_points_are_samples() {
        let place = |ty, sizes: &[i64], tiles: &[i64]| samples_behind(&ShapeNode::array(ty, sizes.to_vec()), tiles);
        assert_eq!(place(ElementType::S32, &[2048, 2], &[1, 8]), Some(1));
        assert_eq!(place(ElementType::F32, &[256, 512, 8], &[1, 1, 8]), Some(2));
        // Positions that are divided, a grid that is, labels, and the rows of a weight.
        assert_eq!(place(ElementType::S32, &[8, 4096], &[1, 8]), None);
        assert_eq!(place(ElementType::F32, &[512, 512, 64], &[1, 1, 8]), None);
        assert_eq!(place(ElementType::S32, &[75, 4], &[1, 8]), None);
        assert_eq!(place(ElementType::F32, &[4096, 512], &[1, 8]), None);
    }
}
