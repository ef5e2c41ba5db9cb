//! The memory of a program with edits applied one after the other: sizes, live ranges, and reuse of memory.

use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;

use super::added::Added;
use super::base::{Base, Role};
use super::edit::{Arguments, Edit};
use super::lodgers::Lent;
use super::memory::{Item, Memory, Owner};
use super::named::{ArgumentRows, NamedBy, class_named};
use super::resize;
use super::saved_for_backward::{ScanSegments, is_among};
use super::shapes::{Changed, Known};
use crate::analysis::class::Class;
use crate::analysis::packing::Block;
use crate::model::{BufferId, Bytes, ElementType, FastMap, Program, ShapeNode};

/// Kinds of change that were applied, each with its own expected error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds {
    /// An argument was donated.
    pub donation: bool,
    /// A dimension was changed.
    pub dimension: bool,
    /// The element type of arguments or of everything was changed.
    pub dtype: bool,
    /// The element type of temporaries was changed.
    pub compute: bool,
    /// The batch was scaled.
    pub batch: bool,
    /// Arguments were sharded.
    pub sharding: bool,
    /// Temporaries were sharded over devices.
    pub constrain: bool,
    /// A scope was recomputed in the backward pass.
    pub remat: bool,
    /// Something was computed in parts.
    pub parts: bool,
    /// A buffer was dropped or freed by hand, which is exact.
    pub by_hand: bool,
}

/// The memory after some changes.
#[derive(Debug)]
pub struct State<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory,
    /// Every shape there is, changed ones too.
    pub(super) shapes: Changed<'a>,
    /// Row of the present shape, by item.
    pub(super) shape_of: Cow<'a, [u32]>,
    /// Whether each base allocation has been removed.
    pub(super) gone: Vec<bool>,
    /// Whether each family was dropped.
    pub(super) dropped: Vec<bool>,
    /// First and last time by family.
    pub(super) spans: Cow<'a, [(u32, u32)]>,
    /// When the layer of each family, where it is checkpointed, is computed again; empty if none is.
    pub(super) checkpointed: Vec<Option<u32>>,
    /// Whether each family holds scores that are computed block by block; empty if none does.
    pub(super) in_blocks: Vec<bool>,
    /// Second live ranges of families that are computed twice.
    pub(super) again: Vec<(u32, u32, u32)>,
    /// Blocks that the unchanged program does not have: bytes, first and last time, and the family they come from.
    pub(super) added: Vec<(u64, u32, u32, u32)>,
    /// The same of the sums of all gradients, over the parts of a batch.
    pub(super) sums_of_gradients: Option<(u64, u32, u32, u32)>,
    /// The same of what is computed again, with the bytes that it takes if nothing else changes.
    pub(super) made_again: Vec<(u64, u32, u32, u32)>,
    /// Families of stacks that scans save now and whose steps compute them again: family, steps, and when the backward
    /// pass begins to.
    pub(super) again_in_scans: Vec<(u32, i64, u32)>,
    /// Of a scan that is divided into segments, these.
    pub(super) scan_segments: Option<ScanSegments>,
    /// What block-wise attention may keep.
    pub(super) sums: Vec<RowSums>,
    /// Rows of arguments that are donated.
    pub(super) donated: Vec<u32>,
    /// Pairs of argument and result that share memory by these changes.
    pub pairs: Vec<(u32, u32)>,
    /// Caveats, one sentence each.
    pub warnings: Vec<String>,
    /// Why the outcome cannot be told, if it cannot.
    pub undecided: Option<String>,
    /// Whether a change names nothing that is in the program.
    pub names_nothing: bool,
    /// Changes that name nothing and are left out beside others, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Whether to take what the compiler may do besides in the best case: see [`Self::may_differ`].
    pub(super) is_optimistic: bool,
    /// Whether the best case differs from the expected one.
    pub(super) may_differ: bool,
    /// Whether to take what may stay or be kept in the worst case: see [`Self::may_stay`].
    pub(super) is_cautious: bool,
    /// Whether the worst case differs from the expected one: the compiler may leave the batch in the lanes, though it no
    /// longer fills them, block-wise attention may keep more than it has to, and a loss may stay in 32 bits.
    pub(super) may_stay: bool,
    /// Whether the program is taken to be in the order in which the compiler runs one that fits.
    pub(super) is_ordered: bool,
    /// Bytes that lose their memory to a donated argument, in a program without a heap.
    pub(super) homeless: u64,
    /// Copies that lived in the memory of a result and are lent that of a donated argument.
    pub(super) lent: Vec<Lent>,
    /// The largest temporary that lived in the memory of a result and gets memory of its own.
    pub(super) largest_housed: u64,
    /// Bytes counted above and below what is expected to be recomputed at once.
    pub(super) fused: u64,
    /// Whether heads are divided where activations are divided along their width, whatever weights show.
    pub(super) divides_heads: bool,
    /// Bytes that may be of the part of the layers that is checkpointed, by their size alone.
    pub(super) may_be_of_part: u64,
    /// Whether each device is left one sample of several.
    pub(super) to_one_sample: bool,
    /// Into how many parts weights are divided, if that is how many the batch has: without constraints, activations may
    /// end up holding the batch of all devices.
    pub(super) divided_like_batch: Option<i64>,
    /// Rows of the base that changes divide over the devices of the batch.
    pub(super) divided_rows: Vec<u32>,
    /// How many times what gradients of weights are made from is live, as these are put off: see [`super::put_off`].
    pub(super) puts_off: Option<f64>,
    /// Into how many parts a table of words is divided along its width: see [`super::by_width`].
    pub(super) by_width: Option<i64>,
    /// Into how many parts the optimizer's state of such a table is.
    pub(super) tables_by_width: Option<i64>,
    /// Kinds of change applied so far.
    pub kinds: Kinds,
    /// Smallest factor by which temporaries might still shrink.
    pub least_factor: f64,
    /// Whether micro-batches that were written out run in a loop.
    pub(super) is_rolled_up: bool,
    in_place: bool,
    /// Sizes of dimensions that are merged with their neighbours.
    merged: Vec<i64>,
}

