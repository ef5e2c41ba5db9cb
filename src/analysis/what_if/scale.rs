//! Edits of the batch: scaling, and micro-batches.

use super::batch;
use super::memory::Owner;
use super::resize;
use super::state::State;

impl State<'_> {
    /// Scales the batch per device.
    pub(super) fn batch(&mut self, factor: f64) {
        let Some(batch) = self.batch_to_change() else { return };
        let scaled = (batch as f64 * factor).round().max(1.0) as i64;
        if batch <= 1 && factor < 1.0 {
            self.warn("each device already holds a batch of 1".to_owned());
            return;
        }
        if (scaled as f64 - batch as f64 * factor).abs() > 1e-9 {
            self.warn(format!("a batch of {batch} per device becomes {scaled}"));
        }
        self.scale_batch(batch, scaled);
    }

    /// Micro-batches: arguments stay, temporaries hold one part of the batch, and the gradients of all weights are kept
    /// from the first part to the last.
    pub(super) fn micro(&mut self, parts: i64) {
        let Some(batch) = self.batch_to_change() else { return };
        let memory = self.memory;
        if batch % parts != 0 {
            self.warn(format!("a batch of {batch} per device cannot be divided by {parts}"));
            return;
        }
        let is_temporary = |owner: Owner| matches!(owner, Owner::Family(_));
        self.scale_items(batch, batch / parts, &is_temporary);
        let accumulators: u64 = memory.trained.iter().fold(0, |sum, &row| sum.saturating_add(memory.base[row].size));
        if let Some(family) = memory.families.list.len().checked_sub(1).filter(|_| accumulators > 0) {
            self.added.push((accumulators, 0, 2 * memory.families.events, family as u32));
        }
    }

    /// The present batch per device; warns if no argument holds one.
    fn batch_to_change(&mut self) -> Option<i64> {
        self.kinds.batch = true;
        let batch = self.memory.data.first().map(batch::DataArgument::batch);
        if batch.is_none() {
            self.warn("no argument appears to hold a batch, by name or sharding: nothing is scaled".to_owned());
        }
        batch
    }

    /// Scales the batch dimension of everything that holds it.
    pub(super) fn scale_batch(&mut self, batch: i64, scaled: i64) {
        self.scale_items(batch, scaled, &|_| true);
    }

    /// Scales the batch dimension of items whose owner passes a test.
    fn scale_items(&mut self, batch: i64, scaled: i64, accept: &dyn Fn(Owner) -> bool) {
        let memory = self.memory;
        let local = batch::products(&memory.data, 1);
        let weights = batch::weights(self.program, &memory.base, &memory.data);
        let whole = batch::GlobalBatch::new(self.program, &memory.base, &memory.data);
        let scale = |size: i64| {
            let scaled = i128::from(size) * i128::from(scaled) / i128::from(batch.max(1));
            i64::try_from(scaled).unwrap_or(i64::MAX).max(1)
        };
        for own_data in [true, false] {
            let is_data = |owner| matches!(owner, Owner::Base(row) if memory.is_data(row as usize));
            let items = self.items_of(|owner| is_data(owner) == own_data && accept(owner));
            self.change(items, |node| {
                if !own_data && weights.contains(&batch::outline(&node.dimensions)) {
                    return false;
                }
                let exact = node.dimensions.iter().position(|&d| d == batch);
                let at = exact
                    .or_else(|| node.dimensions.iter().position(|d| local.contains(d)))
                    .or_else(|| whole.as_ref().and_then(|whole| whole.dimension(node)));
                let Some(at) = at else { return false };
                let size = scale(node.dimensions[at]);
                resize::set_dimension(node, at, size);
                true
            });
        }
    }
}
