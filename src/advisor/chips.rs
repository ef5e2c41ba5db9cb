//! Whether a program would fit on other chips: its allocated bytes against the memory of each.

use crate::analysis::packing::full_from;
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
    /// Who makes it.
    pub maker: Maker,
    /// Source of the available bytes.
    pub basis: String,
}

/// Makers of chips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// Google's TPUs.
    Google,
    /// Nvidia's graphics cards.
    Nvidia,
    /// AMD's graphics cards.
    Amd,
}

impl Maker {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Google => "Google",
            Self::Nvidia => "Nvidia",
            Self::Amd => "AMD",
        }
    }
}

/// GPUs: name, maker and total memory in MiB.
const GPUS: &[(&str, Maker, u64)] = &[
    ("L4", Maker::Nvidia, 23_034),
    ("L40S", Maker::Nvidia, 46_068),
    ("A100 40 GB", Maker::Nvidia, 40_960),
    ("A100 80 GB", Maker::Nvidia, 81_920),
    ("H100 80 GB", Maker::Nvidia, 81_559),
    ("H200", Maker::Nvidia, 143_771),
    ("B200", Maker::Nvidia, 183_359),
    ("MI300X", Maker::Amd, 196_608),
];

/// Share of a GPU's memory that JAX reserves by default (`XLA_CLIENT_MEM_FRACTION`).
pub const JAX_SHARE: f64 = 0.75;

/// Compares allocated bytes with the memory of other chips. Tiling, padding and schedule are those of the chip it was
/// compiled for, so this is only an estimate elsewhere.
#[must_use]
pub fn chips(allocated: Bytes) -> Vec<ChipFit> {
    let row = |name: String, maker: Maker, available: u64, basis: String| ChipFit {
        name,
        available: Bytes(available),
        spare: i128::from(available) - i128::from(allocated.0),
        is_tight: allocated.0 <= available && allocated.0 as f64 > available as f64 * full_from(maker != Maker::Google),
        maker,
        basis,
    };
    let tpus = TPU_GENERATIONS.iter().filter_map(|generation| {
        let available = generation.available_hbm()?;
        Some(row(generation.display_name(), Maker::Google, available.0, "what the compiler allows".to_owned()))
    });
    let gpus = GPUS.iter().map(|&(name, maker, mib)| {
        let whole = mib << 20;
        let available = (whole as f64 * JAX_SHARE) as u64;
        let basis = format!("{:.0}\u{2009}% of {}, the share that JAX takes", JAX_SHARE * 100.0, Bytes(whole).short());
        row(name.to_owned(), maker, available, basis)
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
        let a100 = all.iter().find(|c| c.name == "A100 40 GB").expect("an A100");
        assert_eq!((a100.available, a100.maker), (Bytes(30 << 30), Maker::Nvidia));
        assert_eq!(a100.basis, "75\u{2009}% of 40.0 GiB, the share that JAX takes");
    }
}
