//! Whether a program would fit on other chips: its allocated bytes against the memory of each.

use crate::analysis::packing::FALLBACK_SHARE;
use crate::model::{Bytes, TPU_GENERATIONS};

/// One kind of chip.
#[derive(Debug, Clone, PartialEq)]
pub struct ChipFit {
    /// Its name.
    pub name: String,
    /// Bytes that a program may use on each device.
    pub available: Bytes,
    /// Bytes that would be left; negative if it does not fit.
    pub spare: i128,
    /// Whether it would fit only tightly.
    pub is_tight: bool,
    /// Source of the available bytes.
    pub basis: &'static str,
}

/// GPUs: name and total memory in MiB. JAX reserves three quarters of it by default.
const GPUS: &[(&str, u64)] = &[
    ("L4", 23_034),
    ("L40S", 46_068),
    ("A100 40 GB", 40_960),
    ("A100 80 GB", 81_920),
    ("H100 80 GB", 81_559),
    ("H200", 143_771),
    ("B200", 183_359),
    ("MI300X", 196_608),
];

/// Share of a GPU's memory that JAX reserves by default.
const JAX_SHARE: f64 = 0.75;

/// Compares allocated bytes with the memory of other chips. Tiling, padding and schedule are those of the chip it was
/// compiled for, so this is only an estimate elsewhere.
#[must_use]
pub fn chips(allocated: Bytes) -> Vec<ChipFit> {
    let row = |name: String, available: u64, basis| ChipFit {
        name,
        available: Bytes(available),
        spare: i128::from(available) - i128::from(allocated.0),
        is_tight: allocated.0 <= available && allocated.0 as f64 > available as f64 * FALLBACK_SHARE,
        basis,
    };
    let tpus = TPU_GENERATIONS.iter().filter_map(|generation| {
        let available = generation.available_hbm()?;
        Some(row(generation.display_name(), available.0, "what the compiler allows"))
    });
    let gpus = GPUS.iter().map(|&(name, mib)| {
        let available = ((mib << 20) as f64 * JAX_SHARE) as u64;
        row(name.to_owned(), available, "75 % of its memory, JAX's default")
    });
    tpus.chain(gpus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_what_is_available_less_what_is_allocated() {
        let all = chips(Bytes(15 << 30));
        let of = |name: &str| all.iter().find(|c| c.name == name).map(|c| (c.spare > 0, c.is_tight));
        assert_eq!(of("TPU v5e"), Some((true, true)));
        assert_eq!(of("TPU v2"), Some((false, false)));
        assert_eq!(of("TPU v5p"), Some((true, false)));
        assert!(of("H100 80 GB").is_some());
    }
}
