//! Gradients of weights that the compiler puts off until the backward pass is through, where layers that are no scan are
//! checkpointed: it then sums them over the devices while it computes other gradients. What every layer computes again for
//! them, and the gradients of its values, are live at once.
//!
//! Found with libtpu 0.0.52 and a decoder of 6 to 12 layers on 8 devices, compiled for five generations. Where every device
//! has all of the training state, no gradient was put off but for v7x: there on 8 and 16 devices, though not on 4, twelve
//! programs of three libraries took 1.05 to 2.5 times what is expected without. Where weights are divided over the devices
//! of the batch (FSDP) they were for v4, v5p and v6e, in part for v7x and not for v5e; where only the optimizer's state is (ZeRO), for v5e
//! and v7x and not for the others. Of 16 programs of eight libraries that are divided so, 11 put gradients off as this says
//! and three do not, as this says; two for v5e took up to 1.3 times what is expected without.

use super::base::Role;
use super::batch::DataArgument;
use super::global_batch::BatchDevices;
use super::memory::Memory;
use super::segments::{Segment, Segments};
use super::state::State;
use crate::analysis::flow::collective::holds_gathered;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::model::{BufferId, Bytes, FastMap, FastSet, Program, ShapeNode, outline};

/// What of the training state is divided over the devices of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Divided {
    /// Most of the weights.
    Weights,
    /// The optimizer's state, but not the weights.
    State,
    /// Nothing: every device has all of it.
    Nothing,
}

/// Features that a layer's weights make of each of its input's at most: more are those of experts.
const WIDEST_LAYER: f64 = 16.0;

/// Inputs and outputs as wide as the layer's input that attention and feed-forward have beside: their inputs and the
/// gradients of what they add.
const OF_MODULES: f64 = 4.0;

/// Part of the largest array of a layer's width below which others hold no sample's features.
const SMALL: u64 = 8;

/// Part of the most frequent type's arrays from which on another type is frequent, too.
const OFTEN: u64 = 16;

/// What is said where it is not known whether gradients of adapters are put off.
pub(super) const OF_ADAPTERS: &str = "the layers are not a scan, and the weights beside the adapters are divided over the devices of the batch: of 2 such programs that were really changed like this, one needed what is expected, the other 1.6 times as much, as the gradients of its adapters waited for the end of the backward pass";

/// How many times what gradients of weights are made from is live at once: 0.55 to 1 times in 11 real programs with divided
/// weights; where only the state is divided, 1.3 times in two, as gradients are there before they are summed up.
const OF_WEIGHTS: f64 = 0.9;
const OF_STATE: f64 = 1.3;

/// The same where every device has all of the training state, for v7x, and the share of gradients that is put off there: 0.2
/// to 1.3 in twelve programs of three libraries, less the fewer the layers and the more the tokens, more where values of an
/// activation function are kept in 32 bits.
const OF_WHOLE: f64 = 1.2;
const SHARE_OF_WHOLE: f64 = 0.6;

/// On fewer devices no gradient was put off: so it was on 4 of v5e and of v6e with divided weights.
const LEAST_DEVICES: u32 = 8;

/// The share that is put off for v7x where weights are divided: between none of two decoders' gradients, 0.65 of another's
/// and more than all that is counted here of a model of proteins.
const PART: f64 = 0.35;

impl Divided {
    /// The share of gradients, 0 to 1, that the compiler for a generation of TPUs puts off; `None` where that is not known.
    fn put_off_by(self, generation: Option<&str>) -> Option<f64> {
        match (generation.unwrap_or_default(), self) {
            ("v7x", Self::Nothing) => Some(SHARE_OF_WHOLE),
            (_, Self::Nothing) => Some(0.0),
            ("v4" | "v4 megacore" | "v5p" | "v6e", Self::Weights) | ("v5e" | "v7x", Self::State) => Some(1.0),
            ("v4" | "v4 megacore" | "v5p" | "v6e", Self::State) | ("v5e", Self::Weights) => Some(0.0),
            ("v7x", Self::Weights) => Some(PART),
            _ => None,
        }
    }
}

/// The same share where tensors are divided over other devices besides: none in three programs for v4; of five for v6e two
/// did, and one for v5p did not.
fn beside_tensors(generation: &str) -> Option<f64> {
    match generation {
        "v4" | "v4 megacore" | "v5e" => Some(0.0),
        _ => None,
    }
}

impl Memory {
    /// Whether each row of [`Self::base`] is an argument divided over the devices of the batch, worked out once.
    fn divided_with_batch(&self, program: &Program) -> &Vec<bool> {
        once(&self.divided_with_batch, || self.find_divided_with_batch(program))
    }

