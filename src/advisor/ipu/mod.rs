//! Rules for IPU profiles: tiles, gaps, exchange code and liveness. The thresholds are this application's own.

mod always_live;
mod evidence;
mod exchange_code;
mod instrumentation;
mod rearrangement;
mod temporary;
mod tile_gaps;
mod tile_imbalance;
mod tile_over;

use super::subject::Rule;

/// The rules in execution order.
pub const RULES: &[Rule] = &[
    Rule { name: "tile_over", run: tile_over::run },
    Rule { name: "tile_imbalance", run: tile_imbalance::run },
    Rule { name: "tile_gaps", run: tile_gaps::run },
    Rule { name: "exchange_code", run: exchange_code::run },
    Rule { name: "always_live", run: always_live::run },
    Rule { name: "temporary", run: temporary::run },
    Rule { name: "rearrangement", run: rearrangement::run },
    Rule { name: "instrumentation", run: instrumentation::run },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::Subject;
    use crate::analysis::ProfileAnalysis;
    use crate::model::{Profile, TileCategory, TileMemory, TileTarget};

    /// Names of the rules that fire on four tiles of 1000 bytes with the given columns.
    fn fired(total: [u64; 4], including: [u64; 4], categories: &[(&str, u64)]) -> Vec<&'static str> {
        let tiles = TileMemory {
            target: TileTarget {
                ipus: 1,
                tiles_per_ipu: 4,
                bytes_per_tile: Some(1000),
                interleaved_start: Some(300),
                ..TileTarget::default()
            },
            total: Some(total.to_vec()),
            including_gaps: Some(including.to_vec()),
            categories: categories
                .iter()
                .map(|(name, bytes)| TileCategory {
                    name: (*name).to_owned(),
                    bytes: vec![*bytes; 4],
                    ..TileCategory::default()
                })
                .collect(),
            ..TileMemory::default()
        };
        let profile = Profile { tiles: Some(tiles), ..Profile::default() };
        let analysis = ProfileAnalysis::new(&profile);
        let mut findings = Vec::new();
        for rule in RULES {
            (rule.run)(&Subject { profile: &profile, analysis: &analysis }, &mut findings);
        }
        findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn an_even_half_full_profile_gives_no_findings() {
        assert_eq!(fired([500; 4], [505; 4], &[("variable", 450)]), [] as [&str; 0]);
    }

    #[test]
    fn each_telltale_fires_its_rule() {
        assert_eq!(fired([965; 4], [1001; 4], &[]), ["tile_over"]);
        assert_eq!(fired([900, 100, 100, 100], [900, 100, 100, 100], &[]), ["tile_imbalance"]);
        assert_eq!(fired([500; 4], [800; 4], &[]), ["tile_gaps"]);
        assert_eq!(fired([500; 4], [505; 4], &[("internalExchangeCode", 120)]), ["exchange_code"]);
        assert_eq!(fired([500; 4], [505; 4], &[("rearrangement", 60)]), ["rearrangement"]);
        assert_eq!(fired([950; 4], [960; 4], &[("instrumentationResults", 30)]), ["instrumentation"]);
        assert_eq!(fired([500; 4], [505; 4], &[("instrumentationResults", 3)]), [] as [&str; 0]);
    }
}