/// What block-wise attention may keep of the scores of a layer for its backward pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSums {
    /// The family of scores of which it is kept.
    pub family: u32,
    /// First and last time.
    pub life: (u32, u32),
    /// Whether the operands of the layer's kernel are counted with it.
    pub has_operands: bool,
}

/// Sizes and blocks after the changes.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    /// Bytes by row of the base; 0 if it now shares another row's memory.
    pub base: Vec<u64>,
    /// Blocks to pack.
    pub blocks: Vec<Block>,
    /// Family of each block.
    pub family: Vec<u32>,
    /// What the blocks behind those of the families are, which are added.
    pub added: Vec<Added>,
}

impl Sizes {
    /// The families of blocks that are live at a time, with their bytes.
    pub fn live_at(&self, at: u32) -> impl Iterator<Item = (u32, Bytes)> + '_ {
        let live =
            self.blocks.iter().zip(&self.family).filter(move |(block, _)| (block.start..=block.end).contains(&at));
        live.map(|(block, &family)| (family, Bytes(block.size)))
    }
}

/// Most names listed where a change names nothing.
const MOST_NAMES: usize = 8;

impl<'a> State<'a> {
    /// The unchanged memory.
    pub fn new(program: &'a Program, memory: &'a Memory) -> Self {
        Self {
            program,
            memory,
            shapes: Changed::new(&memory.shapes),
            shape_of: Cow::Borrowed(&memory.shape_of),
            gone: vec![false; memory.base.len()],
            dropped: vec![false; memory.families.list.len()],
            spans: Cow::Borrowed(&memory.spans),
            checkpointed: Vec::new(),
            in_blocks: Vec::new(),
            again: Vec::new(),
            added: Vec::new(),
            sums_of_gradients: None,
            made_again: Vec::new(),
            again_in_scans: Vec::new(),
            scan_segments: None,
            sums: Vec::new(),
            donated: Vec::new(),
            pairs: Vec::new(),
            warnings: Vec::new(),
            undecided: None,
            names_nothing: false,
            left_out: Vec::new(),
            is_optimistic: false,
            may_differ: false,
            is_cautious: false,
            may_stay: false,
            is_ordered: !memory.is_over(),
            homeless: 0,
            lent: Vec::new(),
            largest_housed: 0,
            fused: 0,
            may_be_of_part: 0,
            divides_heads: false,
            to_one_sample: false,
            divided_like_batch: None,
            divided_rows: Vec::new(),
            puts_off: None,
            by_width: None,
            tables_by_width: None,
            kinds: Kinds::default(),
            least_factor: 1.0,
            is_rolled_up: false,
            in_place: false,
            merged: Vec::new(),
        }
    }