    fn find_divided_with_batch(&self, program: &Program) -> Vec<bool> {
        let Some(devices) = BatchDevices::new(program, &self.base, &self.data) else {
            return vec![false; self.base.len()];
        };
        let is_divided = |row: usize| {
            let Role::Argument { number, .. } = self.base[row].role else { return false };
            let sharding = program.sharding_of_parameter(number).filter(|_| !self.is_data(row));
            sharding.is_some_and(|sharding| devices.divide(sharding))
        };
        (0..self.base.len()).map(is_divided).collect()
    }

    /// A family that holds the residual stream, which layers pass on, and how many times its bytes the products with the
    /// weights of all layers have as inputs and outputs; `None` where weights are not those of plain layers, as of experts.
    /// Worked out once.
    fn residual_stream(&self, program: &Program) -> Option<(u32, f64)> {
        *once(&self.residual_stream, || self.find_residual_stream(program))
    }

    fn find_residual_stream(&self, program: &Program) -> Option<(u32, f64)> {
        let devices = BatchDevices::new(program, &self.base, &self.data);
        // Those that are frozen, too: what adapters of low rank need is what the matrices beside them would.
        let weights: Vec<Vec<i64>> =
            self.trained.iter().filter_map(|&row| self.whole(program, devices.as_ref(), row)).collect();
        let elements = |whole: &[i64]| whole.iter().fold(1f64, |product, &size| product * size as f64);
        // Nearly every matrix has the width that layers pass on.
        let mut shares: FastMap<i64, f64> = FastMap::default();
        for whole in &weights {
            for &size in whole.iter().filter(|&&size| size > 1) {
                *shares.entry(size).or_default() += elements(whole);
            }
        }
        let most = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let width = most?.0;
        let mut all = 0f64;
        for whole in weights.iter().filter(|whole| whole.contains(&width)) {
            let made = elements(whole) / width as f64;
            if made <= WIDEST_LAYER * width as f64 {
                all += made;
            } else if whole.iter().filter(|&&size| size > 1).count() > 2 {
                // Experts, but no table of words.
                return None;
            }
        }
        let batch = self.data.first().map(DataArgument::batch).filter(|&batch| batch > 0)?;
        // Weights as a device has them, and gathered.
        let gathered: FastSet<Vec<i64>> = weights.iter().map(|whole| outline(whole)).collect();
        let is_weight = |node: &ShapeNode, _| {
            let own = outline(&node.dimensions);
            gathered.contains(&own) || self.weights(program).contains(&own)
        };
        let tokens = self.data.iter().map(DataArgument::elements).max().unwrap_or(0);
        // How often each size comes, and where, of wide floats and of others.
        let frequent = |is_weight: &dyn Fn(&ShapeNode, BufferId) -> bool| {
            let mut sizes: [FastMap<u64, (u64, u32)>; 2] = [FastMap::default(), FastMap::default()];
            for (row, family) in (0u32..).zip(&self.families.list) {
                let Some(node) = program.buffer_node(family.root) else { continue };
                let is_stream = self.kept.passes.get(row as usize) == Some(&Pass::Forward)
                    && !self.kept.has_own_remedy(row as usize)
                    && node.element_type.is_float()
                    && node.dimensions.last() == Some(&width)
                    && node.dimensions.first().is_some_and(|&first| first % batch == 0)
                    && node.element_count() / width.unsigned_abs().max(1) <= tokens.unsigned_abs()
                    && !is_weight(node, family.root);
                if is_stream {
                    let sizes = &mut sizes[usize::from(node.element_type.is_wide_float())];
                    sizes.entry(family.size).or_insert((0, row)).0 += 1;
                }
            }
            sizes
        };
        let strict = frequent(&is_weight);
        // Of one sequence as long as it is wide, that may be both.
        let loose = frequent(&|node, root| weights.contains(&node.dimensions) || holds_gathered(program, root));
        let largest = |sizes: &[FastMap<u64, (u64, u32)>; 2]| sizes.iter().flat_map(FastMap::keys).max().copied();
        let is_lost = largest(&strict).unwrap_or(0) < largest(&loose).unwrap_or(0) / SMALL;
        let sizes = if is_lost { loose } else { strict };
        // Without biases and the like, and without what only the program's ends hold, such as convolutions before the layers.
        let counts = || sizes.iter().flatten().map(|(&size, &(count, _))| (size, count));
        let most = counts().map(|row| row.1).max()?;
        let least = counts().filter(|row| row.1 >= most / OFTEN).map(|row| row.0).max()? / SMALL;
        let most_frequent = |sizes: &FastMap<u64, (u64, u32)>| {
            let large = sizes.iter().filter(|row| *row.0 >= least);
            large.max_by_key(|&(&size, &(count, _))| (count, size)).map(|(_, &(count, row))| (count, row))
        };
        let [narrow, wide] = [most_frequent(&sizes[0]), most_frequent(&sizes[1])];
        // Products have the narrower of two types that are frequent.
        let row = match (narrow, wide) {
            (Some(narrow), Some(wide)) if narrow.0 < wide.0 / OFTEN => wide.1,
            (Some(narrow), _) => narrow.1,
            (None, wide) => wide?.1,
        };
        (all > 0.0).then_some((row, all / width as f64))
    }

