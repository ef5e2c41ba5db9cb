//! All answers to what is live at a step agree: buffers, curve, statistics of a range, and each of its groups give the
//! same bytes.

use std::collections::HashMap;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::range_stats::range_stats;
use highwater::analysis::stacked_curves::Grouping;
use highwater::model::Bytes;
use highwater::open;
use highwater::source::Progress;

use crate::common;

#[test]
fn buffers_curve_range_and_groups_agree_at_every_step_looked_at() {
    let (mut compared, mut peaks) = (0, 0);
    for path in common::sample_programs() {
        let name = common::name(&path);
        let profile = open::open_path(&path, &Progress::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let analysis = ProfileAnalysis::new(&profile);
        for (program, own) in analysis.programs.iter().enumerate() {
            for space in &own.spaces {
                let scene = analysis.scene(&profile, program, space.color).expect("a space");
                let by_class = scene.curves(Grouping::Class);
                let points = scene.map().points;
                let own_sizes = |rows: &[(_, Bytes)]| rows.iter().map(|row| row.1).sum::<Bytes>();
                if space.occupancy.is_some() && own_sizes(&scene.live(None)) == space.peak() {
                    let at_peak = scene.live(Some(space.peak_point()));
                    assert_eq!(at_peak, scene.live(None), "{name}: the step of the peak is the peak");
                    assert_eq!(scene.live_at(space.peak_point()).len(), at_peak.len(), "{name}");
                    peaks += 1;
                }
                for step in (0..16).map(|part| part * points.saturating_sub(1) / 15).chain([space.peak_point()]) {
                    let live = scene.live(Some(step));
                    let sum: Bytes = live.iter().map(|&(_, bytes)| bytes).sum();
                    let what = format!("{name}, space {:?}, step {step}", space.color);
                    assert_eq!(sum.0, by_class.curves.total.at(step), "{what}: the curve");
                    let stats = range_stats(scene.map(), &by_class.curves, &by_class.pyramid, step, step);
                    assert_eq!((stats.before, stats.after), (sum, sum), "{what}: the range");
                    let mut groups: HashMap<usize, u64> = HashMap::new();
                    for (buffer, bytes) in live {
                        *groups.entry(by_class.group_of[buffer.index()].into()).or_default() += bytes.0;
                    }
                    for (group, curve) in by_class.curves.groups.iter().enumerate() {
                        let own = groups.get(&group).copied().unwrap_or(0);
                        assert_eq!(own, curve.at(step), "{what}: {}", by_class.names[group]);
                    }
                    if let Some(occupancy) = &space.occupancy {
                        assert_eq!(sum.0, occupancy.reserved.at(step), "{what}: reserved");
                    }
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 100 && peaks >= 10, "{compared} steps and {peaks} peaks compared");
}
