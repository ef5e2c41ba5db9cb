//! Arguments divided over devices: which of their dimensions, and which results are divided with them.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::base::Role;
use super::batch;
use super::edit::Arguments;
use super::memory::{Item, Owner};
use super::resize;
use super::state::State;
use crate::analysis::names::argument::holds_state;
use crate::model::FastSet;
use crate::model::NO_ROW;

/// Rows of results by the array they hold: (number of the array, row of the base).
type ByArray = BTreeSet<(u32, usize)>;

/// How arguments of one shape can be divided.
#[derive(Debug, Clone, Default)]
struct Division {
    /// Dimensions that can be divided, with the array that is left.
    dimensions: Vec<(usize, u32)>,
    /// The one that leaves least padding, the largest of equal ones.
    best: Option<usize>,
    /// The present array.
    array: u32,
}

/// What dividing shapes comes to, each worked out once.
struct Divisions {
    parts: i64,
    by_shape: HashMap<u32, Division, RandomState>,
    /// Shapes after a division, by shape and dimension.
    divided: HashMap<(u32, usize), Option<u32>, RandomState>,
    temporaries: Option<Temporaries>,
    /// Rows of arguments that earlier changes donate.
    donated: FastSet<u32>,
}

/// Items of the temporaries that may be divided with an argument.
#[derive(Debug, Default)]
struct Temporaries {
    /// Items of its copies, by row of the base.
    copies: HashMap<usize, Vec<usize>, RandomState>,
    /// Families that hold it or a part of it once devices have written theirs, by row of the base.
    own_memory: HashMap<usize, Vec<usize>, RandomState>,
    /// All items, by the outline of their shape in the dump.
    by_outline: HashMap<Vec<i64>, Vec<usize>, RandomState>,
}

