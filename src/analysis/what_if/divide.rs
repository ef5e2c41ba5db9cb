//! Arguments divided over devices: which of their dimensions, and which results are divided with them.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::base::Role;
use super::edit::Arguments;
use super::followers::Temporaries;
use super::memory::{Item, Owner};
use super::resize;
use super::state::State;
use crate::analysis::names::argument::holds_state;
use crate::analysis::once::once;
use crate::model::{NO_ROW, outline};

/// Bytes of a single number, as it is tiled.
const SCALAR: u64 = 1024;

/// Results by the array they hold, without those that follow an argument already.
struct Results {
    /// Number of the array, by row of the base; `NO_ROW` for what is no result, or is taken.
    array_of: Vec<u32>,
    /// Rows by array, by its number: ascending, and how many of them at the front are taken.
    rows_of: Vec<(Vec<u32>, usize)>,
}

impl Results {
    /// The first result that holds an array.
    fn first(&mut self, array: u32) -> Option<usize> {
        let (rows, taken) = self.rows_of.get_mut(array as usize)?;
        while rows.get(*taken).is_some_and(|&row| self.array_of[row as usize] != array) {
            *taken += 1;
        }
        rows.get(*taken).map(|&row| row as usize)
    }

    /// The result that holds an array and may follow an argument; `own` is the only one that may, where it is known.
    fn of(&mut self, array: u32, own: Option<usize>) -> Option<usize> {
        match own {
            Some(own) => (self.array_of.get(own) == Some(&array)).then_some(own),
            None => self.first(array),
        }
    }

    /// Lets a result follow an argument.
    fn take(&mut self, row: usize) {
        self.array_of[row] = NO_ROW;
    }
}

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

/// A dimension of an argument that is divided, as those see it that follow the argument.
#[derive(Debug, Clone, Copy)]
struct Divided {
    /// Its size.
    size: i64,
    /// The outline of the argument's shape: a row of [`Temporaries::by_outline`]; `None` where no temporary has it.
    outline: Option<u32>,
}

/// What dividing shapes comes to, each worked out once.
struct Divisions {
    parts: i64,
    by_shape: HashMap<u32, Division, RandomState>,
    /// Shapes after a division, by shape and dimension.
    divided: HashMap<(u32, usize), Option<u32>, RandomState>,
    /// What is divided, by shape and dimension.
    dimensions: HashMap<(u32, usize), Option<Divided>, RandomState>,
    /// Shapes after the first dimension of a size is divided, by shape and size.
    followed: HashMap<(u32, i64), Option<u32>, RandomState>,
    /// Items that have not been divided, by outline, of the outlines that were looked at.
    alike: HashMap<u32, Vec<u32>, RandomState>,
    /// Whether earlier changes donate an argument, by row of the base.
    donated: Vec<bool>,
}

impl<'a> State<'a> {
    /// Says of arguments that all devices divide already that there must be more devices for it.
    fn tell_divided_already(&mut self, rows: &[usize], parts: i64) {
        let devices = i64::from(self.program.devices());
        let parts_of = |row: usize| match self.base(row).role {
            Role::Argument { number, .. } => self.program.sharding_of_parameter(number).map_or(1, |own| own.parts()),
            _ => 1,
        };
        let largest = rows.iter().copied().max_by_key(|&row| self.base(row).size);
        if let Some(now) = largest.map(parts_of).filter(|&now| now > 1 && now.saturating_mul(parts) > devices) {
            self.warn(format!(
                "{} divided into {now} parts over {devices} devices already: {parts} times as many parts need {} devices",
                if rows.iter().all(|&row| parts_of(row) > 1) { "they are" } else { "the largest of them are" },
                now.saturating_mul(parts)
            ));
        }
    }

