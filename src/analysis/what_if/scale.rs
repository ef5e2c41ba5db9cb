//! Edits of the batch: scaling, and micro-batches.

use super::batch;
use super::batch_by_shape;
use super::by_size::BySize;
use super::follows::Follows;
use super::global_batch::GlobalBatch;
use super::memory::{Item, Memory, Owner};
use super::resize;
use super::saved_for_backward::{LEAST_CUT, is_among};
use super::state::State;
use crate::analysis::class::Class;
use crate::analysis::flow::collective::{holds_gathered, is_all_gather};
use crate::analysis::names::lookup::is_convolution;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::model::{FastMap, FastSet, Opcode, Program, ShapeNode, outline};

/// The compiler folds rows of the image into a batch below this, and so computes convolutions in other shapes.
const FOLDED_BELOW: i64 = 8;

/// Share of the bytes of temporaries made by convolutions above which these decide the outcome.
const CONVOLVES: f64 = 0.1;

/// Share of the bytes of temporaries that follow a larger batch below which hardly any do.
const HARDLY_ANY: f64 = 0.1;

/// Fewest dimensions of a cache: heads, positions and features besides what it is one of several of.
const CACHE_DIMENSIONS: usize = 4;

impl Memory {
    /// Outlines of all arguments that hold no batch.
    #[must_use]
    pub fn weights(&self, program: &Program) -> &FastSet<Vec<i64>> {
        once(&self.weights, || batch::weights(program, &self.base, &self.data))
    }

    /// The dimensions of caches that do not follow the batch, as they have places for more samples than are computed at
    /// once: neither do copies of them.
    fn still_caches<'p>(&self, program: &'p Program) -> FastSet<&'p [i64]> {
        let is_still =
            |row: &usize| self.roles[*row].is_argument && self.roles[*row].class == Class::Cache && !self.is_data(*row);
        let rows = (0..self.base.len()).filter(is_still);
        let nodes = rows.filter_map(|row| program.buffer_node(self.base[row].buffer));
        nodes
            .filter(|node| node.element_type.is_float() && node.dimensions.len() >= CACHE_DIMENSIONS)
            .map(|node| node.dimensions.as_slice())
            .collect()
    }

    /// How the global batch is recognised; `None` if no argument's batch is sharded, or the batch per device is too
    /// small to recognise, or so small that convolutions fold rows into it, in as many parts as there may be devices.
    #[must_use]
    pub fn global_batch(&self, program: &Program) -> Option<&GlobalBatch> {
        let own = self.data.first().map_or(0, batch::DataArgument::batch);
        if self.is_folded(program, own) {
            return None;
        }
        let layers = self.kept.stacks.iter().map(|stack| stack.layers);
        once(&self.global_batch, || {
            let is_divided = self.data.iter().any(|data| data.parts > 1);
            let is_part = is_divided && self.leaves_samples_out(program);
            let parts = if is_part { self.micro_batches(program) } else { self.parts_of_loop.unwrap_or(1) };
            GlobalBatch::new(program, &self.base, (&self.data, parts), layers)
        })
        .as_ref()
    }

    /// Batch per device below which the compiler computes the program's convolutions in other shapes; `None` if it has
    /// none that matter, or they convolve as many pictures of each sample.
    #[must_use]
    pub fn folded_below(&self, program: &Program) -> Option<i64> {
        *once(&self.folded, || {
            let convolved: Vec<bool> =
                (0..self.families.list.len()).map(|row| is_convolution(self.family_name(row))).collect();
            let (mut whole, mut own) = (0u64, 0u64);
            for (family, is_own) in self.families.list.iter().zip(&convolved) {
                whole = whole.saturating_add(family.size);
                own = own.saturating_add(if *is_own { family.size } else { 0 });
            }
            let pictures =
                (own as f64 > whole as f64 * CONVOLVES).then(|| self.pictures_of_a_sample(program, &convolved))?;
            Some((FOLDED_BELOW + pictures - 1) / pictures).filter(|&least| least > 1)
        })
    }

    /// Whether a batch per device is so small that the compiler computes the program's convolutions in other shapes.
    #[must_use]
    pub fn is_folded(&self, program: &Program, batch: i64) -> bool {
        self.folded_below(program).is_some_and(|least| batch < least)
    }

    /// How many pictures of each sample are convolved at once, such as the frames of a video: the fewest in any of the
    /// families named.
    fn pictures_of_a_sample(&self, program: &Program, families: &[bool]) -> i64 {
        let Some(batch) = self.data.first().map(batch::DataArgument::batch).filter(|&batch| batch > 0) else {
            return 1;
        };
        let followed = self.followed(program);
        let own =
            self.items.iter().zip(followed).filter(
                |(item, _)| matches!(item.owner, Owner::Family(row) if families.get(row as usize) == Some(&true)),
            );
        let pictures = own.filter_map(|(item, follows)| {
            let node = resize::node_of(program, item.buffer)?;
            let place = follows.dimensions().next()?;
            Some(node.dimensions.get(place)? / batch)
        });
        pictures.min().unwrap_or(1).max(1)
    }
}

