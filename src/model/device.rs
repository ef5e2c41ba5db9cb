//! The device a program was compiled for: its kind, its memory spaces and their capacities.

use std::fmt;

use super::units::Bytes;

/// The accelerator a program was compiled for.
#[derive(Debug, Clone, Default)]
pub struct Device {
    /// Such as `TPU v5e`; `None` if unknown.
    pub name: Option<String>,
    /// Kind of device; `None` if unknown.
    pub kind: Option<DeviceKind>,
    /// Evidence for this, in words.
    pub evidence: Option<String>,
    /// Known capacities, at most one per memory space.
    pub capacities: Vec<Capacity>,
    /// All of its memory, of which a program may use less; `None` if unknown.
    pub all_memory: Option<Bytes>,
    /// Chips the program was compiled for; `None` if unknown.
    pub topology: Option<Topology>,
}

/// Chips that a program was compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// Chips of one host.
    pub chips_per_host: u64,
    /// Hosts.
    pub hosts: u64,
}

impl Topology {
    /// Total number of chips.
    #[must_use]
    pub const fn chips(&self) -> u64 {
        self.chips_per_host.saturating_mul(self.hosts)
    }
}

impl Device {
    /// Capacity of a memory space; `None` if unknown.
    #[must_use]
    pub fn capacity(&self, color: MemorySpace) -> Option<&Capacity> {
        self.capacities.iter().find(|capacity| capacity.color == color)
    }
}

/// Capacity of a memory space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Memory space.
    pub color: MemorySpace,
    /// Bytes available to a program.
    pub bytes: Bytes,
    /// Evidence for this, in words.
    pub evidence: String,
}

/// Kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// Google's TPU.
    Tpu,
    /// A GPU.
    Gpu,
    /// Graphcore's IPU.
    Ipu,
    /// The host CPU.
    Cpu,
}

impl DeviceKind {
    /// Lower-case name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tpu => "tpu",
            Self::Gpu => "gpu",
            Self::Ipu => "ipu",
            Self::Cpu => "cpu",
        }
    }
}

/// A memory space of a device, identified by what XLA calls its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemorySpace(pub i64);

impl fmt::Display for MemorySpace {
    /// Writes the number; see [`Self::name`] for the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl MemorySpace {
    /// Main memory: HBM on a TPU or GPU, RAM on a CPU.
    pub const HBM: Self = Self(0);
    /// Vector memory of a TPU core.
    pub const VMEM: Self = Self(1);
    /// Common memory of the cores in some TPU generations.
    pub const CMEM: Self = Self(3);
    /// Scalar memory of a TPU core.
    pub const SMEM: Self = Self(4);
    /// Memory of the host.
    pub const HOST: Self = Self(5);

    /// Name on a kind of device: XProf's name if it has one, otherwise inferred from real dumps.
    #[must_use]
    pub fn name(self, kind: Option<DeviceKind>) -> String {
        let name = match (self.0, kind) {
            (0, Some(DeviceKind::Cpu)) => "RAM",
            (1, Some(DeviceKind::Gpu)) => "Collective",
            (2, Some(DeviceKind::Gpu)) => "Temp buffers",
            (0, _) => "HBM",
            (1, _) => "VMEM",
            (2, _) => "Sflag",
            (3, _) => "CMEM",
            (4, _) => "SMEM",
            (5, _) => "Host",
            (6, _) => "Scalar/SC",
            _ => return format!("Colour {self}"),
        };
        name.to_owned()
    }

    /// Whether `text` is the space's name, XProf's name for it, or its number. Case-insensitive.
    #[must_use]
    pub fn is_named(self, text: &str, kind: Option<DeviceKind>) -> bool {
        text.eq_ignore_ascii_case(&self.name(kind))
            || text.eq_ignore_ascii_case(&self.name(None))
            || (self.0 == 6 && text.eq_ignore_ascii_case("SparseCore"))
            || text.parse() == Ok(self.0)
    }
}
