//! Shardings of values over devices.

use super::fast::FastSet;

/// The sharding of a value over devices (`OpSharding`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sharding {
    /// Kind of sharding.
    pub kind: ShardingKind,
    /// Number of shards along each dimension; a last value beyond the rank is the number of replicas.
    pub tiles: Vec<i64>,
    /// Whether the last value of `tiles` is the number of replicas.
    pub replicate_on_last: bool,
    /// Which device has which shard.
    pub order: DeviceOrder,
    /// Shardings of the elements of a tuple.
    pub elements: Vec<Self>,
}

/// The devices of the shards, counted with the last dimension the fastest (`TileAssignment`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeviceOrder {
    /// The file does not tell.
    #[default]
    Unknown,
    /// The device of each shard, one after the other.
    Listed(Vec<i64>),
    /// All devices in order, arranged in some dimensions that are then transposed.
    Arranged {
        /// The dimensions; together as many as there are devices.
        dimensions: Vec<i64>,
        /// Where each dimension after the transposition was before.
        transposed: Vec<usize>,
    },
}

/// More devices than any machine has: more are not told apart.
const MOST_DEVICES: i64 = 1 << 17;

impl DeviceOrder {
    /// The devices in the order of the shards; `None` where that is unknown or makes no sense.
    fn devices(&self) -> Option<Vec<usize>> {
        match self {
            Self::Unknown => None,
            Self::Listed(devices) => devices.iter().map(|&device| usize::try_from(device).ok()).collect(),
            Self::Arranged { dimensions, transposed } => {
                let count = dimensions
                    .iter()
                    .try_fold(1i64, |n, &d| n.checked_mul(d).filter(|n| d > 0 && *n <= MOST_DEVICES))?;
                // Devices between neighbours along each dimension before the transposition.
                let mut strides = vec![1i64; dimensions.len()];
                for place in (1..dimensions.len()).rev() {
                    strides[place - 1] = strides[place] * dimensions[place];
                }
                let axes: Vec<(i64, i64)> = transposed
                    .iter()
                    .map(|&place| Some((*dimensions.get(place)?, *strides.get(place)?)))
                    .collect::<Option<_>>()?;
                let device = |shard: i64| {
                    let (mut left, mut device) = (shard, 0);
                    for &(size, stride) in axes.iter().rev() {
                        device += left % size * stride;
                        left /= size;
                    }
                    usize::try_from(device).ok()
                };
                (0..count).map(device).collect()
            }
        }
    }
}

/// Kinds of [`Sharding`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShardingKind {
    /// A full copy on every device.
    #[default]
    Replicated,
    /// On a single device.
    Maximal,
    /// A tuple with a sharding for each element.
    Tuple,
    /// Split into shards.
    Tiled,
    /// Manually partitioned.
    Manual,
    /// Any other kind.
    Unknown,
}

