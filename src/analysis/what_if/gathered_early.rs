//! Weights that are gathered from other devices while an earlier layer runs: they belong to the layer that reads them.

use super::evicted::Evicted;
use crate::analysis::flow::collective::holds_gathered;
use crate::analysis::packing::Families;
use crate::model::{FastMap, Program};

/// Program points of the last reads in the forward pass, by family of what is gathered. `forward` are the reads: buffer,
/// point and the instruction that reads, by point.
pub(super) fn read_last(
    program: &Program,
    families: &Families,
    forward: &[(u32, u32, u32)],
    evicted: &Evicted,
) -> FastMap<usize, u32> {
    let is_gathered: Vec<bool> = families.list.iter().map(|family| holds_gathered(program, family.root)).collect();
    let mut last = FastMap::default();
    for &(buffer, point, _) in forward {
        if let Some(family) = evicted.family(families, buffer).filter(|&family| is_gathered[family]) {
            last.insert(family, point);
        }
    }
    last
}
