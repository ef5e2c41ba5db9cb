//! Layers that are applied several times under one name, as modules that share their weights are: each application is a
//! layer of its own, which is computed again by itself.

use crate::analysis::names::pass::Pass;
use crate::analysis::packing::Families;
use crate::model::FastMap;

/// Share of the largest run of a layer that most others must have to be applications, not parts that run elsewhere; the last
/// one may keep less.
const ALIKE: f64 = 0.5;

/// Share of the runs of a layer that must be alike.
const MOST_ALIKE: f64 = 0.75;

/// Share of what a layer makes on average in a run, below which a run is only a part, such as a cast of weights.
const PART: f64 = 0.1;

/// Most applications of one layer.
const MOST: usize = 4096;

/// When each application of a layer begins before the turn, with its row; by the layer's first row.
pub(super) type Applications = FastMap<u32, Vec<(u32, u32)>>;

/// Operations of one layer with none of another between them: the layer, the first time, and the bytes that they make.
#[derive(Debug, Clone, Copy)]
struct Run {
    layer: u32,
    begin: u32,
    bytes: u64,
}

/// Gives each application of a layer a row of its own: `layer_of` are the layers by family, and new rows begin at `rows`.
/// What the compiler computes again, by family, is no application. Returns the applications and, for each new row, the
/// layer that it is of.
pub(super) fn split(
    (families, passes, is_again): (&Families, &[Pass], &[bool]),
    layer_of: &mut [Option<u32>],
    rows: u32,
    turn: u32,
) -> (Applications, Vec<u32>) {
    let is_before = |time: u32, pass: Pass| time < turn && pass == Pass::Forward;
    let is_behind = |time: u32, pass: Pass| time >= turn && matches!(pass, Pass::Backward | Pass::Recomputed);
    let forward = runs((families, passes, is_again), layer_of, &is_before);
    let backward = runs((families, passes, &[]), layer_of, &is_behind);
    let by_layer = |runs: &[Run]| {
        let mut found: FastMap<u32, Vec<Run>> = FastMap::default();
        for run in runs {
            found.entry(run.layer).or_default().push(*run);
        }
        found
    };
    let (before, behind) = (by_layer(&forward), by_layer(&backward));
    let mut applications = Applications::default();
    let mut new = Vec::new();
    // When each application begins behind the turn, ascending: the last application is the first there.
    let mut begins_behind: FastMap<u32, Vec<(u32, u32)>> = FastMap::default();
    for layer in 0..rows {
        let (Some(runs), Some(again)) = (before.get(&layer), behind.get(&layer)) else { continue };
        if runs.len() < 2 || runs.len() > MOST || runs.len() != again.len() || !are_alike(runs) {
            continue;
        }
        let row_of = |place: usize, new: &mut Vec<u32>| {
            if place == 0 {
                return layer;
            }
            new.push(layer);
            rows + new.len() as u32 - 1
        };
        let all: Vec<(u32, u32)> =
            runs.iter().enumerate().map(|(place, run)| (run.begin, row_of(place, &mut new))).collect();
        let reversed = all.iter().rev().zip(again).map(|(&(_, row), run)| (run.begin, row)).collect();
        begins_behind.insert(layer, reversed);
        applications.insert(layer, all);
    }
    for (family, layer) in families.list.iter().zip(layer_of) {
        let Some(own) = *layer else { continue };
        let time = 2 * family.first;
        let begins = if time < turn { applications.get(&own) } else { begins_behind.get(&own) };
        if let Some(begins) = begins {
            *layer = Some(application(begins, time));
        }
    }
    (applications, new)
}

/// The application of a layer that runs at a time, of those that begin at some times, ascending.
pub(super) fn application(begins: &[(u32, u32)], time: u32) -> u32 {
    let place = begins.partition_point(|begin| begin.0 <= time).saturating_sub(1);
    begins.get(place).map_or(0, |begin| begin.1)
}

/// Whether runs of a layer make about as much as one another.
fn are_alike(runs: &[Run]) -> bool {
    let most = runs.iter().map(|run| run.bytes).max().unwrap_or(0);
    let alike = runs.iter().filter(|run| run.bytes as f64 >= most as f64 * ALIKE).count();
    // Of two, both.
    alike as f64 >= runs.len() as f64 * MOST_ALIKE
}

/// The runs of all layers, in the order of the program, of families whose time and pass are accepted.
fn runs(
    (families, passes, is_left_out): (&Families, &[Pass], &[bool]),
    layer_of: &[Option<u32>],
    accept: &dyn Fn(u32, Pass) -> bool,
) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    for (row, ((family, &pass), &layer)) in families.list.iter().zip(passes).zip(layer_of).enumerate() {
        let is_meant = is_left_out.get(row) != Some(&true) && accept(2 * family.first, pass);
        let Some(layer) = layer.filter(|_| is_meant) else { continue };
        match found.last_mut().filter(|run| run.layer == layer) {
            Some(run) => run.bytes = run.bytes.saturating_add(family.size),
            None => found.push(Run { layer, begin: 2 * family.first, bytes: family.size }),
        }
    }
    let mut whole: FastMap<u32, (u64, u64)> = FastMap::default();
    for run in &found {
        let sum = whole.entry(run.layer).or_default();
        *sum = (sum.0.saturating_add(run.bytes), sum.1 + 1);
    }
    found.retain(|run| {
        whole.get(&run.layer).is_none_or(|&(bytes, count)| run.bytes as f64 >= bytes as f64 / count as f64 * PART)
    });
    found.dedup_by(|next, run| {
        let is_same = next.layer == run.layer;
        if is_same {
            run.bytes = run.bytes.saturating_add(next.bytes);
        }
        is_same
    });
    found
}
