//! How a number follows from the value that two programs differ in, from what it is in both.

/// A law through two points. Values and numbers are whole and positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// The same at every value.
    Constant(i64),
    /// So many for each unit of the value, rounded up.
    Proportional {
        /// Number at the value `per`.
        number: i64,
        /// The value.
        per: i64,
    },
    /// A total divided by the value, rounded up: what is sharded over devices.
    Divided {
        /// The total.
        total: i64,
    },
    /// So many for each square of the value: attention scores with merged dimensions.
    Square {
        /// Number at the value `per`.
        number: i64,
        /// The value.
        per: i64,
    },
    /// A straight line that does not pass through zero.
    Affine {
        /// Value and number at one point.
        from: (i64, i64),
        /// Value and number at the other.
        to: (i64, i64),
    },
}

impl Law {
    /// The simplest law through two points `(value, number)` with different values.
    #[must_use]
    pub fn through(one: (i64, i64), other: (i64, i64)) -> Self {
        let ((a, p), (b, q)) = (one, other);
        let product = |x: i64, y: i64| i128::from(x) * i128::from(y);
        if p == q {
            Self::Constant(p)
        } else if product(p, b) == product(q, a) {
            Self::Proportional { number: q, per: b }
        } else if let Some(total) = common_total(one, other) {
            Self::Divided { total }
        } else if i128::from(p).checked_mul(product(b, b)) == i128::from(q).checked_mul(product(a, a)) {
            Self::Square { number: q, per: b }
        } else {
            Self::Affine { from: one, to: other }
        }
    }

    /// The number at a value; never negative.
    #[must_use]
    pub fn at(&self, value: i64) -> i64 {
        let value = i128::from(value.max(1));
        let found = match *self {
            Self::Constant(number) => i128::from(number),
            Self::Proportional { number, per } => div_ceil(i128::from(number).saturating_mul(value), i128::from(per)),
            Self::Divided { total } => div_ceil(i128::from(total), value),
            Self::Square { number, per } => {
                let per = i128::from(per);
                div_ceil(i128::from(number).saturating_mul(value).saturating_mul(value), per.saturating_mul(per))
            }
            Self::Affine { from: (a, p), to: (b, q) } => {
                let (a, p, b, q) = (i128::from(a), i128::from(p), i128::from(b), i128::from(q));
                p + (q - p).saturating_mul(value - a).div_euclid((b - a).max(1))
            }
        };
        i64::try_from(found.max(0)).unwrap_or(i64::MAX)
    }

    /// Whether it is more than a line drawn through two points for want of anything better.
    #[must_use]
    pub const fn is_explained(&self) -> bool {
        !matches!(self, Self::Affine { .. })
    }
}

fn div_ceil(number: i128, by: i128) -> i128 {
    let by = by.max(1);
    number.div_euclid(by) + i128::from(number.rem_euclid(by) != 0)
}

/// The total that both numbers are parts of, rounded up: the largest that explains both.
fn common_total((a, p): (i64, i64), (b, q): (i64, i64)) -> Option<i64> {
    if (a < b) == (p < q) || p <= 0 || q <= 0 {
        return None;
    }
    let upper = p.checked_mul(a)?.min(q.checked_mul(b)?);
    let above = (p - 1).checked_mul(a)?.max((q - 1).checked_mul(b)?);
    (upper > above).then_some(upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_points_tell_the_law() {
        for (one, other, value, expected) in [
            ((16, 512), (32, 512), 64, 512),
            ((16, 4), (32, 8), 48, 12),
            ((4, 12), (11, 33), 13, 39),
            ((4, 16), (8, 8), 16, 4),
            ((4, 8001), (8, 4001), 16, 2001),
            ((256, 65536), (512, 262_144), 1024, 1_048_576),
            ((256, 257), (512, 513), 1024, 1025),
            ((16, 8), (32, 4), 1_000_000, 1),
        ] {
            let law = Law::through(one, other);
            assert_eq!(law.at(value), expected, "{law:?}");
            assert_eq!((law.at(one.0), law.at(other.0)), (one.1, other.1), "{law:?}");
        }
        assert_eq!(Law::through((10, 9), (20, 4)).at(1000), 0, "never negative");
    }
}