    /// Bytes of the residual stream in a segment: of the arrays there that are as wide as a family which holds it, and have
    /// its type, the most frequent, as decoders may have shorter sequences than encoders.
    fn stream_of(&self, program: &Program, segment: &Segment, stream: u32) -> u64 {
        let own = self.families.list[stream as usize].size;
        let Some(of_all) = self.node_of_family(program, stream) else { return own };
        let mut sizes: FastMap<u64, u32> = FastMap::default();
        for &family in &segment.forward {
            let node = self.node_of_family(program, family);
            if node.is_some_and(|node| {
                node.element_type == of_all.element_type
                    && node.dimensions.first() == of_all.dimensions.first()
                    && node.dimensions.last() == of_all.dimensions.last()
            }) {
                *sizes.entry(self.families.list[family as usize].size).or_default() += 1;
            }
        }
        let most = sizes.into_iter().max_by_key(|&(size, count)| (count, size));
        most.map_or(own, |(size, _)| size.min(own))
    }

    /// Dimensions of a trained matrix on all devices of the batch; `None` for tables of words, biases and scales.
    fn whole<'p>(&self, program: &'p Program, devices: Option<&BatchDevices<'p>>, row: usize) -> Option<Vec<i64>> {
        let base = self.base.get(row)?;
        let node = program.buffer_node(base.buffer)?;
        let Role::Argument { number, .. } = base.role else { return None };
        let sharding = program.sharding_of_parameter(number);
        let divided = |place: usize| match (sharding, devices) {
            (Some(sharding), Some(devices)) => devices.parts_of(sharding, place),
            _ => 1,
        };
        let sizes = node.dimensions.iter().enumerate();
        let whole: Vec<i64> = sizes.map(|(place, &size)| size.saturating_mul(divided(place))).collect();
        let is_table = self.kept.vocabulary.is_some_and(|words| whole.contains(&words));
        (!is_table && whole.iter().filter(|&&size| size > 1).count() > 1).then_some(whole)
    }
}