impl Sharding {
    /// In words: `replicated`, `sharded 4 × 1`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.kind {
            ShardingKind::Replicated => "replicated".to_owned(),
            ShardingKind::Maximal => "on one device".to_owned(),
            ShardingKind::Tuple => "per element".to_owned(),
            ShardingKind::Manual => "manual".to_owned(),
            ShardingKind::Unknown => "unknown".to_owned(),
            ShardingKind::Tiled if self.parts() <= 1 => "replicated".to_owned(),
            ShardingKind::Tiled => {
                let copies = if self.replicate_on_last { self.tiles.split_last() } else { None };
                let dims = copies.map_or(&self.tiles[..], |(_, dims)| dims);
                let words: Vec<String> = dims.iter().take(16).map(ToString::to_string).collect();
                let copies = copies.map(|(&n, _)| n).filter(|&n| n > 1).map(|n| format!(", {n} copies"));
                format!("sharded {}{}", words.join(" \u{d7} "), copies.unwrap_or_default())
            }
        }
    }

    /// Number of distinct shards; 1 if replicated.
    #[must_use]
    pub fn parts(&self) -> i64 {
        if self.kind != ShardingKind::Tiled {
            return 1;
        }
        let dims =
            if self.replicate_on_last { self.tiles.split_last().map_or(&[][..], |(_, d)| d) } else { &self.tiles };
        dims.iter().fold(1i64, |n, &d| n.saturating_mul(d.max(1)))
    }

    /// Which part of a dimension each device has, by device; `None` where the file does not tell.
    fn parts_along(&self, dimension: usize) -> Option<Vec<i64>> {
        let devices = self.order.devices()?;
        let parts = *self.tiles.get(dimension).filter(|&&parts| parts > 0)?;
        let inside = self.tiles.get(dimension + 1..)?.iter().try_fold(1i64, |n, &d| n.checked_mul(d.max(1)))?;
        let all = self.tiles.iter().try_fold(1i64, |n, &d| n.checked_mul(d.max(1)))?;
        // Copies follow the shards.
        let copies = i64::try_from(devices.len()).ok()?.checked_div(all).filter(|&copies| copies > 0)?;
        let mut found = vec![-1; devices.len()];
        for (&device, shard) in devices.iter().zip(0i64..) {
            *found.get_mut(device)? = shard / copies / inside % parts;
        }
        Some(found)
    }

    /// Whether a dimension of this and one of another value are divided over the same devices, all or some: then one value
    /// cannot be divided along both. `None` where the file does not tell.
    #[must_use]
    pub fn shares_devices(&self, dimension: usize, other: &Self, of_other: usize) -> Option<bool> {
        let (own, others) = (self.parts_along(dimension)?, other.parts_along(of_other)?);
        let (parts, of_others) = (*self.tiles.get(dimension)?, *other.tiles.get(of_other)?);
        if own.len() != others.len() || parts <= 1 || of_others <= 1 {
            return None;
        }
        // Over other devices, each part of the one meets each part of the other.
        let pairs: FastSet<(i64, i64)> = own.into_iter().zip(others).collect();
        Some((pairs.len() as i64) < parts.saturating_mul(of_others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiled(tiles: &[i64], dimensions: &[i64], transposed: &[usize]) -> Sharding {
        let order = DeviceOrder::Arranged { dimensions: dimensions.to_vec(), transposed: transposed.to_vec() };
        Sharding { kind: ShardingKind::Tiled, tiles: tiles.to_vec(), order, ..Sharding::default() }
    }

    #[test]
    fn axes_of_one_mesh_are_told_apart() {
        // A mesh of 2 (data) by 4 (model): the batch over data, columns over model, rows over data.
        let batch = Sharding { replicate_on_last: true, ..tiled(&[2, 1, 4], &[8], &[0]) };
        let weight = tiled(&[2, 4], &[8], &[0]);
        let turned = tiled(&[4, 2], &[2, 4], &[1, 0]);
        assert_eq!(
            (batch.shares_devices(0, &weight, 0), batch.shares_devices(0, &weight, 1)),
            (Some(true), Some(false))
        );
        assert_eq!(
            (batch.shares_devices(0, &turned, 0), batch.shares_devices(0, &turned, 1)),
            (Some(false), Some(true))
        );
        let listed = Sharding { order: DeviceOrder::Listed(vec![0, 4, 1, 5, 2, 6, 3, 7]), ..tiled(&[4, 2], &[], &[]) };
        assert_eq!(
            (batch.shares_devices(0, &listed, 0), batch.shares_devices(0, &listed, 1)),
            (Some(false), Some(true))
        );
        // All eight are half of them, too.
        assert_eq!(batch.shares_devices(0, &tiled(&[8], &[8], &[0]), 0), Some(true));
    }

    #[test]
    fn what_makes_no_sense_tells_nothing() {
        let batch = tiled(&[2, 4], &[8], &[0]);
        for other in [
            Sharding { order: DeviceOrder::Unknown, ..batch.clone() },
            Sharding { order: DeviceOrder::Listed(vec![-1, 2]), ..batch.clone() },
            Sharding { order: DeviceOrder::Listed(vec![9; 8]), ..batch.clone() },
            tiled(&[2, 4], &[i64::MAX, 8], &[0, 1]),
            tiled(&[2, 4], &[8], &[3]),
            tiled(&[0, 4], &[8], &[0]),
            tiled(&[], &[8], &[0]),
        ] {
            assert_eq!(batch.shares_devices(0, &other, 0), None, "{other:?}");
        }
    }
}
