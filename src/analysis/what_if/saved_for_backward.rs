//! Classifies what a training program keeps for its backward pass: repeated layers, stacks saved by a scan, logits over
//! a vocabulary, attention scores over all pairs of positions.

use std::collections::HashSet;

use rayon::prelude::*;

use super::base::{Base, Role};
use super::batch::DataArgument;
use super::turn::Turn;
use crate::analysis::ProgramAnalysis;
use crate::analysis::class::Class;
use crate::analysis::flow::collective::is_all_gather;
use crate::analysis::flow::label::Labels;
use crate::analysis::flow::loops::{Part, Role as LoopRole};
use crate::analysis::flow::loss_in_parts::are_in_parts;
use crate::analysis::flow::softmax::{Crossed, repeated};
use crate::analysis::flow::steps::Steps;
use crate::analysis::flow::{Value, computed};
use crate::analysis::names::layer::Layer;
use crate::analysis::names::lookup::is_convolution;
use crate::analysis::names::pass::{AGAIN, Pass, pass_of};
use crate::analysis::names::pattern::matches;
use crate::analysis::packing::Families;
use crate::model::{FastMap, FastSet, InstructionId, Program, ShapeNode, outline};

/// Fewest positions of which one may be cut off: of fewer samples or heads, one fewer is another number.
pub(super) const LEAST_CUT: i64 = 16;

/// Smallest size taken for a vocabulary; logits over less do not matter.
const LEAST_VOCABULARY: i64 = 8192;

/// Fewest tokens in a buffer of logits.
pub const LEAST_TOKENS: u64 = 128;

/// Sequence length below which attention scores are small.
const LEAST_SEQUENCE: i64 = 256;

/// Part of what loops within a loop save from which on what it saves itself is much.
const OWN: u64 = 2;

/// What names of the attention of a layer have in common, in lower case: `attn`, `self_attention`.
pub const ATTENTION: &str = "att";

/// Words in the names of single layers that are called by the module that they are beside or inside of.
const SINGLE: [&str; 4] = ["norm", "dense", "proj", "linear"];

/// Whether a name may be that of a module of several layers, such as attention, and not `post_attention_layernorm`.
#[must_use]
pub fn is_module(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !SINGLE.iter().any(|word| lower.contains(word))
}

/// Queries in a block of flash attention, as its kernels take by default.
pub const BLOCK: i64 = 128;

/// A stack with one slice for each step of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack {
    /// Its family.
    pub family: u32,
    /// The loop that saves it.
    pub of_loop: InstructionId,
    /// Number of slices.
    pub layers: i64,
    /// Number of slices in each of these, where the loop saves what a loop in it saves; else 1.
    pub inner: i64,
    /// What each slice is of.
    pub steps: Steps,
    /// Whether it holds the input of each step, which is all that a checkpointed body keeps.
    pub is_input: bool,
    /// Bytes that the loop passes from step to step: what a checkpoint of its body keeps of each.
    pub carry: u64,
    /// Whether the loop runs inside a layer, and other layers have such a loop each: it is one over hops of a ring or
    /// steps of a recurrence, not one over layers.
    pub is_in_layer: bool,
}

/// Segments of several steps of a scan, each checkpointed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanSegments {
    /// The scan has to be divided into them.
    OfScan {
        /// How many there are.
        count: u64,
        /// Steps of each.
        length: u64,
        /// Steps of the scan.
        steps: u64,
    },
    /// They are the steps of an outer scan that is there already.
    OfOuterScan {
        /// Its steps.
        steps: u64,
        /// Steps of the scan in each of them.
        inner: u64,
    },
}

