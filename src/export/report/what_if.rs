//! What-if results in the report: changes given with `--edit`, reproduction of the compiler's packing, other chips.

use serde::Serialize;

use super::buffer::standing;
use super::options::Options;
use super::schema::PeakBufferReport;
use crate::advisor::chips;
use crate::analysis::packing::Packer;
use crate::analysis::what_if::{Edit, EditSet};
use crate::analysis::{Scene, SpaceAnalysis};
use crate::model::{Bytes, MemorySpace, UnitSystem};

/// How closely the compiler's own packing is reproduced.
#[derive(Debug, Serialize)]
pub struct PackingReport {
    /// Size of the reproduced heap.
    pub heap_bytes: Bytes,
    /// Size of the heap in the dump.
    pub compiler_heap_bytes: Bytes,
    /// Packer that comes closest: `online` or `fallback`.
    pub packer: &'static str,
    /// Fraction of families at the same offset, 0 to 1.
    pub equal_offsets: f64,
    /// Peak of live bytes: a lower bound for every packer.
    pub live_bytes: Bytes,
}

/// Predicted outcome of some changes.
#[derive(Debug, Serialize)]
pub struct WhatIfReport {
    /// The changes in the syntax of `--edit`.
    pub edits: Vec<String>,
    /// Those of them that name nothing in the program, with the reason.
    #[serde(skip)]
    pub left_out: Vec<(String, String)>,
    /// Peak after the changes.
    pub peak_bytes: Bytes,
    /// Allocated bytes with the better of the two packers.
    pub allocated_bytes: Bytes,
    /// Allocated bytes with the online packer.
    pub allocated_online_bytes: Bytes,
    /// Always-live bytes.
    pub base_bytes: Bytes,
    /// Whether the program fits; `null` without a capacity.
    pub fits: Option<bool>,
    /// Packer the compiler would use: `online` or `fallback`.
    pub packer: &'static str,
    /// Error of such predictions on real programs.
    pub band: Option<String>,
    /// Lowest and highest expected peak.
    pub peak_range_bytes: (Bytes, Bytes),
    /// Lowest and highest expected allocated bytes.
    pub allocated_range_bytes: (Bytes, Bytes),
    /// `fits`, `may_fit` (the compiler can still recompute), `over` or `unknown`.
    pub verdict: &'static str,
    /// Caveats of the prediction.
    pub warnings: Vec<String>,
    /// The result in one sentence.
    pub summary: String,
    /// Buffers at the peak after the changes, largest first, with their bytes then; everything else of them is as it is
    /// without. Empty where the bytes say nothing.
    pub at_peak: Vec<PeakBufferReport>,
    /// How many there are.
    pub at_peak_count: usize,
    /// Bytes that are expected at the peak besides those, or less, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub besides: Vec<(i64, &'static str)>,
    /// Whether its bytes may be shown to people.
    #[serde(skip)]
    pub is_told: bool,
}

impl WhatIfReport {
    /// Allocated bytes with the packer that the compiler would use, on which the verdict rests.
    #[must_use]
    pub fn expected_bytes(&self) -> Bytes {
        if self.packer == Packer::Online.name() { self.allocated_online_bytes } else { self.allocated_bytes }
    }
}

/// Predicted outcome of a named set of changes.
#[derive(Debug, Serialize)]
pub struct SetReport {
    /// Name of the set.
    pub name: String,
    /// Result of its changes; without one, [`Self::undecided`] says why.
    #[serde(flatten)]
    pub what_if: Option<WhatIfReport>,
    /// Why there is no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// The same with what can be told all the same.
    #[serde(skip)]
    pub unpredicted: Option<String>,
}

/// The outcome of changes, or why there is none.
pub type WhatIfOutcome = Result<WhatIfReport, Unpredicted>;

/// Why some changes have no predicted result.
#[derive(Debug, Clone)]
pub struct Unpredicted {
    /// The reason, a clause.
    pub why: String,
    /// The same with what can be told all the same: `not predicted: …`, `fits with at least 1.37 GiB to spare; …`.
    pub sentence: String,
    /// Whether one of them names nothing that is in the program.
    pub names_nothing: bool,
}

