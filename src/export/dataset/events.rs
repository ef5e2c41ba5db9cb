//! Rows of the table of events: those of the compiler's heap simulation, and those of an allocator that ran.

use super::chunk::{Cell, word};
use super::origin::Origin;
use super::rows::Rows;
use crate::analysis::ProfileAnalysis;
use crate::model::{AllocatorActivity, Clock, EventKind, NO_ROW, Profile};

pub(super) fn add(profile: &Profile, analysis: &ProfileAnalysis, origin: &Origin, rows: &mut Rows<'_>) {
    for (place, program) in profile.programs.iter().enumerate() {
        let key = origin.key(Some(program));
        for scene in analysis.scenes(profile, place) {
            let xprof = &scene.space.xprof;
            let Some(trace) = xprof.trace.and_then(|trace| program.traces.get(trace)) else { continue };
            for (number, event) in trace.events.iter().enumerate() {
                let buffer = (event.buffer != NO_ROW).then_some(event.buffer as usize);
                let step = scene.space.events.as_ref().and_then(|events| events.points.get(number).copied());
                // The curve tells what is live before an event.
                let live = xprof.curve.get(number + 1).copied();
                let [key, file, name] = origin.cells(&key, Some(program));
                rows.push(&[
                    key,
                    file,
                    name,
                    word(&scene.space.name),
                    "heap".into(),
                    number.into(),
                    step.into(),
                    Cell::Null,
                    match event.kind {
                        EventKind::Alloc => "allocate",
                        EventKind::Free => "free",
                        EventKind::ShareWith => "share",
                        EventKind::Other => "other",
                    }
                    .into(),
                    buffer.and_then(|row| program.buffers.number.get(row).copied()).into(),
                    Cell::Null,
                    buffer.and_then(|row| program.buffers.size.get(row)).map(|bytes| bytes.0).into(),
                    live.map(|live| live.0).into(),
                    live.map(|live| live.1).into(),
                    Cell::Null,
                ]);
            }
        }
    }
    add_allocators(profile, analysis, origin, rows);
}

fn add_allocators(profile: &Profile, analysis: &ProfileAnalysis, origin: &Origin, rows: &mut Rows<'_>) {
    let key = origin.key(None);
    for (trace, allocator) in profile.runtime.iter().zip(&analysis.runtime) {
        for (&number, &step) in allocator.order.iter().zip(&allocator.steps) {
            let Some(event) = trace.events.get(number as usize) else { continue };
            let [key, file, _] = origin.cells(&key, None);
            rows.push(&[
                key,
                file,
                Cell::Null,
                word(&trace.name),
                "allocator".into(),
                number.into(),
                (step >= 0).then_some(step).into(),
                (trace.clock == Clock::Picoseconds).then_some(event.time_ps).into(),
                match event.activity {
                    AllocatorActivity::Allocation => "allocate",
                    AllocatorActivity::Deallocation => "free",
                    AllocatorActivity::Other => "other",
                }
                .into(),
                Cell::Null,
                Some(event.address).filter(|&address| address != 0).into(),
                event.allocated.into(),
                event.stats.in_use().into(),
                Cell::Null,
                word(trace.strings.get(event.op)),
            ]);
        }
    }
}