    /// Divides arguments over devices.
    pub(super) fn shard(&mut self, arguments: &Arguments, parts: i64) {
        self.kinds.sharding = true;
        if parts <= 1 {
            return;
        }
        let named = self.arguments(arguments);
        let (data, others): (Vec<usize>, Vec<usize>) = named
            .rows
            .iter()
            .map(|&row| row as usize)
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
        self.tell_divided_already(&others, parts);
        let mut undivided = 0usize;
        let mut results_follow = false;
        let mut lodgers = Vec::new();
        let (mut is_weight, mut is_read_by_layers) = (false, false);
        let mut results = self.results_by_array();
        let mut known = Divisions {
            parts,
            by_shape: HashMap::default(),
            divided: HashMap::default(),
            dimensions: HashMap::default(),
            followed: HashMap::default(),
            alike: HashMap::default(),
            donated: vec![false; self.memory.base.len()],
        };
        for &row in &self.donated {
            known.donated[row as usize] = true;
        }
        for row in others {
            let Some((dimension, follows)) = self.dimension_to_divide(row, &mut known, &mut results) else {
                // Nobody would divide a single number, such as a counter of steps.
                undivided += usize::from(self.base(row).size > SCALAR);
                continue;
            };
            is_weight |= !self.is_state(row);
            if self.memory.data.iter().any(|data| data.parts == parts) {
                self.divided_rows.push(row as u32);
            }
            // The optimizer's state is read by the update alone, and so are averages of weights.
            let memory = self.memory;
            let may_be_read = memory.trained.is_empty() || memory.roles[row].is_trained;
            is_read_by_layers |= may_be_read && !self.is_state(row) && !self.base(row).is_average_of_weights();
            if let Some(node) = self.program.buffer_node(self.base(row).buffer) {
                self.note_table(node, dimension, (parts, memory.roles[row].is_trained));
            }
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
            for own in &mut lodgers {
                own.block.size /= u64::try_from(parts).unwrap_or(1);
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
            if is_read_by_layers && self.memory.data.iter().any(|d| d.parts == parts) {
                self.divided_like_batch = Some(parts);
            }
        }
    }

    /// Divides the copies of an argument with it. The gradient of a weight may be divided too, or stay whole.
    fn divide_followers(&mut self, row: usize, dimension: usize, known: &mut Divisions) {
        let Some(shape) = self.shape_of_row(row) else { return };
        let temporaries = self.temporaries_to_divide();
        let Some(own) = *known.dimensions.entry((shape, dimension)).or_insert_with(|| {
            let node = &self.shapes.get(shape)?.node;
            let outline = temporaries.outlines.get(&outline(&node.dimensions)).copied();
            Some(Divided { size: *node.dimensions.get(dimension)?, outline })
        }) else {
            return;
        };
        // Each device writes its part of the argument in place once that is all it has, and nothing is gathered.
        let role = self.memory.roles[row];
        if role.is_donated || known.donated[row] {
            self.drop_families(temporaries.own_memory.get(&(row as u32)).map_or(&[][..], Vec::as_slice));
        }
        for &item in temporaries.copies.get(&(row as u32)).into_iter().flatten() {
            self.follow(item as usize, own.size, known);
        }
        let is_collected = !role.is_trained && self.collects(row);
        if !role.is_trained && !is_collected {
            return;
        }
        if !is_collected && !self.is_optimistic && self.may_differ {
            return;
        }
        let Some(outline) = own.outline else { return };
        let mut alike =
            known.alike.remove(&outline).unwrap_or_else(|| temporaries.by_outline[outline as usize].clone());
        let (memory, copy_of) = (self.memory, &self.followers().copy_of);
        let is_other = |item: u32| match memory.items[item as usize].owner {
            Owner::Family(family) => copy_of[family as usize] != Some(row as u32),
            Owner::Base(_) => false,
        };
        if !is_collected && !self.is_optimistic {
            self.may_differ = alike.iter().any(|&item| !self.is_changed(item as usize) && is_other(item));
        }
        // What has been divided once is not looked at again.
        alike.retain(|&item| !self.is_changed(item as usize));
        if is_collected || self.is_optimistic {
            let is_meant =
                |item: u32| is_other(item) && (!is_collected || self.is_collected(memory.items[item as usize].owner));
            let others: Vec<u32> = alike.iter().copied().filter(|&item| is_meant(item)).collect();
            self.may_differ |= !is_collected && !others.is_empty();
            for item in others {
                self.follow(item as usize, own.size, known);
            }
        }
        known.alike.insert(outline, alike);
    }

    /// Divides the first dimension of a size of an item.
    fn follow(&mut self, item: usize, size: i64, known: &mut Divisions) {
        let shape = self.shape_of[item];
        let divided = *known.followed.entry((shape, size)).or_insert_with(|| {
            self.shapes.changed(shape, |node| {
                let Some(at) = node.dimensions.iter().position(|&d| d == size) else { return false };
                resize::set_dimension(node, at, size / known.parts);
                true
            })
        });
        if let Some(divided) = divided {
            self.shape_of.to_mut()[item] = divided;
        }
    }

    /// Items of the temporaries, as dividing an argument asks for them.
    fn temporaries_to_divide(&self) -> &'a Temporaries {
        let memory = self.memory;
        once(&memory.to_divide, || {
            let mut found = Temporaries::default();
            let mut outline_of: Vec<Option<u32>> = vec![None; memory.shapes.len()];
            for (item, &Item { owner, .. }) in memory.items.iter().enumerate() {
                let Owner::Family(family) = owner else { continue };
                if let Some(row) = self.followers().updated[family as usize] {
                    found.own_memory.entry(row).or_default().push(family as usize);
                }
                if let Some(row) = self.followers().copy_of[family as usize] {
                    found.copies.entry(row).or_default().push(item as u32);
                }
                let shape = memory.shape_of[item];
                let Some(known) = memory.shapes.get(shape) else { continue };
                let outline = *outline_of[shape as usize].get_or_insert_with(|| {
                    let next = found.outlines.len() as u32;
                    *found.outlines.entry(outline(&known.node.dimensions)).or_insert(next)
                });
                let row = outline as usize;
                if row >= found.by_outline.len() {
                    found.by_outline.resize(row + 1, Vec::new());
                }
                found.by_outline[row].push(item as u32);
            }
            found
        })
    }