/// An argument of which one dimension follows the batch.
struct BatchOfData {
    sizes: Vec<i64>,
    place: usize,
}

impl BatchOfData {
    /// Whether an array of which more dimensions seem to follow the batch has the same sizes in them, as a copy of the argument
    /// has where there are as many layers as samples: then one of them is not of the batch.
    fn has_as_well(&self, node: &ShapeNode, follows: Follows) -> bool {
        let set = follows.set();
        set.count_ones() > 1
            && set >> self.place & 1 == 1
            && node.dimensions.len() == self.sizes.len()
            && follows.dimensions().all(|at| node.dimensions.get(at) == self.sizes.get(at))
    }
}

impl State<'_> {
    /// Scales the batch per device.
    pub(super) fn batch(&mut self, factor: f64) {
        let Some(batch) = self.batch_to_change() else { return };
        let scaled = (batch as f64 * factor).round().max(1.0) as i64;
        if batch <= 1 && factor < 1.0 {
            self.decline("each device already holds a batch of 1".to_owned());
            return;
        }
        if (scaled as f64 - batch as f64 * factor).abs() > 1e-9 {
            self.warn(format!("a batch of {batch} per device becomes {scaled}"));
        }
        self.decline_folding(batch, scaled);
        self.scale_batch(batch, scaled);
        if scaled != batch && self.hardly_follows() {
            self.decline(format!(
                "hardly any temporaries hold the {batch} samples of each device: the step runs on them one after the other, or devices share sequences that are divided along their length"
            ));
        }
    }

    /// Whether the change of the batch left nearly all temporaries of a training step with loops as they are.
    fn hardly_follows(&self) -> bool {
        let memory = self.memory;
        if !self.program.instructions.opcode.contains(&Opcode::WHILE) || !memory.has_backward() {
            return false;
        }
        let is_hardly = |(all, changed): (u64, u64)| all > 0 && (changed as f64) < all as f64 * HARDLY_ANY;
        let weights = memory.weights(self.program);
        // What devices bring together, such as weights, holds no batch of its own.
        is_hardly(self.changed_of(weights)) && {
            let program = self.program;
            let gathers = program.instructions.ids().filter(|&at| is_all_gather(program, at));
            let results = gathers.filter_map(|at| program.shape_of(at)).flat_map(|shape| shape.nodes.iter());
            let mut others = weights.clone();
            others.extend(results.filter(|node| node.element_type.is_array()).map(|node| outline(&node.dimensions)));
            is_hardly(self.changed_of(&others))
        }
    }

    /// Bytes of temporary floats that have none of some dimensions, and of those of them that are changed.
    fn changed_of(&self, others: &FastSet<Vec<i64>>) -> (u64, u64) {
        let memory = self.memory;
        // Asked once for each shape.
        let is_meant = |row: u32| {
            memory.shapes.get(row).is_some_and(|known| {
                known.node.element_type.is_float() && !others.contains(&outline(&known.node.dimensions))
            })
        };
        let is_meant: Vec<bool> = (0..memory.shapes.len() as u32).map(is_meant).collect();
        let node = |row: u32| self.shapes.get(row).map(|known| &known.node);
        let mut differ: FastMap<(u32, u32), bool> = FastMap::default();
        let (mut all, mut changed) = (0u64, 0u64);
        let rows = memory.shape_of.iter().zip(self.shape_of.iter());
        for ((item, &bytes), (&before, &now)) in memory.items.iter().zip(&memory.item_bytes).zip(rows) {
            if matches!(item.owner, Owner::Family(_)) && is_meant.get(before as usize) == Some(&true) {
                all = all.saturating_add(bytes);
                // What is one sample already stays one.
                if before != now && *differ.entry((before, now)).or_insert_with(|| node(before) != node(now)) {
                    changed = changed.saturating_add(bytes);
                }
            }
        }
        (all, changed)
    }

    /// Declines to predict a batch, or a part of one, with which convolutions are computed in other shapes.
    pub(super) fn decline_folding(&mut self, batch: i64, scaled: i64) {
        let is_folded = |size: i64| self.memory.is_folded(self.program, size);
        if is_folded(batch) != is_folded(scaled) {
            self.decline(format!(
                "with fewer than {} samples per device the compiler folds rows of what is convolved into the batch and keeps copies in both shapes, so memory does not follow the batch from {batch} to {scaled}",
                self.memory.folded_below(self.program).unwrap_or(FOLDED_BELOW)
            ));
        }
    }

    /// Declines to predict another type for convolutions of a few samples: the compiler may keep values in both types.
    pub(super) fn decline_small_convolutions(&mut self) {
        let batch = self.memory.data.first().map(batch::DataArgument::batch);
        if let Some(batch) = batch.filter(|&batch| self.memory.is_folded(self.program, batch)) {
            self.decline(format!(
                "convolutions of {batch} samples per device are computed in folded shapes, which the compiler chooses anew for each type; it may need more memory in a narrower one"
            ));
        }
    }

    /// The present batch per device; warns if no argument holds one.
    pub(super) fn batch_to_change(&mut self) -> Option<i64> {
        self.kinds.batch = true;
        let batch = self.memory.data.first().map(batch::DataArgument::batch);
        if batch.is_none() {
            self.decline("no argument appears to hold a batch, by name, sharding or shape".to_owned());
        }
        batch
    }

    /// Scales the batch dimension of everything that holds it.
    pub(super) fn scale_batch(&mut self, batch: i64, scaled: i64) {
        let Some(part) = self.memory.part_of_batch(self.program) else {
            self.scale_items((batch, batch), scaled, &|_| true);
            return;
        };
        // Arguments hold the batch, temporaries a part of it.
        self.scale_items((batch, batch), scaled, &|owner| matches!(owner, Owner::Base(_)));
        let of_part = i128::from(part) * i128::from(scaled) / i128::from(batch.max(1));
        let of_part = i64::try_from(of_part).unwrap_or(i64::MAX).max(1);
        self.scale_items((batch, part), of_part, &|owner| matches!(owner, Owner::Family(_)));
    }

    /// Scales the batch dimension of items whose owner passes a test; `held` is the part of the batch that they hold.
    pub(super) fn scale_items(&mut self, (whole, held): (i64, i64), scaled: i64, accept: &dyn Fn(Owner) -> bool) {
        let memory = self.memory;
        self.to_one_sample |= scaled == 1 && held > 1;
        let by_size = BySize::new(self.program, memory, (whole, held));
        let scale = |size: i64| {
            let scaled = i128::from(size) * i128::from(scaled) / i128::from(held.max(1));
            i64::try_from(scaled).unwrap_or(i64::MAX).max(1)
        };
        let (is_cautious, mut may_stay) = (self.is_cautious, false);
        let followed = memory.followed(self.program);
        let follows = |item: usize| match followed.get(item) {
            // Parts of the batch are not told from the samples of a loop over them.
            Some(Follows::Nowhere) if whole != held => Follows::Unknown,
            Some(&follows) => follows,
            None => Follows::Unknown,
        };
        let is_data = |owner| matches!(owner, Owner::Base(row) if memory.is_data(row as usize));
        let of_data = self.batch_of_data(followed);
        // The dimension of a single sample is often left out.
        let is_of_one = |owner| {
            let Owner::Family(row) = owner else { return false };
            let pass = memory.kept.passes.get(row as usize);
            whole == 1 && matches!(pass, Some(Pass::Forward | Pass::Backward | Pass::Recomputed))
        };
        // One sequence as long as it is wide has the sizes of a weight, but for the batch of one; slices of a stack of
        // weights have such a dimension, too.
        let may_be_alone = whole == 1 && memory.kept.stacks.is_empty();
        let is_alone = |item: usize| {
            may_be_alone
                && is_of_one(memory.items[item].owner)
                && !holds_gathered(self.program, memory.items[item].buffer)
        };
        let arguments = memory.base.iter().filter(|_| may_be_alone);
        let arguments = arguments.filter_map(|base| batch::node_of(self.program, base));
        let of_one: FastSet<&[i64]> =
            arguments.map(|node| node.dimensions.as_slice()).filter(|sizes| sizes.first() == Some(&1)).collect();
        let still = memory.still_caches(self.program);
        let items = self.items_of(accept).map(|item| {
            let owner = memory.items[item].owner;
            (item, (is_data(owner), follows(item), is_of_one(owner), is_alone(item)))
        });
        self.change_by(items, |node, (is_data, follows, is_of_one, is_alone)| {
            if !is_data && still.contains(node.dimensions.as_slice()) {
                return false;
            }
            let is_sample = || {
                let sizes = node.dimensions.as_slice();
                is_alone && sizes.len() > 2 && sizes[0] == 1 && node.element_type.is_float() && !of_one.contains(sizes)
            };
            let at: Vec<usize> = match follows {
                Follows::In(_) => {
                    let of_data = of_data.iter().find(|data| data.has_as_well(node, follows)).map(|data| data.place);
                    let is_meant = |at: &usize| *at < node.dimensions.len() && of_data.is_none_or(|place| place == *at);
                    follows.dimensions().filter(is_meant).collect()
                }
                _ if !is_data && by_size.is_weight(node) => is_sample().then_some(0).into_iter().collect(),
                Follows::Nowhere if !is_data && node.element_type.is_float() => Vec::new(),
                _ => {
                    let is_meant = is_of_one && node.element_type.is_float() && outline(&node.dimensions).len() > 1;
                    by_size.dimension(node).or(is_meant.then_some(0)).into_iter().collect()
                }
            };
            for &at in &at {
                let before = node.dimensions[at];
                resize::set_dimension(node, at, scale(before));
                let other = resize::with_other_lanes(node, at, before);
                may_stay |= other.is_some();
                if let Some(other) = other.filter(|_| !is_cautious) {
                    *node = other;
                }
            }
            !at.is_empty()
        });
        self.may_stay |= may_stay;
        self.scale_folded_scores(held, &scale, accept);
        self.scale_flat_logits(held, &scale, accept);
    }

    /// The arguments of which one dimension alone follows the batch.
    fn batch_of_data(&self, followed: &[Follows]) -> Vec<BatchOfData> {
        let memory = self.memory;
        let is_data = |item: &Item| matches!(item.owner, Owner::Base(row) if memory.is_data(row as usize));
        let data = memory.items.iter().zip(followed).filter(|(item, _)| is_data(item));
        let known = data.filter_map(|(item, follows)| {
            let mut places = follows.dimensions();
            let (place, None) = (places.next()?, places.next()) else { return None };
            let sizes = resize::node_of(self.program, item.buffer)?.dimensions.clone();
            Some(BatchOfData { sizes, place })
        });
        known.collect()
    }

    /// Scales logits that lie in one dimension, samples and words together, and those of positions of which the last is cut
    /// off, in rows.
    fn scale_flat_logits(&mut self, batch: i64, scale: &dyn Fn(i64) -> i64, accept: &dyn Fn(Owner) -> bool) {
        let logits = &self.memory.kept.logits;
        let are_logits = |owner| matches!(owner, Owner::Family(row) if is_among(logits, row as usize));
        let items: Vec<usize> =
            self.items_of(|owner| are_logits(owner) && accept(owner)).filter(|&item| !self.is_changed(item)).collect();
        let length = self.memory.kept.sequence.unwrap_or(0);
        let are_rows = |rows: i64| length > LEAST_CUT && rows % (length - 1) == 0;
        self.change(items.into_iter(), |node| match node.dimensions[..] {
            [whole, ref words @ ..] if batch > 0 && (words.is_empty() && whole % batch == 0 || are_rows(whole)) => {
                resize::set_dimension(node, 0, scale(whole));
                true
            }
            _ => false,
        });
    }

    /// Scales attention scores whose heads are folded into the batch: their leading dimension is a multiple of it.
    fn scale_folded_scores(&mut self, batch: i64, scale: &dyn Fn(i64) -> i64, accept: &dyn Fn(Owner) -> bool) {
        let scores = &self.memory.kept.scores;
        let are_scores = |owner| matches!(owner, Owner::Family(row) if is_among(scores, row as usize));
        let items: Vec<usize> =
            self.items_of(|owner| are_scores(owner) && accept(owner)).filter(|&item| !self.is_changed(item)).collect();
        self.change(items.into_iter(), |node| {
            let are_folded = batch_by_shape::are_folded_scores(node, batch);
            if are_folded {
                resize::set_dimension(node, 0, scale(node.dimensions[0]));
            }
            are_folded
        });
    }
}
