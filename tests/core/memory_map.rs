//! The memory map and its stacked curves agree with the curve of occupied addresses, which other tests compare with the
//! compiler's figures.

use highwater::analysis::grouping::GroupedCurves;
use highwater::analysis::map::MemoryMap;
use highwater::analysis::{ProgramAnalysis, category};
use highwater::model::{Category, Device};

use crate::common::{self, Files};

/// Checks that the curves by category of every memory space add up; returns the number of spaces.
pub fn add_up_groups(files: &Files) -> usize {
    let mut spaces = 0;
    for path in files.programs() {
        let program = common::program(&path);
        let analysis = ProgramAnalysis::new(&program, &Device::default());
        for space in &analysis.spaces {
            let Some(occupancy) = &space.occupancy else { continue };
            let map = MemoryMap::new(&program, &analysis, space);
            assert_eq!(map.height, space.xprof.allocated.0, "{}", common::name(&path));
            let group = |buffer| category(&program, buffer) as usize;
            let curves = GroupedCurves::new(&program, &analysis, space, &map, Category::ALL.len(), &group);
            assert_eq!(curves.total.end(), occupancy.reserved.end(), "{}", common::name(&path));
            for point in 0..curves.total.end() {
                let sum: u64 = curves.groups.iter().map(|curve| curve.at(point)).sum();
                let reserved = occupancy.reserved.at(point);
                assert_eq!(sum, reserved, "{} {} at {point}", common::name(&path), space.name);
                assert!(curves.unpadded.at(point) <= reserved);
            }
            spaces += 1;
        }
    }
    spaces
}

#[test]
fn groups_add_up_to_the_reserved_curve_at_every_point() {
    assert!(add_up_groups(&Files::of_project()) >= 40);
}