/// Families of temporaries that are kept, by kind; lists of families are ascending.
#[derive(Debug, Clone, Default)]
pub struct SavedForBackward {
    /// The turn from the forward to the backward pass, with the layers on both sides; `None` if the program does not
    /// train or has no schedule.
    pub turn: Option<Turn>,
    /// The turns of both rounds, where the step runs two; else empty.
    pub rounds: Vec<Turn>,
    /// Pass of each family, from its name.
    pub passes: Vec<Pass>,
    /// Families that scans save for the backward pass.
    pub stacks: Vec<Stack>,
    /// What each of these stacks is made from, in the same order: `mlp/wi_0`; empty where that is not known.
    pub stack_names: Vec<String>,
    /// Families into which scans of the backward pass write gradients.
    pub gradients: Vec<u32>,
    /// Size of the vocabulary over all devices.
    pub vocabulary: Option<i64>,
    /// Families that hold logits, or their gradient.
    pub logits: Vec<u32>,
    /// Whether a loop computes the loss in parts already, so that these are those of one part.
    pub are_in_parts: bool,
    /// Length of a sequence.
    pub sequence: Option<i64>,
    /// Whether most attention scores are of positions for those of another sequence, of that length.
    pub are_crossed: bool,
    /// Whether a softmax or the name of each shows that they are scores; what else has their shapes, such as the decays of
    /// a state space model, is told by its shape alone.
    pub are_sure: bool,
    /// Families that hold what a loop of unknown pass collects, such as the next values of a cache.
    pub collected: Vec<u32>,
    /// Families that hold attention scores, or their gradient.
    pub scores: Vec<u32>,
}

/// Whether a family is in a list of [`SavedForBackward`]; they are ascending.
#[must_use]
pub fn is_among(list: &[u32], family: usize) -> bool {
    u32::try_from(family).is_ok_and(|family| list.binary_search(&family).is_ok())
}

