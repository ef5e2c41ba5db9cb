//! What is large enough to be marked as a caution: the same limits wherever a caution is drawn.

use crate::model::Bytes;

/// Whether padding matters: at least 1 % of the memory that it is part of.
#[must_use]
pub const fn is_padding(padding: Bytes, of: Bytes) -> bool {
    padding.0 > 0 && padding.0.saturating_mul(100) >= of.0
}

/// Whether arguments that are not donated matter: what donating could save is at least 0.1 % of the peak. `arguments` and
/// `outputs` are bytes.
#[must_use]
pub fn is_undonated(arguments: Bytes, outputs: Bytes, peak: Bytes) -> bool {
    let saves = arguments.min(outputs);
    saves.0 > 0 && saves.0.saturating_mul(1000) >= peak.0
}

/// Whether fragmentation matters: at least 10 % of what is allocated.
#[must_use]
pub const fn is_fragmentation(lost: Bytes, allocated: Bytes) -> bool {
    lost.0 > 0 && lost.0.saturating_mul(10) >= allocated.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_things_are_no_cautions() {
        assert!(!is_padding(Bytes(728 << 10), Bytes(25 << 30)) && is_padding(Bytes(1 << 30), Bytes(25 << 30)));
        assert!(!is_undonated(Bytes(8), Bytes(1 << 20), Bytes(1 << 30)), "an argument of 8 B");
        assert!(is_undonated(Bytes(14 << 30), Bytes(14 << 30), Bytes(53 << 30)));
        assert!(!is_padding(Bytes(0), Bytes(0)) && !is_fragmentation(Bytes(0), Bytes(0)));
    }
}