    /// Whether an argument is per-sample state rather than the sample itself.
    fn is_state(&self, row: usize) -> bool {
        self.memory.is_data(row)
            && matches!(&self.base(row).role, super::Role::Argument { path, .. } if holds_state(path))
    }

    /// Of how many devices the temporaries may be where nothing keeps activations divided, though weights are divided as
    /// the batch is: five programs took 2.7 to 6.6 times as much on 8 devices.
    pub(super) fn unconstrained(&self) -> Option<u64> {
        let is_meant = !self.kinds.constrain && self.memory.has_backward();
        u64::try_from(self.divided_like_batch.filter(|_| is_meant)?).ok()
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
        results: &mut Results,
    ) -> Option<(usize, Option<usize>)> {
        let shape = self.shape_of_row(row)?;
        let parts = known.parts;
        let division = known.by_shape.entry(shape).or_insert_with(|| self.division(shape, parts));
        let role = self.memory.roles[row];
        if !role.is_argument || role.is_donated {
            return Some((division.best?, None));
        }
        let own = self.followers().next.get(row).copied().flatten().map(|own| own as usize);
        let sharded = division.dimensions.iter().find_map(|&(d, array)| Some((d, results.of(array, own)?)));
        if let Some((dimension, result)) = sharded {
            results.take(result);
            return Some((dimension, None));
        }
        let follows = results.of(division.array, own);
        if let Some(result) = follows {
            results.take(result);
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

    /// The results by the array they hold now.
    fn results_by_array(&self) -> Results {
        let mut results = Results { array_of: vec![NO_ROW; self.memory.base.len()], rows_of: Vec::new() };
        for &row in &self.memory.results_by_row {
            if let Some(known) = self.shape_of_row(row as usize).and_then(|shape| self.shapes.get(shape)) {
                let array = known.array as usize;
                results.array_of[row as usize] = known.array;
                if array >= results.rows_of.len() {
                    results.rows_of.resize(array + 1, (Vec::new(), 0));
                }
                results.rows_of[array].0.push(row);
            }
        }
        results
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
