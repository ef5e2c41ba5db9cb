//! Paged caches that belong to the samples: a table says of each sample which pages are its own.

use super::base::{Base, Role};
use super::batch::{DataArgument, node_of, samples};
use crate::analysis::class::{Class, Classes};
use crate::analysis::flow::label::Labels;
use crate::analysis::packing::Families;
use crate::model::{Program, ShapeNode};

/// The arguments that hold a batch: the samples, and caches with pages for each of them.
#[must_use]
pub fn data_arguments(
    program: &Program,
    classes: &Classes,
    bases: &[Base],
    known: (&Families, &Labels),
) -> Vec<DataArgument> {
    let mut data = samples(program, classes, bases, known);
    add(program, classes, bases, &mut data);
    data
}

/// Adds caches that have as many pages as a table of the samples has entries, or one more for what belongs to none: with
/// more samples, there are more of them.
fn add(program: &Program, classes: &Classes, bases: &[Base], data: &mut Vec<DataArgument>) {
    let is_table = |node: &&ShapeNode| node.element_type.is_index() && node.dimensions.len() == 2;
    let tables = data.iter().filter_map(|data| {
        let node = node_of(program, bases.get(data.base as usize)?).filter(is_table)?;
        Some((data.batch(), node.element_count().try_into().ok()?))
    });
    let tables: Vec<(i64, i64)> = tables.filter(|&(batch, entries)| batch > 1 && entries > batch).collect();
    let caches = || {
        let of_class = bases.iter().zip(0u32..).filter(|row| classes.of(row.0.buffer) == Class::Cache);
        let arguments = of_class.filter(|row| matches!(row.0.role, Role::Argument { .. }));
        arguments.filter_map(|(base, row)| Some((row, node_of(program, base)?)))
    };
    let has = |node: &ShapeNode, pages: i64| node.dimensions.iter().filter(|&&size| size == pages).count() == 1;
    let is_of_most = |pages: i64| {
        let large = || caches().filter(|row| row.1.dimensions.len() > 2);
        let bytes = |row: u32| bases.get(row as usize).map_or(0, |base| base.size);
        let all = large().map(|row| bytes(row.0)).fold(0, u64::saturating_add);
        let paged = large().filter(|row| has(row.1, pages)).map(|row| bytes(row.0)).fold(0, u64::saturating_add);
        // Beside pages, a draft's own cache may be one row for each sample.
        paged > 0 && paged >= all / 2
    };
    let found = tables.into_iter().find_map(|(batch, entries): (i64, i64)| {
        let pages = [entries, entries.saturating_add(1)].into_iter().find(|&pages| is_of_most(pages))?;
        Some((batch, entries / batch, pages))
    });
    let Some((batch, of_each, pages)) = found else { return };
    let known: Vec<u32> = data.iter().map(|data| data.base).collect();
    let own = caches().filter(|(row, node)| !known.contains(row) && has(node, pages));
    data.extend(own.map(|(base, _)| DataArgument {
        base,
        dimensions: vec![batch, of_each],
        parts: 1,
        by_name: true,
        pages,
    }));
}
