//! What runs between the operations of one layer without the layer's name, as what a layer's own function computes from
//! the results of its modules does.

use super::turn::{Window, begins};
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::Families;

/// When the layers that names show run, each from its first operation to its last.
#[derive(Debug, Default)]
pub(super) struct Between {
    /// First time, last time and the layer, ascending; none overlaps another.
    spans: Vec<(u32, u32, u32)>,
    /// When each family is last read in the forward pass.
    last_read: Vec<u32>,
}

impl Between {
    /// Looks for when each layer runs before the turn. `layer_of` are the layers that names show, by family, and `windows`
    /// the times from which they run.
    pub fn new(
        (families, passes): (&Families, &[Pass]),
        layer_of: &[Option<u32>],
        windows: &[Window],
        turn: u32,
    ) -> Self {
        let mut made: Vec<Vec<(u32, u64)>> = vec![Vec::new(); windows.len()];
        let mut row_of = vec![None; layer_of.iter().flatten().max().map_or(0, |&most| most as usize + 1)];
        for (row, window) in windows.iter().enumerate() {
            if let Some(place) = window.1.and_then(|layer| row_of.get_mut(layer as usize)) {
                *place = Some(row);
            }
        }
        for ((family, pass), layer) in families.list.iter().zip(passes).zip(layer_of) {
            let row = layer.and_then(|layer| row_of.get(layer as usize).copied().flatten());
            if let Some(row) = row.filter(|_| *pass == Pass::Forward && 2 * family.first < turn) {
                made[row].push((2 * family.first, family.size));
            }
        }
        let mut spans: Vec<(u32, u32, u32)> = Vec::new();
        for (window, mut made) in windows.iter().zip(made) {
            // The little that is made long after the rest is left out, as is what is made long before it.
            made.sort_unstable_by_key(|row| std::cmp::Reverse(row.0));
            if let (Some(layer), Some(end)) = (window.1, begins(&made)) {
                spans.push((window.0, end, layer));
            }
        }
        let mut latest = 0;
        let mut alone = Vec::with_capacity(spans.len());
        for (row, &(begin, end, _)) in spans.iter().enumerate() {
            alone.push(latest <= begin && spans.get(row + 1).is_none_or(|next| end <= next.0));
            latest = end.max(latest);
        }
        let mut alone = alone.into_iter();
        spans.retain(|_| alone.next() == Some(true));
        Self { spans, last_read: Vec::new() }
    }

    /// Adds when families are read in the forward pass.
    pub fn add_reads(&mut self, families: usize, reads: impl Iterator<Item = (usize, u32)>) {
        self.last_read = vec![0; families];
        for (family, time) in reads {
            if let Some(last) = self.last_read.get_mut(family) {
                *last = time.max(*last);
            }
        }
    }

    /// The layer that begins with what is made at a time, before its first operation with a name: nothing behind it reads
    /// that. What is before all layers is the input of the first.
    pub fn begun_by(&self, family: usize, time: u32) -> Option<u32> {
        let row = self.spans.partition_point(|span| span.0 <= time);
        let (before, span) = (self.spans.get(row.checked_sub(1)?)?, self.spans.get(row)?);
        let last = *self.last_read.get(family).filter(|&&last| last > time)?;
        (before.1 <= time && last <= span.1).then_some(span.2)
    }

    /// The layer that runs at a time, between two of its operations.
    pub fn layer_at(&self, time: u32) -> Option<u32> {
        let row = self.spans.partition_point(|span| span.0 <= time).checked_sub(1)?;
        self.spans.get(row).filter(|span| time < span.1).map(|span| span.2)
    }
}