impl SavedForBackward {
    /// Classifies the families of a memory space; `names` are the framework op names of their roots, `points` the
    /// program point of each heap event.
    pub fn new(
        program: &Program,
        analysis: &ProgramAnalysis,
        (bases, data): (&[Base], &[DataArgument]),
        families: &Families,
        (names, points): (&[String], &[u32]),
    ) -> Self {
        let passes: Vec<Pass> = names.par_iter().map(|name| pass_of(name)).collect();
        let weights = Weights::new(program, analysis, bases);
        let is_activation =
            |node: &ShapeNode| node.element_type.is_float() && !weights.outlines.contains(&outline(&node.dimensions));
        let (turn, softmax) = rayon::join(
            || Turn::new(program, analysis, (families, points), (&passes, names), is_activation),
            || analysis.labels(program).softmaxes.of(program),
        );
        let twice =
            |turn: &Turn| Turn::twice(program, analysis, (families, points), (&passes, names), is_activation, turn);
        let rounds = turn.as_ref().map(twice).unwrap_or_default();
        let mut kept = Self { turn, rounds, passes, are_sure: true, ..Self::default() };
        kept.find_stacks(program, analysis, families, &weights);
        kept.tell_loops_in_layers();
        // The state of an environment may be integers, too, but is no text.
        let are_tokens = |base: &Base| {
            !base.is_state() && program.buffer_node(base.buffer).is_some_and(|node| node.element_type.is_index())
        };
        let has_tokens =
            data.iter().any(|d| d.dimensions.len() >= 2 && bases.get(d.base as usize).is_some_and(are_tokens));
        if has_tokens {
            kept.vocabulary = weights.vocabulary();
            // The side of a picture is no sequence.
            let sides: HashSet<i64> = data.iter().filter_map(|d| side_of_picture(&d.dimensions)).collect();
            let lengths = data.iter().filter_map(|d| d.dimensions.get(1).copied());
            kept.sequence = lengths.filter(|length| !sides.contains(length)).max();
        }
        let of_data: HashSet<i64> = data.iter().flat_map(|d| d.dimensions.iter().copied()).collect();
        // The positions of a cache are no classes.
        let classes = analysis.classes(program);
        let is_argument =
            |base: &&Base| matches!(base.role, Role::Argument { .. }) && classes.of(base.buffer) != Class::Cache;
        let of_arguments: HashSet<i64> = bases
            .iter()
            .filter(is_argument)
            .filter_map(|base| program.buffer_node(base.buffer))
            .flat_map(|node| node.dimensions.iter().copied())
            .collect();
        let is_vocabulary = |classes: i64| weights.sizes.contains(&classes) && !of_data.contains(&classes);
        let by_softmax: Vec<&(i64, Vec<i64>)> =
            softmax.logits.iter().filter(|(classes, _)| is_vocabulary(*classes)).collect();
        let node = |family: usize| {
            let buffer = families.list.get(family)?.root;
            program.buffer_node(buffer).filter(|node| node.element_type.is_float())
        };
        // The rows of a layer that is given whole pictures may be more than there are words.
        let is_shown = |&vocabulary: &i64| {
            let is_own = |classes: i64| classes == vocabulary || weights.largest.contains(&(vocabulary, classes));
            let mut others = by_softmax.iter().filter(|logits| !softmax.are_batched(&logits.1)).peekable();
            others.peek().is_none() || others.any(|logits| is_own(logits.0))
        };
        kept.vocabulary = kept.vocabulary.filter(is_shown);
        let by_tokens = kept.vocabulary;
        if kept.vocabulary.is_none() {
            kept.vocabulary = by_softmax.iter().map(|logits| logits.0).max();
        }
        let made = |family: usize| {
            let root = families.list.get(family)?.root;
            let at = program.buffers.instruction_of(root)?;
            Some(Value { at, index: program.buffer_index(root) })
        };
        let sequence = kept.sequence;
        let labels = analysis.labels(program);
        // Of as many channels as positions, what layers hand on looks like scores.
        let handed_on: HashSet<Vec<i64>> =
            labels.loops.carried(program).map(|node| outline(&node.dimensions)).collect();
        let shape_of = |node: &ShapeNode, is_stack: bool| {
            let dimensions = of_layer(node, is_stack);
            let own = outline(dimensions);
            let is_own = |logits: &&(i64, Vec<i64>)| logits.1 == own;
            let is_of_softmax = by_softmax.iter().any(is_own);
            // Scores of as many keys as some weight is wide.
            let are_batched = || softmax.are_batched(&own);
            // A device's part of a vocabulary may be as large as the sequence is long.
            let is_of_heads = sequence.is_some_and(|length| are_of_heads(&own, length));
            let has_classes = by_tokens.is_some_and(|vocabulary| weights.are_logits(node, vocabulary) && !is_of_heads)
                || (is_of_softmax && !weights.outlines.contains(&own) && !are_batched());
            let is_crossed = |crossed: &Crossed| {
                let Crossed { keys, is_batched, .. } = crossed;
                crossed.is(&own) && (*is_batched || of_data.contains(keys) || !of_arguments.contains(keys))
            };
            let is_handed_on = || handed_on.contains(&own) && !softmax.scores.contains(&own);
            let are_pairs = softmax.are_scores(&own, &weights.sizes) && !is_handed_on();
            let is_crossed = !are_pairs && !is_handed_on() && softmax.crossed.iter().any(is_crossed);
            let by_softmax = (are_pairs || is_crossed) && !weights.outlines.contains(&own);
            // Where softmaxes show scores, what only looks like them is something else, such as features of all pairs.
            let are_scores = |is_named| {
                let by_shape = || sequence.is_some_and(|length| weights.are_scores(dimensions, length, is_named));
                by_softmax || (softmax.may_be_scores(&own) && by_shape() && !is_handed_on())
            };
            Meaning {
                logits: !is_stack && has_classes,
                logits_if_made: !is_stack && is_of_softmax,
                by_softmax,
                is_crossed,
                scores: are_scores(false),
                scores_if_named: are_scores(true),
            }
        };
        // Most equal shapes of a program are one value, whose place stands for it.
        let mut known: FastMap<(*const ShapeNode, bool), Meaning> = FastMap::default();
        for family in 0..families.list.len() {
            let Some(node) = node(family) else { continue };
            let is_stack = kept.is_stack(family);
            let meaning =
                *known.entry((std::ptr::from_ref(node), is_stack)).or_insert_with(|| shape_of(node, is_stack));
            let is_named = || {
                let name = names.get(family).map_or("", String::as_str).to_ascii_lowercase();
                ["attention", "attn", "softmax", "scores"].iter().any(|word| name.contains(word))
            };
            // What is named as a part of a layer is of its width, not of a vocabulary of the same size.
            let is_in_layer = || kept.turn.as_ref().is_some_and(|turn| turn.is_named_in_layer(family));
            // A table of the vocabulary that is gathered from all devices is no logits.
            let is_gathered = || {
                let made = program.buffers.instruction_of(families.list[family].root);
                made.is_some_and(|made| is_all_gather(program, made))
            };
            if meaning.logits && is_gathered() {
                continue;
            }
            // Parts of a sequence as long as weights are wide have logits like the weights that make them.
            let are_made_of_logits =
                || made(family).is_some_and(|value| softmax.make_logits(program, value, &outline(&node.dimensions)));
            let are_features =
                || meaning.is_crossed && made(family).is_some_and(|value| labels.is_of_weight(program, value));
            let are_logits = meaning.logits || (meaning.logits_if_made && are_made_of_logits());
            // As many samples of sound as channels are no pairs of positions.
            let is_convolved = || names.get(family).is_some_and(|name| is_convolution(name));
            if are_logits && !is_in_layer() {
                kept.logits.push(family as u32);
            } else if (meaning.scores && !are_features() && !is_convolved()) || (meaning.scores_if_named && is_named())
            {
                kept.scores.push(family as u32);
                kept.are_sure &= meaning.by_softmax || is_named();
            }
        }
        kept.are_in_parts = !kept.logits.is_empty()
            && kept.logits.iter().all(|&row| {
                let made = node(row as usize).zip(made(row as usize));
                made.is_some_and(|(node, value)| are_in_parts(program, value, &outline(&node.dimensions)))
            });
        kept.add_flat_logits(families, node);
        kept.add_cut_logits(families, node);
        // Of the same scores, those with one dimension for the positions, not rows and columns of a picture.
        let bits = |node: &ShapeNode| node.element_count().saturating_mul(u64::from(node.element_bits()));
        let size = |row: u32| node(row as usize).map(|node| (bits(node), repeated(&node.dimensions)));
        let largest = kept.scores.iter().copied().max_by_key(|&row| size(row));
        let positions = |row: u32| {
            let own = kept.of_layer(row as usize, node(row as usize)?);
            repeated(own).or(own.iter().copied().max())
        };
        kept.sequence = largest.and_then(positions).or(kept.sequence);
        let largest = largest.and_then(|row| node(row as usize));
        // Of relative positions there are more than of positions: as large as scores are those for which they are made.
        let is_of_both = |largest: &ShapeNode, row: u32| {
            let side = node(row as usize).and_then(|own| repeated(&own.dimensions));
            side.is_some_and(|side| largest.dimensions.contains(&side))
        };
        kept.are_crossed = largest.is_some_and(|largest| {
            repeated(&largest.dimensions).is_none() && !kept.scores.iter().any(|&row| is_of_both(largest, row))
        });
        kept
    }

