//! XLA's element types: wire number, printed name and storage size (`PrimitiveType` in xla_data.proto).

/// An element type, identified by its wire number. Unknown numbers are kept and named `invalid`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ElementType(pub u8);

/// (wire number, printed name, storage bits per element unless the layout overrides them; sub-byte types take 8)
const TABLE: &[(u8, &str, u32)] = &[
    (1, "pred", 8),
    (30, "s1", 8),
    (26, "s2", 8),
    (21, "s4", 8),
    (2, "s8", 8),
    (3, "s16", 16),
    (4, "s32", 32),
    (5, "s64", 64),
    (31, "u1", 8),
    (27, "u2", 8),
    (22, "u4", 8),
    (6, "u8", 8),
    (7, "u16", 16),
    (8, "u32", 32),
    (9, "u64", 64),
    (10, "f16", 16),
    (11, "f32", 32),
    (16, "bf16", 16),
    (12, "f64", 64),
    (19, "f8e5m2", 8),
    (28, "f8e4m3", 8),
    (20, "f8e4m3fn", 8),
    (23, "f8e4m3b11fnuz", 8),
    (29, "f8e3m4", 8),
    (24, "f8e5m2fnuz", 8),
    (25, "f8e4m3fnuz", 8),
    (33, "f8e8m0fnu", 8),
    (32, "f4e2m1fn", 8),
    (35, "f6e3m2fn", 8),
    (36, "f6e2m3fn", 8),
    (15, "c64", 64),
    (18, "c128", 128),
    (13, "tuple", 0),
    (14, "opaque", 64),
    (17, "token", 0),
    (34, "buffer", 64),
];

impl ElementType {
    /// A tuple of shapes.
    pub const TUPLE: Self = Self(13);
    /// An opaque value.
    pub const OPAQUE: Self = Self(14);
    /// An ordering token; occupies no memory.
    pub const TOKEN: Self = Self(17);
    /// 32-bit float.
    pub const F32: Self = Self(11);
    /// 16-bit brain float.
    pub const BF16: Self = Self(16);
    /// Boolean.
    pub const PRED: Self = Self(1);
    /// 32-bit signed integer.
    pub const S32: Self = Self(4);

    fn row(self) -> Option<&'static (u8, &'static str, u32)> {
        TABLE.iter().find(|row| row.0 == self.0)
    }

    /// The lower-case name XLA prints; `invalid` for an unknown type.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("invalid", |row| row.1)
    }

    /// The type with a printed name; `None` if unknown.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| Self(row.0))
    }

    /// Storage bits per element; 0 for tuples, tokens and unknown types.
    #[must_use]
    pub fn storage_bits(self) -> u32 {
        self.row().map_or(0, |row| row.2)
    }

    /// Whether values of this type are arrays.
    #[must_use]
    pub fn is_array(self) -> bool {
        !matches!(self, Self::TUPLE | Self::OPAQUE | Self::TOKEN | Self(34)) && self.row().is_some()
    }

    /// Whether it is boolean or a 32-bit or 64-bit integer, as used for indices and counts.
    #[must_use]
    pub const fn is_index(self) -> bool {
        matches!(self, Self(1 | 4 | 5 | 8 | 9))
    }

    /// Whether it is a real floating-point type.
    #[must_use]
    pub fn is_float(self) -> bool {
        let name = self.name();
        name.starts_with('f') || name == "bf16"
    }

    /// Whether it is a floating-point type wider than 16 bits.
    #[must_use]
    pub const fn is_wide_float(self) -> bool {
        matches!(self, Self(11 | 12))
    }

    /// Whether it is a floating-point type of 16 bits or fewer.
    #[must_use]
    pub fn is_narrow_float(self) -> bool {
        self.is_float() && !self.is_wide_float()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique() {
        for row in TABLE {
            assert_eq!(ElementType::from_name(row.1), Some(ElementType(row.0)));
            assert_eq!(TABLE.iter().filter(|r| r.0 == row.0).count(), 1, "{}", row.1);
        }
        assert_eq!(ElementType(99).name(), "invalid");
    }
}