/// A chip.
#[derive(Debug, Serialize)]
pub struct ChipReport {
    /// Name of the chip.
    pub name: String,
    /// Bytes available to a program.
    pub available_bytes: Bytes,
    /// Bytes left over; negative if the program does not fit.
    pub spare_bytes: i128,
    /// `fits`, `tight` or `over`.
    pub verdict: &'static str,
    /// Source of the available bytes.
    pub basis: String,
}

/// How closely the packing of a space is reproduced; `None` for spaces other than HBM, whose packer alone is known, and
/// without a heap.
pub fn packing(scene: Scene<'_>) -> Option<PackingReport> {
    if scene.space.color != MemorySpace::HBM {
        return None;
    }
    let found = scene.packing()?;
    Some(PackingReport {
        heap_bytes: found.heap,
        compiler_heap_bytes: found.compiler_heap,
        packer: found.packer.name(),
        equal_offsets: found.equal_offsets,
        live_bytes: found.live,
    })
}

/// Predicted outcomes of the changes and of the named sets of changes, if there are any.
pub fn what_if(scene: Scene<'_>, options: &Options) -> (Option<WhatIfOutcome>, Vec<SetReport>) {
    if scene.space.color != MemorySpace::HBM {
        return (None, Vec::new());
    }
    let of_set = |set: &EditSet| {
        let outcome = of_edits(scene, options, &set.edits);
        SetReport {
            name: set.name.clone(),
            undecided: outcome.as_ref().err().map(|no| no.why.clone()),
            unpredicted: outcome.as_ref().err().map(|no| no.sentence.clone()),
            what_if: outcome.ok(),
        }
    };
    let sets = options.sets.iter().map(of_set).collect();
    ((!options.edits.is_empty()).then(|| of_edits(scene, options, &options.edits)), sets)
}

fn of_edits(scene: Scene<'_>, options: &Options, edits: &[Edit]) -> WhatIfOutcome {
    let outcome = scene.what_if(edits);
    if let Some(why) = &outcome.undecided {
        let sentence = outcome.sentence(scene.memory().capacity, UnitSystem::Binary);
        return Err(Unpredicted { why: why.clone(), sentence, names_nothing: outcome.names_nothing });
    }
    let left = if outcome.is_told() { scene.memory().at_peak(scene.analysis, &outcome) } else { Vec::new() };
    Ok(WhatIfReport {
        at_peak: left
            .iter()
            .take(options.rows())
            .map(|row| PeakBufferReport { added: row.added, ..standing(scene, (row.buffer, row.bytes)) })
            .collect(),
        at_peak_count: left.len(),
        besides: if outcome.is_told() { outcome.besides_told().collect() } else { Vec::new() },
        edits: edits.iter().map(ToString::to_string).collect(),
        left_out: outcome.left_out.clone(),
        peak_bytes: outcome.peak,
        allocated_bytes: outcome.allocated,
        allocated_online_bytes: outcome.allocated_online,
        base_bytes: outcome.base,
        fits: outcome.fits,
        packer: outcome.packer.name(),
        summary: outcome.sentence(scene.memory().capacity, UnitSystem::Binary),
        is_told: outcome.is_told(),
        band: outcome.band,
        peak_range_bytes: outcome.peak_range,
        allocated_range_bytes: outcome.allocated_range,
        verdict: outcome.verdict.name(),
        warnings: outcome.warnings,
    })
}

/// Whether the program would fit other chips.
pub fn other_chips(space: &SpaceAnalysis) -> Option<Vec<ChipReport>> {
    if space.color != MemorySpace::HBM {
        return None;
    }
    let row = |chip: chips::ChipFit| ChipReport {
        verdict: match (chip.spare < 0, chip.is_tight) {
            (true, _) => "over",
            (false, true) => "tight",
            (false, false) => "fits",
        },
        name: chip.name,
        available_bytes: chip.available,
        spare_bytes: chip.spare,
        basis: chip.basis,
    };
    Some(chips::chips(space.xprof.allocated).into_iter().map(row).collect())
}