    /// Adds what has the dimensions of logits with one position fewer, such as all but the last of what is predicted.
    fn add_cut_logits<'a>(&mut self, families: &Families, node: impl Fn(usize) -> Option<&'a ShapeNode>) {
        let Some(vocabulary) = self.vocabulary else { return };
        let cut = |whole: Vec<i64>| {
            (0..whole.len()).filter_map(move |place| {
                let mut cut = whole.clone();
                let size = cut.get_mut(place).filter(|size| **size != vocabulary && **size >= LEAST_CUT)?;
                *size -= 1;
                Some(outline(&cut))
            })
        };
        let of_logits = self.logits.iter().filter_map(|&row| node(row as usize)).map(|node| outline(&node.dimensions));
        let cuts: HashSet<Vec<i64>> = of_logits.filter(|own| own.len() > 2).flat_map(cut).collect();
        let is_cut = |family: usize| {
            let whole = node(family).filter(|node| node.dimensions.len() > 2 && node.dimensions.contains(&vocabulary));
            let own = whole.map(|node| outline(&node.dimensions));
            own.is_some_and(|own| cuts.contains(&own)) && !self.is_stack(family) && !self.has_own_remedy(family)
        };
        let found: Vec<u32> =
            (0..families.list.len()).filter(|&family| is_cut(family)).map(|family| family as u32).collect();
        self.logits.extend(found);
        self.logits.sort_unstable();
    }

    /// Adds what holds as many elements in one dimension as logits do: a gradient that is scattered into.
    fn add_flat_logits<'a>(&mut self, families: &Families, node: impl Fn(usize) -> Option<&'a ShapeNode>) {
        let known: FastSet<u64> =
            self.logits.iter().filter_map(|&row| node(row as usize)).map(ShapeNode::element_count).collect();
        if known.is_empty() {
            return;
        }
        let is_flat = |family: &usize| {
            node(*family).is_some_and(|node| {
                node.dimensions.iter().filter(|&&size| size > 1).count() == 1 && known.contains(&node.element_count())
            })
        };
        let flat = (0..families.list.len()).filter(is_flat).map(|family| family as u32);
        self.logits.extend(flat);
        self.logits.sort_unstable();
        self.logits.dedup();
    }

    fn find_stacks(&mut self, program: &Program, analysis: &ProgramAnalysis, families: &Families, weights: &Weights) {
        let is_weight = |node: &ShapeNode| weights.outlines.contains(&outline(&node.dimensions));
        let labels = analysis.labels(program);
        if !labels.loops.has_stacks() {
            return;
        }
        for (row, family) in families.list.iter().enumerate() {
            let Some(part) = labels.role(program, family.root) else { continue };
            match part.role {
                LoopRole::Saved => {
                    let within = saved_within(program, labels, part);
                    self.stacks.push(Stack {
                        family: row as u32,
                        of_loop: part.at,
                        layers: part.layers,
                        inner: within.map_or(1, |inner| inner.layers.max(1)),
                        steps: labels.steps.of(part.at),
                        is_input: labels.is_input(program, part),
                        carry: labels.loops.carry(program, within.map_or(part.at, |inner| inner.at), is_weight),
                        is_in_layer: false,
                    });
                    self.stack_names.push(labels.stack_name(program, part).unwrap_or_default());
                }
                LoopRole::Gradients => self.gradients.push(row as u32),
                LoopRole::Collected => self.collected.push(row as u32),
                _ => {}
            }
        }
        self.share_inner_loops(program, families);
        self.keep_loops_within_layers(families);
    }

    /// A loop over layers that saves much beside what loops in its layers save is no repetition of these: what they save is
    /// part of each layer.
    fn keep_loops_within_layers(&mut self, families: &Families) {
        let size = |stack: &Stack| families.list.get(stack.family as usize).map_or(0, |family| family.size);
        // Bytes of each loop's own stacks, with what it passes on, and of those of loops in it.
        let mut bytes: FastMap<InstructionId, (u64, u64, u64)> = FastMap::default();
        for stack in &self.stacks {
            let (own, carry, within) = bytes.entry(stack.of_loop).or_default();
            if stack.inner > 1 {
                *within = within.saturating_add(size(stack));
            } else if !stack.is_input {
                *own = own.saturating_add(size(stack));
                *carry = stack.carry.max(*carry);
            }
        }
        for stack in self.stacks.iter_mut().filter(|stack| stack.inner > 1) {
            if let Some(&(_, carry, _)) = bytes.get(&stack.of_loop).filter(|(own, _, within)| *own >= within / OWN) {
                (stack.inner, stack.carry) = (1, carry);
            }
        }
    }

    /// What a loop saves beside what a loop in it saves, with as many slices, is of that loop as well.
    fn share_inner_loops(&mut self, program: &Program, families: &Families) {
        let inner = self.stacks.iter().filter(|stack| stack.inner > 1);
        let known: FastMap<InstructionId, (i64, u64)> =
            inner.map(|stack| (stack.of_loop, (stack.inner, stack.carry))).collect();
        for stack in self.stacks.iter_mut().filter(|stack| stack.inner <= 1) {
            let Some(&(inner, carry)) = known.get(&stack.of_loop) else { continue };
            let root = families.list.get(stack.family as usize).map(|family| family.root);
            let node = root.and_then(|root| program.buffer_node(root));
            if node.is_some_and(|node| node.dimensions.get(1) == Some(&inner)) {
                (stack.inner, stack.carry) = (inner, carry);
            }
        }
    }

    fn tell_loops_in_layers(&mut self) {
        let Some(turn) = &self.turn else { return };
        let layer = |stack: &Stack| turn.layer_of.get(stack.family as usize).copied().flatten();
        let layers: HashSet<u32> = self.stacks.iter().filter_map(layer).collect();
        if layers.len() > 1 {
            for stack in &mut self.stacks {
                stack.is_in_layer = layer(stack).is_some();
            }
        }
    }

    /// Whether a family holds logits or attention scores, which have rules and remedies of their own.
    #[must_use]
    pub fn has_own_remedy(&self, family: usize) -> bool {
        is_among(&self.logits, family) || is_among(&self.scores, family)
    }

    /// Whether a family holds logits.
    #[must_use]
    pub fn are_logits(&self, family: usize) -> bool {
        is_among(&self.logits, family)
    }

    /// Whether a family is a stack that a scan saves.
    #[must_use]
    pub fn is_stack(&self, family: usize) -> bool {
        self.stack(family).is_some()
    }

    /// The dimensions of what a family holds of one layer. There may be as many layers as heads, or samples.
    #[must_use]
    pub fn of_layer<'n>(&self, family: usize, node: &'n ShapeNode) -> &'n [i64] {
        of_layer(node, self.is_stack(family))
    }

    fn stack(&self, family: usize) -> Option<&Stack> {
        let row = self.stacks.binary_search_by_key(&family, |stack| stack.family as usize).ok()?;
        self.stacks.get(row)
    }

    /// The stacks of scans over layers whose name matches a pattern, but for the inputs of the layers. Scores that name no
    /// module are of attention.
    pub fn stacks_called<'s>(&'s self, pattern: &'s str) -> impl Iterator<Item = &'s Stack> {
        let is_attention = is_module(pattern) && pattern.to_ascii_lowercase().contains(ATTENTION);
        let named = self.stacks.iter().zip(&self.stack_names);
        let is_meant = move |stack: &Stack, name: &str| {
            matches(pattern, name)
                || (is_attention && !name.contains('/') && is_among(&self.scores, stack.family as usize))
        };
        named.filter(move |(stack, name)| !stack.is_input && is_meant(stack, name)).map(|(stack, _)| stack)
    }

    /// Whether a family is a stack of a scan over layers, not of a loop inside a layer.
    #[must_use]
    pub fn is_stack_of_layers(&self, family: usize) -> bool {
        self.stack(family).is_some_and(|stack| !stack.is_in_layer)
    }

    /// The layer of a family.
    #[must_use]
    pub fn layer(&self, family: usize) -> Option<&Layer> {
        let turn = self.turn.as_ref()?;
        let row = turn.layer_of.get(family).copied().flatten()?;
        turn.layers.get(row as usize)
    }

    /// Whether a layer is checkpointed already, according to its op name.
    #[must_use]
    pub fn is_checkpointed(name: &str) -> bool {
        name.contains("checkpoint") || name.contains(AGAIN) || name.contains("/remat")
    }
}