    /// The memory after some changes.
    pub fn changed(program: &'a Program, memory: &'a Memory, edits: &[Edit]) -> Self {
        Self::changed_if(program, memory, edits, |_| {})
    }

    /// As [`Self::changed`], where something is assumed before.
    pub fn changed_if(
        program: &'a Program,
        memory: &'a Memory,
        edits: &[Edit],
        assume: impl FnOnce(&mut Self),
    ) -> Self {
        let mut state = Self::new(program, memory);
        assume(&mut state);
        state.apply_all(edits);
        state
    }

    /// Applies changes one after the other. One that names nothing in the program changes nothing: beside others it is
    /// left out, with a warning, so that it does not take the prediction from them.
    pub fn apply_all(&mut self, edits: &[Edit]) {
        let mut left_out: Vec<(&Edit, String)> = Vec::new();
        let mut names_nothing = self.names_nothing;
        for edit in edits {
            let is_decided = self.undecided.is_none();
            self.names_nothing = false;
            self.apply(edit);
            if self.names_nothing
                && is_decided
                && let Some(why) = self.undecided.take()
            {
                left_out.push((edit, why));
            }
            names_nothing |= self.names_nothing;
        }
        self.names_nothing = names_nothing;
        if left_out.len() == edits.len() {
            self.undecided = self.undecided.take().or_else(|| left_out.into_iter().next().map(|(_, why)| why));
        } else {
            for (edit, why) in left_out {
                self.warn(format!("`{edit}` is left out: {why}"));
                self.left_out.push((edit.to_string(), why));
            }
        }
    }

    /// Removes families.
    pub fn drop_families(&mut self, families: &[usize]) {
        for &family in families {
            if let Some(dropped) = self.dropped.get_mut(family) {
                *dropped = true;
            }
        }
    }

