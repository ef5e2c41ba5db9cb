//! What the pictures of a report show: the curve of live memory by class, and live memory at the peak by scope.

use super::options::Options;
use super::tree::{NodeReport, peak_tree};
use crate::analysis::Scene;
use crate::analysis::class::Class;
use crate::analysis::map::TimeAxis;
use crate::analysis::stacked_curves::Grouping;

/// Most columns of a curve: about as many as a page has pixels for.
const COLUMNS: u32 = 600;

/// Levels of the picture of scopes, and most children of a scope in it.
const LEVELS: (usize, usize) = (4, 16);

/// Data of the pictures of a memory space.
#[derive(Debug)]
pub struct Picture {
    /// Number of steps.
    pub steps: u32,
    /// What a step is: `step` or `heap event`.
    pub unit: &'static str,
    /// The classes that are ever live, in the order in which they are stacked.
    pub classes: Vec<Class>,
    /// Bytes by class from a step to that of the next column, at the step with most bytes among them.
    pub columns: Vec<(u32, Vec<u64>)>,
    /// The first step with most bytes, and those.
    pub peak: (u32, u64),
    /// Live memory at the peak by scope.
    pub tree: Option<NodeReport>,
}

/// The data; `None` if it was not asked for, or there is no curve.
pub fn picture(scene: Scene<'_>, options: &Options) -> Option<Picture> {
    if !options.pictures || scene.program.is_listing {
        return None;
    }
    let map = scene.map();
    let stack = scene.curves(Grouping::Class);
    let (bytes, step) = stack.highest(0, map.points)?;
    let groups: Vec<(Class, usize)> = Class::ALL
        .into_iter()
        .map(|class| (class, class.place()))
        .filter(|&(_, group)| stack.most.get(group).is_some_and(|&most| most > 0))
        .collect();
    if bytes == 0 {
        return None;
    }
    let wide = map.points.div_ceil(COLUMNS).max(1);
    let mut columns: Vec<(u32, Vec<u64>)> = Vec::new();
    for from in (0..map.points).step_by(wide as usize) {
        let to = from.saturating_add(wide).min(map.points);
        let highest = stack.highest(from, to).map_or(from, |(_, step)| step);
        let of = |&(_, group): &(Class, usize)| stack.curves.groups.get(group).map_or(0, |curve| curve.at(highest));
        let column: Vec<u64> = groups.iter().map(of).collect();
        if columns.last().is_none_or(|last| last.1 != column) {
            columns.push((from, column));
        }
    }
    Some(Picture {
        steps: map.points,
        unit: if map.axis == TimeAxis::ProgramOrder { "step" } else { "heap event" },
        classes: groups.into_iter().map(|(class, _)| class).collect(),
        columns,
        peak: (step, bytes),
        tree: peak_tree(scene, LEVELS),
    })
}