/// The dimensions of one layer: the leading one of a stack is the layer.
fn of_layer(node: &ShapeNode, is_stack: bool) -> &[i64] {
    node.dimensions.get(usize::from(is_stack)..).unwrap_or_default()
}

/// Whether an array has pairs of positions for each head of each sample; logits have one more dimension than samples and
/// positions.
fn are_of_heads(dimensions: &[i64], length: i64) -> bool {
    let of_positions = dimensions.iter().filter(|&&size| size == length).count();
    length >= LEAST_SEQUENCE && of_positions == 2 && dimensions.len() >= 4
}

/// The side of square pictures, if samples of these dimensions are such: with a batch, and colours or features.
fn side_of_picture(dimensions: &[i64]) -> Option<i64> {
    let side = repeated(dimensions)?;
    (dimensions.iter().filter(|&&d| d > 1 && d != side).count() >= 2).then_some(side)
}

/// What arrays of a shape are.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    /// Logits, or their gradient.
    logits: bool,
    /// The same where a softmax over classes makes them: weights have this shape, too.
    logits_if_made: bool,
    /// Attention scores, or their gradient, as a softmax runs over arrays of this shape.
    by_softmax: bool,
    /// The same, of positions for those of another sequence: a product with a weight may have this shape, too.
    is_crossed: bool,
    /// Attention scores, or their gradient.
    scores: bool,
    /// The same where the op name speaks of attention.
    scores_if_named: bool,
}