    /// Applies a change.
    fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Donate(arguments) => self.donate(arguments),
            Edit::Dtype(arguments, ty) => self.dtype(arguments, *ty),
            Edit::Compute(ty) => self.compute(*ty),
            Edit::Dim(from, to) => self.dimension(*from, *to),
            Edit::Unpad(size) => self.unpad_dimension(*size),
            Edit::Batch(factor) => self.batch(*factor),
            Edit::Shard(arguments, parts) => self.shard(arguments, i64::from(*parts)),
            Edit::Constrain(parts) => self.constrain(i64::from(*parts)),
            Edit::Micro(parts) => self.micro(*parts),
            Edit::Remat(scope) => self.remat(scope),
            Edit::Chunk(scope, parts) => self.chunk(scope, i64::from(*parts)),
            Edit::Blockwise(scope) => self.blockwise(scope),
            Edit::Drop(buffer) => self.drop(*buffer),
            Edit::Free(buffer, point) => self.free(*buffer, *point),
        }
    }

    pub(super) fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// Gives no prediction, for a reason in words; the first one counts.
    pub(super) fn decline(&mut self, why: String) {
        self.undecided.get_or_insert(why);
    }

    /// Gives no prediction, because a change names nothing that is in the program; with what there is, most names
    /// left out.
    pub(super) fn find_nothing(&mut self, what: &str, there_are: impl Iterator<Item = String>) {
        self.names_nothing = true;
        let names: std::collections::BTreeSet<String> = there_are.filter(|name| !name.is_empty()).collect();
        let listed: Vec<&str> = names.iter().map(String::as_str).take(MOST_NAMES).collect();
        let more = names.len().saturating_sub(MOST_NAMES);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let verb = if names.len() == 1 { "is" } else { "are" };
        self.decline(if listed.is_empty() {
            what.to_owned()
        } else {
            format!("{what}; there {verb} {}{rest}", listed.join(", "))
        });
    }

    pub(super) fn base(&self, row: usize) -> &'a Base {
        &self.memory.base[row]
    }

    /// Present shape of an item.
    pub(super) fn shape(&self, item: usize) -> Option<&Known> {
        self.shapes.get(*self.shape_of.get(item)?)
    }

    /// Whether changes made another shape of an item.
    pub(super) fn is_changed(&self, item: usize) -> bool {
        self.shape_of.get(item) != self.memory.shape_of.get(item)
    }

    /// Changes the shapes of some items, all in one way, which is asked once for each shape; returns how many changed.
    pub(super) fn change(
        &mut self,
        items: impl Iterator<Item = usize>,
        mut how: impl FnMut(&mut ShapeNode) -> bool,
    ) -> usize {
        self.change_by(items.map(|item| (item, ())), |node, ()| how(node))
    }

    /// As [`Self::change`], where something besides tells items of one shape apart: it is asked once for each shape with
    /// each of these.
    pub(super) fn change_by<K: Copy + Eq + Hash>(
        &mut self,
        items: impl Iterator<Item = (usize, K)>,
        mut how: impl FnMut(&mut ShapeNode, K) -> bool,
    ) -> usize {
        let mut known: FastMap<(u32, K), Option<u32>> = FastMap::default();
        let mut count = 0;
        for (item, own) in items {
            let row = self.shape_of[item];
            let shapes = &mut self.shapes;
            let changed = *known.entry((row, own)).or_insert_with(|| shapes.changed(row, |node| how(node, own)));
            if let Some(changed) = changed {
                self.shape_of.to_mut()[item] = changed;
                count += 1;
            }
        }
        count
    }

    /// Items of the base rows that a test accepts.
    pub(super) fn items_of<F: Fn(Owner) -> bool>(&self, accept: F) -> impl Iterator<Item = usize> + use<'a, F> {
        let items: &'a [Item] = &self.memory.items;
        (0..items.len()).filter(move |&i| accept(items[i].owner))
    }

    /// Rows of the arguments named; gives no prediction if a name matches none.
    pub(super) fn arguments(&mut self, arguments: &Arguments) -> Arc<ArgumentRows> {
        let memory = self.memory;
        let named = memory.named_arguments.value(arguments, || {
            let rows = |accept: &dyn Fn(&str) -> bool| -> Vec<u32> {
                memory.arguments(accept).map(|row| row as u32).collect()
            };
            let is_known = |start: &str| memory.arguments(|path| path.starts_with(start)).next().is_some();
            let unknown = arguments.0.iter().find(|start| start.as_str() != "*" && !is_known(start)).cloned();
            let by_path = rows(&|path| arguments.include(path));
            if !by_path.is_empty() {
                return ArgumentRows { rows: by_path, unknown, by: NamedBy::Path };
            }
            let by_key = rows(&|path| arguments.name_by_key(path));
            if !by_key.is_empty() {
                return ArgumentRows { rows: by_key, unknown, by: NamedBy::Key };
            }
            let classes: Vec<Class> = arguments.0.iter().filter_map(|word| class_named(word)).collect();
            let is_of = |row: &u32| {
                let role = memory.roles.get(*row as usize);
                role.is_some_and(|role| role.is_argument && classes.contains(&role.class))
            };
            let by_class = (0..memory.base.len() as u32).filter(is_of).collect();
            ArgumentRows { rows: by_class, unknown, by: NamedBy::Class }
        });
        let rows = &named.rows;
        let path = |row: &u32| match &memory.base[*row as usize].role {
            Role::Argument { path, .. } => path.as_str(),
            _ => "",
        };
        let first = rows.first().map(path).unwrap_or_default();
        let more = if rows.len() > 1 { format!(" and {} more", rows.len() - 1) } else { String::new() };
        match (named.by, named.unknown.as_ref()) {
            (NamedBy::Key, _) => {
                self.warn(format!("no argument begins with {arguments}, which is taken for a key: {first}{more}"));
            }
            (NamedBy::Class, _) if !rows.is_empty() => {
                self.warn(format!("no argument begins with {arguments}, which is taken for a class: {first}{more}"));
            }
            (NamedBy::Path, Some(start)) => self.warn(format!("no argument begins with {start}")),
            _ if !rows.is_empty() => {}
            _ if arguments.is_all() => self.warn("the program has no arguments".to_owned()),
            _ => {
                let all = self.memory.base.iter().filter_map(|base| match &base.role {
                    Role::Argument { path, .. } => Some(path.split(['[', '.']).next().unwrap_or_default().to_owned()),
                    _ => None,
                });
                self.find_nothing(&format!("no argument begins with {arguments}"), all);
            }
        }
        named
    }

    fn donate(&mut self, arguments: &Arguments) {
        self.kinds.donation = true;
        let memory = self.memory;
        let named = self.arguments(arguments);
        let is_kept = |row: &u32| !memory.roles[*row as usize].is_donated;
        self.donated.extend(named.rows.iter().filter(|row| is_kept(row)));
    }

    fn dtype(&mut self, arguments: &Arguments, ty: ElementType) {
        self.kinds.dtype = true;
        if arguments.is_all() {
            self.decline_small_convolutions();
            self.in_place = true;
            let kept = self.wide_scores();
            let memory = self.memory;
            let stays = move |row: usize| is_among(&kept, row) || memory.is_transform(row);
            let items = self.items_of(move |owner| !matches!(owner, Owner::Family(row) if stays(row as usize)));
            self.change(items, |node| resize::set_meant_type(node, ty));
            return;
        }
        let mut is_meant = vec![false; self.memory.base.len()];
        for &row in &self.arguments(arguments).rows {
            is_meant[row as usize] = true;
        }
        let arguments = is_meant.clone();
        self.with_next_values(&mut is_meant);
        self.copies_in(&arguments, ty);
        self.collected_in(&arguments, ty);
        let items = self.items_of(|owner| matches!(owner, Owner::Base(row) if is_meant[row as usize]));
        self.change(items, |node| {
            // Floats may be quantised to integers, but integers are never converted to floats.
            let meant = node.element_type.is_float() || !ty.is_float();
            resize::set_type(node, if meant { ty } else { node.element_type });
            meant
        });
    }

    /// Families of scores that stay in 32 bits, except in the best case.
    fn wide_scores(&mut self) -> Vec<u32> {
        let wide = self.memory.wide_scores(self.program);
        self.may_differ |= !wide.is_empty();
        if self.is_optimistic { Vec::new() } else { wide }
    }

    fn compute(&mut self, ty: ElementType) {
        self.kinds.compute = true;
        if ty.is_narrow_float() && self.memory.casts_to_16_bits(self.program) {
            self.decline("the program computes in 16 bits already: what is in 32 bits besides, such as a softmax, a loss or a norm, is so on purpose".to_owned());
            return;
        }
        self.decline_small_convolutions();
        let scores = self.wide_scores();
        // A loss is often computed in 32 bits, whatever the type of the rest.
        let logits = &self.memory.kept.logits;
        self.may_stay |= !logits.is_empty();
        let is_cautious = self.is_cautious;
        let memory = self.memory;
        // A network may compute in another type than the simulation that it steers.
        let (program, state) = (self.program, memory.wide_state(self.program));
        let is_state = move |row: usize| {
            memory.node_of_family(program, row as u32).is_some_and(|node| Memory::is_like_state(&state, node))
        };
        let stays = move |row: usize| {
            is_among(&scores, row)
                || (is_cautious && is_among(logits, row))
                || memory.is_transform(row)
                || memory.is_gathered_update(program, row)
                || is_state(row)
        };
        let items = self.items_of(move |owner| matches!(owner, Owner::Family(row) if !stays(row as usize)));
        self.change(items, |node| resize::set_meant_type(node, ty));
    }

    fn unpad_dimension(&mut self, size: i64) {
        self.kinds.dimension = true;
        let mut rows = self.shape_of.to_vec();
        rows.sort_unstable();
        rows.dedup();
        let is_padded = |row: u32| self.shapes.get(row).is_some_and(|known| resize::is_padded_by(&known.node, size));
        if !rows.into_iter().any(is_padded) {
            self.warn(format!("no buffer is padded because of a dimension of {size}"));
        }
        self.merged.push(size);
    }

    fn constrain(&mut self, parts: i64) {
        self.kinds.constrain = true;
        let memory = self.memory;
        let mut changed = 0;
        if let Some(whole) = memory.global_batch(self.program) {
            let items = self.items_of(|owner| matches!(owner, Owner::Family(_)));
            let with_flow = items.map(|item| (item, memory.told_by_flow(self.program, item)));
            changed = self.change_by(with_flow, |node, flow| {
                let Some(at) = whole.dimension(node, flow) else { return false };
                let size = node.dimensions[at];
                if size % parts == 0 {
                    resize::set_dimension(node, at, size / parts);
                }
                size % parts == 0
            });
        }
        if changed == 0 && self.divided_like_batch.is_none() {
            let is_sharded = memory.data.iter().any(|data| data.parts > 1);
            let why = if is_sharded {
                "no temporary holds the batch of all devices"
            } else {
                "no argument's batch is sharded over devices"
            };
            self.warn(format!("sharding activations {parts} ways changes nothing here: {why}"));
        }
    }

    fn find(&mut self, number: i64) -> Option<BufferId> {
        let row = self.program.buffers.number.iter().position(|&n| n == number);
        if row.is_none() {
            self.warn(format!("there is no buffer {number}"));
        }
        row.map(BufferId::from_index)
    }

    fn drop(&mut self, number: i64) {
        self.kinds.by_hand = true;
        let Some(buffer) = self.find(number) else { return };
        if let Some(family) = self.memory.families.of(buffer) {
            self.dropped[family] = true;
        } else if let Some(row) = self.row_of(buffer) {
            self.gone[row] = true;
        } else {
            self.warn(format!("buffer {number} has no memory of its own here"));
        }
    }

    fn row_of(&self, buffer: BufferId) -> Option<usize> {
        let allocation = self.program.buffers.allocation_of(buffer)?;
        self.memory.base.iter().position(|base| base.allocation == allocation)
    }

    fn free(&mut self, number: i64, point: u32) {
        self.kinds.by_hand = true;
        let Some(buffer) = self.find(number) else { return };
        let Some(family) = self.memory.families.of(buffer) else {
            self.warn(format!("buffer {number} has no heap events; it cannot be freed earlier"));
            return;
        };
        let event = if self.memory.points.is_empty() {
            point
        } else {
            (self.memory.points.partition_point(|&p| p <= point) as u32).saturating_sub(1)
        };
        let (first, last) = self.spans[family];
        self.spans.to_mut()[family].1 = (2 * event).clamp(first, last.max(first));
    }

    /// Bytes by row of the base, and by family.
    fn sizes(&self) -> (Vec<u64>, Vec<u64>) {
        let memory = self.memory;
        if self.merged.is_empty() && matches!(self.shape_of, Cow::Borrowed(_)) {
            return (memory.base_bytes.clone(), memory.family_bytes.clone());
        }
        // Bytes of the shapes that are merged with their neighbours.
        let in_rows = |row: u32| {
            let node = &self.shapes.get(row)?.node;
            self.merged.iter().any(|&size| resize::is_padded_by(node, size)).then(|| resize::size_in_rows(node))
        };
        let merged: Vec<Option<u64>> =
            if self.merged.is_empty() { Vec::new() } else { (0..self.shapes.len() as u32).map(in_rows).collect() };
        let padded = |row: u32| self.shapes.get(row).and_then(|known| known.padded);
        let rows = memory.shape_of.iter().zip(self.shape_of.iter());
        // Items with their bytes before and after.
        let mut items = memory.items.iter().zip(&memory.item_bytes).zip(rows).map(|((item, &present), rows)| {
            let (&before, &after) = rows;
            let resized =
                if before == after { present } else { resize::resized(present, padded(before), padded(after)) };
            let bytes = merged.get(after as usize).copied().flatten().map_or(resized, |rows| rows.min(resized));
            (item.owner, present, bytes)
        });
        // The items of the base are before those of the families, and each row's and each family's are together.
        let mut base = memory.base_bytes.clone();
        let mut families = vec![0u64; memory.family_bytes.len()];
        let mut open: Option<(u32, u64, u64)> = None;
        let mut close = |row: u32, before: u64, after: u64| {
            let size = &mut base[row as usize];
            if before == *size {
                *size = after;
            } else if before > 0 {
                *size = u64::try_from(u128::from(*size) * u128::from(after) / u128::from(before)).unwrap_or(u64::MAX);
            }
        };
        for (owner, before, after) in &mut items {
            match (owner, &mut open) {
                (Owner::Base(row), Some(largest)) if largest.0 == row => {
                    *largest = (row, largest.1.max(before), largest.2.max(after));
                }
                (Owner::Base(row), open) => {
                    if let Some((row, before, after)) = open.replace((row, before, after)) {
                        close(row, before, after);
                    }
                }
                (Owner::Family(row), _) => {
                    let size = &mut families[row as usize];
                    *size = after.max(*size);
                }
            }
        }
        if let Some((row, before, after)) = open {
            close(row, before, after);
        }
        (base, families)
    }

    /// Finishes: pairs donated arguments, lets results reuse memory, and returns what is left to pack.
    pub fn finish(&mut self) -> Sizes {
        let (mut base, mut families) = self.sizes();
        self.hold_global_batch(&mut families);
        self.pair(&base);
        for (size, gone) in base.iter_mut().zip(&self.gone) {
            if *gone {
                *size = 0;
            }
        }
        // What recomputation adds changes in size as what it stands for.
        let made_again: Vec<(u64, u32, u32, u32)> = self
            .made_again
            .iter()
            .map(|&(size, start, end, row)| {
                let (now, before) = (families[row as usize], self.memory.families.list[row as usize].size.max(1));
                let scaled = u128::from(size) * u128::from(now) / u128::from(before);
                (u64::try_from(scaled).unwrap_or(u64::MAX), start, end, row)
            })
            .collect();
        for (size, dropped) in families.iter_mut().zip(&self.dropped) {
            if *dropped {
                *size = 0;
            }
        }
        if self.in_place {
            self.share_in_place(&families);
        }
        let mut blocks: Vec<Block> =
            families.iter().zip(self.spans.iter()).map(|(&size, &(start, end))| Block { size, start, end }).collect();
        let mut family: Vec<u32> = (0..blocks.len() as u32).collect();
        let block = |&(size, start, end, row): &(u64, u32, u32, u32)| (Block { size, start, end }, row);
        let again = self.again.iter().map(|&(row, start, end)| block(&(families[row as usize], start, end, row)));
        let more = [
            (Added::Buffer, again.collect()),
            (Added::Buffer, self.added.iter().map(block).collect()),
            (Added::Sums, self.sums_of_gradients.iter().map(block).collect()),
            (Added::Recomputation, made_again.iter().map(block).collect::<Vec<_>>()),
            (Added::Rows, self.blocks_of_sums()),
            (Added::RandomBits, self.blocks_of_random_bits()),
        ];
        let mut added: Vec<Added> = Vec::new();
        for (kind, rows) in more {
            added.extend(rows.iter().map(|_| kind));
            family.extend(rows.iter().map(|row| row.1));
            blocks.extend(rows.iter().map(|row| row.0));
        }
        Sizes { base, blocks, family, added }
    }
}