impl State<'_> {
    /// Divides arguments over devices.
    pub(super) fn shard(&mut self, arguments: &Arguments, parts: i64) {
        self.kinds.sharding = true;
        if parts <= 1 {
            return;
        }
        let rows = self.arguments(arguments);
        let (data, others): (Vec<usize>, Vec<usize>) = rows
            .into_iter()
            .partition(|&row| self.memory.data_of(row).is_some_and(|d| d.parts == 1) && !self.is_state(row));
        if let Some(batch) = data.first().and_then(|&row| self.memory.data_of(row)) {
            let batch = batch.batch();
            if batch % parts == 0 {
                self.kinds.batch = true;
                self.scale_batch(batch, batch / parts);
            } else {
                self.warn(format!("a batch of {batch} cannot be divided by {parts}"));
            }
        }
        let mut undivided = 0usize;
        let mut results_follow = false;
        let mut lodgers = Vec::new();
        let mut is_weight = false;
        let mut results = self.results_by_array();
        let mut known = Divisions {
            parts,
            by_shape: HashMap::default(),
            divided: HashMap::default(),
            temporaries: None,
            donated: self.donated.iter().copied().collect(),
        };
        for row in others {
            let Some((dimension, follows)) = self.dimension_to_divide(row, &mut known, &mut results) else {
                undivided += 1;
                continue;
            };
            is_weight |= !self.is_state(row);
            self.divide_followers(row, dimension, &mut known);
            self.divide(row, dimension, &mut known);
            if let Some(result) = follows {
                results_follow = true;
                self.divide(result, dimension, &mut known);
                // What a loop collects into the argument's next value is divided as that is.
                lodgers.extend(if self.collects(row) {
                    self.memory.lodgers_unlike(result)
                } else {
                    self.memory.all_lodgers(result)
                });
            }
        }
        // What lives in a result's memory before the result may be divided with it, or stay whole.
        self.may_differ |= !lodgers.is_empty();
        if self.is_optimistic {
            for (size, ..) in &mut lodgers {
                *size /= u64::try_from(parts).unwrap_or(1);
            }
        }
        self.house(lodgers);
        if undivided > 0 {
            let (arguments, stay) = match undivided {
                1 => ("1 argument has".to_owned(), "stays"),
                many => (format!("{many} arguments have"), "stay"),
            };
            self.warn(format!("{arguments} no dimension divisible by {parts}, and {stay} replicated"));
        }
        if results_follow {
            self.warn("results of the same shape are assumed to be sharded in the same way".to_owned());
        }
        if is_weight {
            self.least_factor = self.least_factor.min(1.0 / parts as f64);
            if self.memory.data.iter().any(|d| d.parts == parts) {
                self.warn(format!(
                    "the batch is sharded {parts} ways too; if over the same mesh axis, activations may end up holding the global batch and the peak can triple. Constrain them with jax.lax.with_sharding_constraint"
                ));
            }
        }
    }

    /// Divides the copies of an argument with it. The gradient of a weight may be divided too, or stay whole.
    fn divide_followers(&mut self, row: usize, dimension: usize, known: &mut Divisions) {
        let shape = self.shape_of_row(row).and_then(|shape| self.shapes.get(shape));
        let Some(node) = shape.map(|known| known.node.clone()) else { return };
        let Some(&size) = node.dimensions.get(dimension) else { return };
        let own = batch::outline(&node.dimensions);
        let parts = known.parts;
        let divided = |node: &mut crate::model::ShapeNode| {
            let Some(at) = node.dimensions.iter().position(|&d| d == size) else { return false };
            resize::set_dimension(node, at, size / parts);
            true
        };
        let temporaries = known.temporaries.get_or_insert_with(|| self.temporaries_to_divide());
        // Each device writes its part of the argument in place once that is all it has, and nothing is gathered.
        let is_donated = matches!(self.base(row).role, Role::Argument { is_donated: true, .. });
        if is_donated || known.donated.contains(&(row as u32)) {
            self.drop_families(temporaries.own_memory.get(&row).map_or(&[][..], Vec::as_slice));
        }
        let copies = temporaries.copies.get(&row).map_or(&[][..], Vec::as_slice);
        self.change(copies.iter().copied(), divided);
        let is_trained = self.memory.trained.binary_search(&row).is_ok();
        let is_collected = !is_trained && self.collects(row);
        if !is_trained && !is_collected {
            return;
        }
        let Some(alike) = temporaries.by_outline.get_mut(&own) else { return };
        let copy_of = &self.followers().copy_of;
        let is_other = |item: usize| match self.memory.items[item].owner {
            Owner::Family(family) => copy_of[family as usize] != Some(row as u32),
            Owner::Base(_) => false,
        };
        if is_collected {
            alike.retain(|&item| !self.is_changed(item));
            let is_own = |item: usize| is_other(item) && self.is_collected(self.memory.items[item].owner);
            let others: Vec<usize> = alike.iter().copied().filter(|&item| is_own(item)).collect();
            self.change(others.into_iter(), divided);
            return;
        }
        if !self.is_optimistic {
            if self.may_differ {
                return;
            }
            self.may_differ = alike.iter().any(|&item| !self.is_changed(item) && is_other(item));
            if !self.may_differ {
                alike.retain(|&item| !self.is_changed(item));
            }
            return;
        }
        // What has been divided once is not looked at again.
        alike.retain(|&item| !self.is_changed(item));
        let others: Vec<usize> = alike.iter().copied().filter(|&item| is_other(item)).collect();
        self.may_differ |= !others.is_empty();
        self.change(others.into_iter(), divided);
    }

    /// Items of the temporaries, as dividing an argument asks for them.
    fn temporaries_to_divide(&self) -> Temporaries {
        let mut found = Temporaries::default();
        for item in self.items_of(|owner| matches!(owner, Owner::Family(_))) {
            let Item { owner: Owner::Family(family), buffer, .. } = self.memory.items[item] else { continue };
            if let Some(row) = self.followers().updated[family as usize] {
                found.own_memory.entry(row as usize).or_default().push(family as usize);
            }
            if let Some(row) = self.followers().copy_of[family as usize] {
                found.copies.entry(row as usize).or_default().push(item);
            }
            if let Some(node) = resize::node_of(self.program, buffer) {
                found.by_outline.entry(batch::outline(&node.dimensions)).or_default().push(item);
            }
        }
        found
    }

    /// Whether an argument is per-sample state rather than the sample itself.
    fn is_state(&self, row: usize) -> bool {
        match &self.base(row).role {
            Role::Argument { path, .. } => self.memory.is_data(row) && holds_state(path),
            _ => false,
        }
    }

    /// Row of the present shape of a row of the base.
    fn shape_of_row(&self, row: usize) -> Option<u32> {
        let shape = *self.shape_of.get(self.memory.item_of(row)?)?;
        (shape != NO_ROW).then_some(shape)
    }

    /// The dimension to shard, and the result to shard with it: the argument's own next value where it is known, else a
    /// result of the same shape that belongs to no other argument. A result that is sharded already says which
    /// dimension; otherwise it is the one that leaves least padding.
    fn dimension_to_divide(
        &mut self,
        row: usize,
        known: &mut Divisions,
        results: &mut ByArray,
    ) -> Option<(usize, Option<usize>)> {
        let shape = self.shape_of_row(row)?;
        let parts = known.parts;
        let division = known.by_shape.entry(shape).or_insert_with(|| self.division(shape, parts));
        if !matches!(self.memory.base[row].role, Role::Argument { is_donated: false, .. }) {
            return Some((division.best?, None));
        }
        let own = self.followers().next.get(row).copied().flatten().map(|own| own as usize);
        let first = |array: u32| results.range((array, 0)..).next().filter(|row| row.0 == array).map(|row| row.1);
        let found = |array: u32| match own {
            Some(own) => results.contains(&(array, own)).then_some(own),
            None => first(array),
        };
        let sharded = division.dimensions.iter().find_map(|&(d, array)| Some((d, (array, found(array)?))));
        if let Some((dimension, result)) = sharded {
            results.remove(&result);
            return Some((dimension, None));
        }
        let follows = found(division.array);
        if let Some(result) = follows {
            results.remove(&(division.array, result));
        }
        Some((division.best?, follows))
    }

    /// How arguments of a shape can be divided.
    fn division(&mut self, shape: u32, parts: i64) -> Division {
        let Some(known) = self.shapes.get(shape) else { return Division::default() };
        let (array, node) = (known.array, known.node.clone());
        let divisible = |d: &usize| node.dimensions[*d] % parts == 0 && node.dimensions[*d] > 0;
        let dimensions: Vec<usize> = (0..node.dimensions.len()).filter(divisible).collect();
        let best = dimensions.iter().copied().min_by_key(|&d| {
            let mut divided = node.clone();
            resize::set_dimension(&mut divided, d, node.dimensions[d] / parts);
            (divided.padded_size(), std::cmp::Reverse(node.dimensions[d]))
        });
        let without = |d: usize| {
            let mut divided = node.dimensions.clone();
            divided[d] /= parts;
            divided
        };
        let dimensions =
            dimensions.into_iter().map(|d| (d, self.shapes.array(node.element_type, without(d)))).collect();
        Division { dimensions, best, array }
    }

    /// Rows of the results, by the array they hold now.
    fn results_by_array(&self) -> ByArray {
        let array = |row: u32| Some((self.shapes.get(self.shape_of_row(row as usize)?)?.array, row as usize));
        self.memory.results.iter().filter_map(|&row| array(row)).collect()
    }

    /// Shards a dimension of a base row.
    fn divide(&mut self, row: usize, dimension: usize, known: &mut Divisions) {
        let Some(first) = self.memory.item_of(row) else { return };
        let own = self.memory.items[first..].iter().take_while(|item| item.owner == Owner::Base(row as u32)).count();
        for item in first..first + own {
            let shape = self.shape_of[item];
            let divided = *known.divided.entry((shape, dimension)).or_insert_with(|| {
                self.shapes.changed(shape, |node| {
                    let Some(&size) = node.dimensions.get(dimension) else { return false };
                    resize::set_dimension(node, dimension, size / known.parts);
                    true
                })
            });
            if let Some(divided) = divided {
                self.shape_of.to_mut()[item] = divided;
            }
        }
    }
}