/// Dimensions of the program's weights.
struct Weights {
    outlines: FastSet<Vec<i64>>,
    /// Every dimension size, per device and global.
    sizes: HashSet<i64>,
    /// Largest global dimension of each matrix, and its size per device.
    largest: Vec<(i64, i64)>,
}

impl Weights {
    fn new(program: &Program, analysis: &ProgramAnalysis, bases: &[Base]) -> Self {
        let classes = analysis.classes(program);
        let mut weights = Self { outlines: FastSet::default(), sizes: HashSet::new(), largest: Vec::new() };
        for base in bases {
            let Role::Argument { number, .. } = &base.role else { continue };
            if !matches!(classes.of(base.buffer), Class::Weight | Class::Optimizer) {
                continue;
            }
            let Some(node) = program.buffer_node(base.buffer) else { continue };
            let sharding = program.sharding_of_parameter(*number);
            let parts =
                |d: usize| sharding.filter(|s| s.parts() > 1).and_then(|s| s.tiles.get(d)).copied().unwrap_or(1).max(1);
            let whole: Vec<i64> =
                node.dimensions.iter().enumerate().map(|(d, &size)| size.saturating_mul(parts(d))).collect();
            weights.outlines.insert(outline(&node.dimensions));
            weights.outlines.insert(outline(&whole));
            weights.sizes.extend(node.dimensions.iter().chain(&whole).copied().filter(|&d| d > 1));
            let is_matrix = node.dimensions.iter().filter(|&&d| d > 1).count() == 2;
            if is_matrix && let Some(d) = (0..whole.len()).max_by_key(|&d| whole[d]) {
                weights.largest.push((whole[d], node.dimensions[d]));
            }
        }
        weights.largest.sort_unstable();
        weights.largest.dedup();
        weights
    }