impl State<'_> {
    /// What of the training state is divided over the devices of the batch, with the changes.
    fn divided(&self) -> Divided {
        let memory = self.memory;
        let now = memory.divided_with_batch(self.program);
        let parts = memory.data.iter().map(|data| data.parts).max().unwrap_or(1).unsigned_abs();
        let mut is_divided = now.clone();
        for &row in &self.divided_rows {
            is_divided[row as usize] = true;
        }
        // Of all devices.
        let whole = |row: usize| memory.base[row].size.saturating_mul(if now[row] { parts } else { 1 });
        let bytes = |is_meant: &dyn Fn(usize) -> bool| {
            let rows = (0..memory.base.len()).filter(|&row| memory.roles[row].is_argument && is_meant(row));
            rows.map(whole).fold(0u64, u64::saturating_add)
        };
        let trained = bytes(&|row| self.is_updated(row));
        if bytes(&|row| self.is_updated(row) && is_divided[row]) > trained / 2 {
            return Divided::Weights;
        }
        let others = bytes(&|row| !memory.roles[row].is_trained && is_divided[row] && !memory.is_data(row));
        if trained > 0 && others > trained / 2 { Divided::State } else { Divided::Nothing }
    }

    /// Whether a row of the base is a weight that the step changes: others are frozen.
    fn is_updated(&self, row: usize) -> bool {
        let role = self.memory.roles[row];
        let followers = self.followers();
        let is_next = || followers.next.get(row).is_some_and(Option::is_some);
        let is_returned = || followers.is_returned.get(row) == Some(&true);
        role.is_trained && (role.is_donated || is_next()) && !is_returned()
    }

    /// Whether what is trained is whole on every device, as adapters may be, and most of the weights, which are returned as
    /// they are, is divided over the devices of the batch: of two such programs one put off its gradients.
    fn has_divided_frozen(&self) -> bool {
        let memory = self.memory;
        let is_returned = &self.followers().is_returned;
        if !is_returned.contains(&true) || self.divided() != Divided::Nothing {
            return false;
        }
        let bytes = |is_meant: &dyn Fn(usize) -> bool| {
            (0..memory.base.len())
                .filter(|&row| memory.roles[row].is_trained && is_meant(row))
                .map(|row| memory.base[row].size)
                .fold(0u64, u64::saturating_add)
        };
        let divided = memory.divided_with_batch(self.program);
        bytes(&|row| is_returned[row] && divided[row]) > bytes(&|row| self.is_updated(row))
    }

    /// The share of gradients of weights that the compiler puts off, and how many times what they are made from is live then;
    /// `None` where that is not known, as it depends on the generation.
    pub(super) fn share_put_off(&self) -> Option<(f64, f64)> {
        if self.memory.is_gpu || self.program.devices() < LEAST_DEVICES {
            return Some((0.0, 0.0));
        }
        if self.has_divided_frozen() {
            return None;
        }
        let (generation, divided) = (self.memory.generation, self.divided());
        let share = if self.has_tensor_parallelism() && divided == Divided::Weights {
            beside_tensors(generation?)?
        } else {
            divided.put_off_by(generation)?
        };
        let times = match divided {
            Divided::Weights => OF_WEIGHTS,
            Divided::State => OF_STATE,
            Divided::Nothing => OF_WHOLE,
        };
        Some((share, times))
    }

    /// Whether gradients are put off though every device has all of the training state.
    pub(super) fn puts_off_whole(&self) -> bool {
        self.divided() == Divided::Nothing && self.puts_off_any()
    }

    /// Whether weights are divided over more devices than those of the batch, too.
    fn has_tensor_parallelism(&self) -> bool {
        let parts = self.memory.data.iter().map(|data| data.parts).max().unwrap_or(1);
        parts > 1 && i64::from(self.program.devices()) > parts
    }

    /// Whether the compiler puts off gradients of weights, all or some of them.
    pub(super) fn puts_off_any(&self) -> bool {
        self.share_put_off().is_some_and(|(share, _)| share > 0.0)
    }

    /// What is said of gradients that are put off, and take some bytes.
    pub(super) fn put_off_in_words(&self, bytes: Bytes) -> String {
        let divided = match self.divided() {
            Divided::State => "the optimizer's state is divided over the devices of the batch",
            Divided::Weights => "the weights are divided over the devices of the batch",
            Divided::Nothing => "gradients are added up over the devices of the batch",
        };
        let more = match self.share_put_off() {
            Some((share, _)) if share < 1.0 => {
                format!(
                    "is counted here as {} more, and may be hardly anything, or several times that, which is more than the range says",
                    bytes.short()
                )
            }
            _ => format!("takes up to about {} more and is counted here", bytes.short()),
        };
        format!(
            "the layers are not a scan, and {divided}: for these devices the compiler then puts off the gradients of the weights until the backward pass is through, so that what they are made from is live for all layers at once, which {more}; a scan over the layers, each checkpointed, keeps it to one layer at a time"
        )
    }

    /// Whether layers are checkpointed that are no scan, and it is not known whether gradients of adapters are put off.
    pub(super) fn may_put_off_adapters(&self) -> bool {
        self.is_unrolled()
            && !self.memory.is_gpu
            && self.program.devices() >= LEAST_DEVICES
            && self.has_divided_frozen()
    }

    /// Whether layers are checkpointed that are no scan.
    pub(super) fn is_unrolled(&self) -> bool {
        self.checkpointed.iter().any(Option::is_some)
    }

    /// Keeps what the gradients of the weights of each checkpointed segment are made from until the backward pass is through:
    /// of a product with a weight, its input and the gradient of its output.
    pub(super) fn put_off_gradients(&mut self, parts: &Segments, is_meant: &[bool]) {
        let memory = self.memory;
        let meant = || (0u32..).zip(parts.list.iter().zip(is_meant)).filter(|row| *row.1.1 && row.1.0.is_needed);
        let end = meant().map(|(_, (segment, _))| segment.backward).max();
        let Some((end, usual)) = end.zip(self.puts_off) else { return };
        let layers = parts.list.iter().filter(|segment| segment.is_needed).count();
        let Some((row, of_all)) = memory.residual_stream(self.program) else { return };
        let times = of_all / layers.max(1) as f64 + OF_MODULES;
        let mut added: Vec<(u64, u32, u32, u32)> = meant()
            .map(|(_, (segment, _))| {
                let stream = memory.stream_of(self.program, segment, row);
                ((stream as f64 * times * usual) as u64, segment.backward, end, row)
            })
            .collect();
        self.made_again.append(&mut added);
    }
}
