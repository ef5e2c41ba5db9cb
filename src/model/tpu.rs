//! Memory capacities of TPU generations, per JAX device.
//!
//! Available HBM is the capacity the compiler prints in a forced out-of-memory error (libtpu 0.0.51, ahead-of-time
//! compilation); VMEM and CMEM are from `pallas/mosaic/tpu_info.py` in JAX 0.10.2.

use super::device::MemorySpace;
use super::units::Bytes;

/// One configuration of a TPU generation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TpuGeneration {
    /// Short name, such as `v5e`.
    pub name: &'static str,
    /// Known spellings of JAX's `device_kind`.
    pub device_kinds: &'static [&'static str],
    /// `TPU_VERSION_…` in a `target_arguments.txt`, without the prefix.
    pub version: &'static str,
    /// `variant` in a `target_arguments.txt`; empty if none.
    pub variant: &'static str,
    /// Available HBM in hundredths of a GiB, as printed by the compiler; 0 if not measured.
    pub available_hbm_gib_100: u64,
    /// VMEM per core in MiB.
    pub vmem_mib: u64,
    /// CMEM in MiB; 0 if none.
    pub cmem_mib: u64,
    /// JAX devices per chip.
    pub devices_per_chip: u32,
}

/// Every generation, oldest first. v4 is listed twice: with two devices per chip and as one megacore device.
pub const TPU_GENERATIONS: &[TpuGeneration] = &[
    row("v2", &["TPU v2"], ("JELLYFISH", ""), 748, (16, 0), 2),
    row("v3", &["TPU v3"], ("DRAGONFISH", ""), 1548, (16, 0), 2),
    row("v4i", &["TPU v4 lite"], ("PUFFERFISH", "lite"), 0, (16, 128), 1),
    row("v4", &["TPU v4"], ("PUFFERFISH", ""), 1525, (16, 128), 2),
    row("v4 megacore", &["TPU v4"], ("PUFFERFISH", ""), 3075, (16, 128), 1),
    row("v5e", &["TPU v5 lite", "TPU v5e"], ("VIPERFISH", "lite"), 1575, (128, 0), 1),
    row("v5p", &["TPU v5", "TPU v5p"], ("VIPERFISH", ""), 9573, (64, 0), 1),
    row("v6e", &["TPU v6 lite", "TPU v6e"], ("GHOSTLITE", ""), 3124, (128, 0), 1),
    row("v7x", &["TPU7x", "TPU v7x"], ("6acc60406", ""), 9474, (64, 0), 2),
    row("8i", &["TPU8i"], ("", ""), 0, (192, 0), 2),
];

const fn row(
    name: &'static str,
    device_kinds: &'static [&'static str],
    (version, variant): (&'static str, &'static str),
    available_hbm_gib_100: u64,
    (vmem_mib, cmem_mib): (u64, u64),
    devices_per_chip: u32,
) -> TpuGeneration {
    TpuGeneration { name, device_kinds, version, variant, available_hbm_gib_100, vmem_mib, cmem_mib, devices_per_chip }
}

impl TpuGeneration {
    /// What has a memory of its own, of a device by name: `TPU v5e`, but `core of a TPU v7x`, whose chips are two devices.
    #[must_use]
    pub fn unit_of(device: &str) -> String {
        let has_cores = Self::by_name(device).is_some_and(|row| row.devices_per_chip > 1);
        if has_cores { format!("core of a {device}") } else { device.to_owned() }
    }

    /// HBM available to a program; `None` if not measured.
    #[must_use]
    pub fn available_hbm(&self) -> Option<Bytes> {
        (self.available_hbm_gib_100 > 0).then(|| Bytes((self.available_hbm_gib_100 * (1 << 30) + 50) / 100))
    }

    /// Available HBM, VMEM or CMEM; `None` if unknown and for other memory spaces.
    #[must_use]
    pub fn capacity(&self, color: MemorySpace) -> Option<Bytes> {
        match color {
            MemorySpace::HBM => self.available_hbm(),
            MemorySpace::VMEM => Some(Bytes(self.vmem_mib << 20)),
            MemorySpace::CMEM if self.cmem_mib > 0 => Some(Bytes(self.cmem_mib << 20)),
            _ => None,
        }
    }

    /// Display name, such as `TPU v5e`.
    #[must_use]
    pub fn display_name(&self) -> String {
        format!("TPU {}", self.name)
    }

    /// Finds a generation by JAX's device kind; `devices_per_chip` disambiguates v4.
    #[must_use]
    pub fn by_device_kind(kind: &str, devices_per_chip: Option<u32>) -> Option<&'static Self> {
        Self::pick(|row| row.device_kinds.contains(&kind), devices_per_chip)
    }

    /// Finds a generation by version and variant in a `target_arguments.txt`; `devices_per_chip` disambiguates v4.
    #[must_use]
    pub fn by_version(version: &str, variant: &str, devices_per_chip: Option<u32>) -> Option<&'static Self> {
        let version = version.strip_prefix("TPU_VERSION_").unwrap_or(version);
        Self::pick(|row| !row.version.is_empty() && row.version == version && row.variant == variant, devices_per_chip)
    }

    /// Finds a generation by short name, such as `v5e` or `TPU v5e`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        let name = name.trim().trim_start_matches("TPU").trim();
        TPU_GENERATIONS.iter().find(|row| row.name.eq_ignore_ascii_case(name))
    }

    fn pick(matches: impl Fn(&Self) -> bool, devices_per_chip: Option<u32>) -> Option<&'static Self> {
        let rows = || TPU_GENERATIONS.iter().filter(|row| matches(row));
        rows().find(|row| devices_per_chip == Some(row.devices_per_chip)).or_else(|| rows().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_what_the_compiler_prints() {
        let v5e = TpuGeneration::by_device_kind("TPU v5 lite", None);
        assert_eq!(v5e.and_then(TpuGeneration::available_hbm), Some(Bytes(16_911_433_728)));
        assert_eq!(v5e.map(TpuGeneration::display_name).as_deref(), Some("TPU v5e"));
        assert_eq!(TpuGeneration::by_version("TPU_VERSION_VIPERFISH", "", None).map(|g| g.name), Some("v5p"));
        assert_eq!(TpuGeneration::by_device_kind("TPU v4", Some(1)).map(|g| g.name), Some("v4 megacore"));
        assert_eq!(TpuGeneration::by_device_kind("TPU v4", None).map(|g| g.name), Some("v4"));
    }
}