    /// The vocabulary size: the largest dimension of any weight matrix (in a program that reads tokens).
    fn vocabulary(&self) -> Option<i64> {
        self.largest.iter().map(|row| row.0).max().filter(|&size| size >= LEAST_VOCABULARY)
    }

    fn are_logits(&self, node: &ShapeNode, vocabulary: i64) -> bool {
        let part = |size: i64| size == vocabulary || self.largest.contains(&(vocabulary, size));
        let Some(&size) = node.dimensions.iter().find(|&&size| part(size)) else { return false };
        let rest = node.element_count() / u64::try_from(size).unwrap_or(1).max(1);
        let wide = node.dimensions.iter().filter(|&&d| d > 1).count();
        let is_weight = self.outlines.contains(&outline(&node.dimensions))
            || (wide <= 2 && i64::try_from(rest).is_ok_and(|rest| self.sizes.contains(&rest)));
        rest >= LEAST_TOKENS && !is_weight
    }

    fn are_scores(&self, dimensions: &[i64], sequence: i64, is_named: bool) -> bool {
        if sequence < LEAST_SEQUENCE || self.outlines.contains(&outline(dimensions)) {
            return false;
        }
        let of_positions = dimensions.iter().filter(|&&d| d == sequence).count();
        let others = dimensions.iter().filter(|&&d| d > 1 && d != sequence).count();
        // A width equal to the sequence length looks the same.
        let is_plain = !self.sizes.contains(&sequence);
        // Batch and heads with two sequence dimensions: hardly anything else has this shape, but 3 dimensions need a
        // telling name.
        let is_of_heads = others >= 2 && (dimensions.len() >= 4 || is_named);
        of_positions >= 2 && others >= 1 && (is_plain || is_of_heads)
    }
}

/// What a loop saves in each step of another, where that saves what it is given by the first: as a scan over layers in a
/// scan over repeats of them.
fn saved_within<'a>(program: &Program, labels: &'a Labels, part: &Part) -> Option<&'a Part> {
    let made = computed(program, part.written.clone()?);
    labels.loops.part(made.at, &made.index).filter(|inner| inner.layers > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_positions_for_each_head_are_no_logits() {
        assert!(are_of_heads(&[2, 4096, 8, 4096], 4096) && are_of_heads(&[8, 2, 4096, 4096], 4096));
        assert!(!are_of_heads(&[2, 4096, 4096], 4096), "a part of a vocabulary as large as the sequence is long");
        assert!(!are_of_heads(&[2, 4096, 8, 128], 4096));
    }

    #[test]
    fn the_side_of_a_picture_is_told_from_the_length_of_a_sequence() {
        assert_eq!(side_of_picture(&[32, 256, 256, 3]), Some(256));
        assert_eq!(side_of_picture(&[32, 1024]), None);
        assert_eq!(side_of_picture(&[32, 1, 1024, 1024]), None, "a mask");
        assert_eq!(side_of_picture(&[32, 84, 84, 4]), Some(84));
    }
}
