//! What some temporaries at the peak are: by their part in training, or alike by shape or name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::attention::is_drawn;
use super::gathered::is_gather;
use super::program_context::{AtPeak, ProgramContext, Total, in_a_row};
use crate::analysis::class::Class;
use crate::analysis::flow::label::{COPY_OF, SUMMED};
use crate::analysis::names::lookup::is_draw;
use crate::analysis::names::pass::Pass;
use crate::analysis::names::pattern;
use crate::analysis::what_if::saved_for_backward::{LEAST_TOKENS, is_among};
use crate::model::{Bytes, ShapeNode, outline};

/// A part of the temporaries' bytes that says what most of them are: two fifths of them.
const MOST: (u64, u64) = (2, 5);

/// Share from which on a part is nearly all.
const ALL: f64 = 0.985;

/// A part that is worth a word.
const WORTH: u64 = 20;

/// A part of them below which it does not show that the others are not all: 1/n.
const NOT_TO_SPEAK_OF: u64 = 100;

/// What a temporary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Logits,
    Scores,
    Kept,
    Recomputed,
    Gradients,
    OfValues,
    Weights,
    Random,
    Indices,
    Copies,
    Other,
}

impl Kind {
    /// What temporaries of this kind are called.
    const fn words(self) -> &'static str {
        match self {
            Self::Logits => "logits or their gradient",
            Self::Scores => "attention scores or their gradient",
            Self::Kept => "kept for the backward pass",
            Self::Recomputed => "recomputed in the backward pass",
            Self::Gradients => "gradients",
            Self::OfValues => "gradients of activations",
            Self::Weights => "gathered or copied weights",
            Self::Random => "random bits",
            Self::Indices => "indices of an argmax over the vocabulary",
            Self::Copies => "copies of arguments",
            Self::Other => "others",
        }
    }

    fn of(case: &ProgramContext<'_>, t: &AtPeak) -> Self {
        let kept = &case.memory.kept;
        let label = || case.analysis.labels(case.program).of(case.program, t.buffer).unwrap_or_default().text;
        let class = case.analysis.classes(case.program).of(t.buffer);
        if is_among(&kept.logits, t.family) {
            Self::Logits
        } else if is_among(&kept.scores, t.family) {
            if is_drawn(case, t) { Self::Random } else { Self::Scores }
        } else if class == Class::Weight || is_gather(case, t) {
            // Gathered once more in a layer that is checkpointed, too.
            Self::Weights
        } else if is_random(case, t) {
            Self::Random
        } else if are_indices(case, t) {
            Self::Indices
        } else if kept.passes.get(t.family) == Some(&Pass::Recomputed) && !kept.is_stack(t.family) {
            Self::Recomputed
        } else if class == Class::Activation || kept.is_stack(t.family) {
            Self::Kept
        } else if class == Class::Gradient {
            let weights = case.memory.weights(case.program);
            let is_of_weight = || case.node(t.buffer).is_none_or(|node| weights.contains(&outline(&node.dimensions)));
            let is_sum = || label().starts_with(SUMMED) && case.memory.has_backward();
            let is_own = is_of_weight() || is_among(&kept.gradients, t.family) || is_sum();
            if is_own { Self::Gradients } else { Self::OfValues }
        } else {
            match label() {
                label if label.starts_with(SUMMED) && case.memory.has_backward() => Self::Gradients,
                // As it is, or with a part of it written.
                label if label.starts_with(COPY_OF) => Self::Copies,
                _ => Self::Other,
            }
        }
    }
}

/// Whether a temporary holds random bits, or what they are made of.
fn is_random(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    let is_integer = |node: &ShapeNode| !node.element_type.is_float() && node.element_type.storage_bits() > 1;
    case.node(t.buffer).is_some_and(is_integer) && is_draw(case.name(t.family))
}

/// Whether a temporary holds an integer for each logit: the words themselves, of which an argmax chooses one.
fn are_indices(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    let Some(words) = case.memory.kept.vocabulary.filter(|&words| words > 0) else { return false };
    let Some(node) = case.node(t.buffer) else { return false };
    let of_words = node.element_count() / words.unsigned_abs();
    !node.element_type.is_float()
        && node.element_type.storage_bits() == 32
        && of_words >= LEAST_TOKENS
        && of_words.saturating_mul(words.unsigned_abs()) == node.element_count()
}

/// Temporaries by kind.
pub(super) struct Kinds {
    /// With the bytes of each, most first.
    sums: Vec<(u64, Kind)>,
    /// Of those of no kind that has a name, the ones that are alike and take most.
    alike: Option<(u64, String)>,
    all: u64,
}

impl Kinds {
    /// Sorts temporaries, largest first, by what they are.
    pub fn new(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Self {
        let mut sums: BTreeMap<Kind, u64> = BTreeMap::new();
        let mut others = Vec::new();
        for &t in held {
            let kind = Kind::of(case, t);
            let sum = sums.entry(kind).or_default();
            *sum = sum.saturating_add(t.size);
            if kind == Kind::Other {
                others.push(t);
            }
        }
        let mut sums: Vec<(u64, Kind)> = sums.into_iter().map(|(kind, bytes)| (bytes, kind)).collect();
        sums.sort_by_key(|&(bytes, kind)| (Reverse(bytes), kind));
        Self { sums, alike: alike(case, &others), all: held.iter().map(|t| t.size).total() }
    }

    /// Bytes of the one thing that most of them are, if they are one.
    pub fn largest(&self) -> Option<u64> {
        let of_kind =
            self.sums.iter().find(|row| row.1 != Kind::Other).map(|row| row.0).filter(|&bytes| self.are_most(bytes));
        of_kind.or_else(|| self.alike.as_ref().map(|row| row.0).filter(|&bytes| self.are_most(bytes)))
    }

    /// Whether half of them or more may be computed part by part: not gradients, nor what other passes keep or make again.
    pub fn may_be_cut(&self) -> bool {
        self.are_half(|kind| matches!(kind, Kind::Logits | Kind::Scores | Kind::Other))
    }

    /// Whether indices of an argmax are worth a word.
    pub fn has_indices(&self) -> bool {
        self.sums.iter().any(|row| row.1 == Kind::Indices && row.0.saturating_mul(WORTH) >= self.all)
    }

    /// Whether half of them or more are of some kinds.
    fn are_half(&self, is_meant: impl Fn(Kind) -> bool) -> bool {
        let bytes = self.sums.iter().filter(|row| is_meant(row.1)).map(|row| row.0).total();
        bytes.saturating_mul(2) >= self.all
    }

    /// Whether half of them or more may be kept for a backward pass: what has no name of its own, or is.
    pub fn may_be_kept(&self) -> bool {
        self.are_half(|kind| matches!(kind, Kind::Logits | Kind::Scores | Kind::Kept | Kind::Other))
    }

    /// Whether most of them are random bits.
    pub fn are_random(&self) -> bool {
        self.sums.first().is_some_and(|row| row.1 == Kind::Random && self.are_most(row.0))
    }

    fn are_most(&self, bytes: u64) -> bool {
        bytes.saturating_mul(MOST.1) >= self.all.saturating_mul(MOST.0)
    }

    /// What most of them are, for a title: `6.00 GiB of it 4 \u{d7} f32[65536,20,244]`.
    pub fn most(&self) -> Option<String> {
        let share = |bytes: u64| {
            if bytes as f64 >= self.all as f64 * ALL { "nearly all".to_owned() } else { Bytes(bytes).short() }
        };
        let named = |kind: Kind, bytes: u64| format!("{} of it {}", share(bytes), kind.words());
        let is_named = |row: &&(u64, Kind)| row.1 != Kind::Other;
        if let Some(&(bytes, kind)) = self.sums.iter().find(is_named).filter(|row| self.are_most(row.0)) {
            return Some(named(kind, bytes));
        }
        if let Some((bytes, words)) = self.alike.as_ref().filter(|row| self.are_most(row.0)) {
            return Some(format!("{} of it {words}", share(*bytes)));
        }
        let mut first = self.sums.iter().filter(is_named).take(2);
        let two = first.next().zip(first.next()).filter(|(a, b)| self.are_most(a.0.saturating_add(b.0)));
        two.map(|(a, b)| format!("{} and {}", named(a.1, a.0), named(b.1, b.0).replace(" of it ", " ")))
    }

    /// Whether more than half of them are alike, and of no kind that has a name: what these are is the cause then.
    pub fn are_alike(&self) -> bool {
        self.alike.as_ref().is_some_and(|row| row.0.saturating_mul(2) > self.all)
    }

    /// All of them in a sentence, where there is more than one kind: `By kind: 4.94 GiB kept for …, 2.70 GiB gradients.`
    pub fn sentence(&self) -> Option<String> {
        // What has no name, and what is too little for one, are one at the end.
        let is_told = |row: &&(u64, Kind)| row.1 != Kind::Other && row.0.saturating_mul(WORTH) >= self.all;
        let told: Vec<(u64, Kind)> = self.sums.iter().filter(is_told).copied().collect();
        let rest = self.all.saturating_sub(told.iter().map(|row| row.0).total());
        let others = (rest.saturating_mul(NOT_TO_SPEAK_OF) >= self.all).then_some((rest, Kind::Other));
        let words: Vec<String> = told
            .into_iter()
            .chain(others)
            .map(|(bytes, kind)| format!("{} {}", Bytes(bytes).short(), kind.words()))
            .collect();
        (words.len() > 1).then(|| format!(" By what they are: {}.", in_a_row(words)))
    }
}

/// The temporaries that are alike and take most: as many elements of one type, in whatever shape, or what one operation
/// makes in whatever layer. Their bytes, and what they are in words.
fn alike(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<(u64, String)> {
    let mut by_size: BTreeMap<_, (u64, usize)> = BTreeMap::new();
    let mut by_name: BTreeMap<String, (u64, usize)> = BTreeMap::new();
    let labels = case.analysis.labels(case.program);
    for t in held {
        let add = |sum: &mut (u64, usize)| *sum = (sum.0.saturating_add(t.size), sum.1 + 1);
        let Some(node) = case.node(t.buffer) else { continue };
        add(by_size.entry((node.element_type, node.element_count())).or_default());
        let name = pattern::of(&labels.op_name(case.program, t.buffer));
        if !name.is_empty() {
            add(by_name.entry(name).or_default());
        }
    }
    let most = |sums: &mut dyn Iterator<Item = (u64, usize)>| sums.max().unwrap_or_default();
    let of_size = by_size.iter().max_by_key(|row| row.1.0)?;
    let of_name = most(&mut by_name.values().copied());
    let (bytes, count) = *of_size.1;
    if bytes >= of_name.0 {
        let is_meant =
            |t: &&&AtPeak| case.node(t.buffer).is_some_and(|n| (n.element_type, n.element_count()) == *of_size.0);
        let first = case.describe(held.iter().find(is_meant)?.buffer);
        let shape = first.split(" `").next().unwrap_or_default().to_owned();
        let alike = held.iter().filter(is_meant).filter_map(|t| case.node(t.buffer));
        let shapes: BTreeSet<&[i64]> = alike.map(|node| node.dimensions.as_slice()).collect();
        let words = match count {
            1 => shape,
            _ if shapes.len() > 1 => format!("{count} arrays with as many elements as {shape}"),
            _ => format!("{count} \u{d7} {shape}"),
        };
        return Some((bytes, words));
    }
    let found = by_name.into_iter().find(|row| row.1 == of_name)?.0;
    let names: Vec<_> = held.iter().map(|t| labels.op_name(case.program, t.buffer)).collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).filter(|name| pattern::of(name) == found).collect();
    let name = pattern::of_all(&names);
    Some((of_name.0, if of_name.1 > 1 { format!("{} arrays of `{name}`", of_name.1) } else { format!("`{name}`") }))
}

#[cfg(test)]
mod tests {
    use super::super::temporaries;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::Opcode;

    #[test]
    fn what_most_temporaries_are_is_said() {
        let mut sketch = Sketch::default();
        let x = sketch.argument(array(&[64], &[0]), "x");
        let made = |sketch: &mut Sketch, dimensions: &[i64], name: &str| {
            let row = sketch.instruction(Opcode::FUSION, array(dimensions, &[1, 0]), &[x], name);
            sketch.alloc(row);
            row
        };
        let rows = [
            made(&mut sketch, &[1024, 512], "jit(f)/shuffle/gather"),
            made(&mut sketch, &[512, 1024], "jit(f)/collect/reshape"),
            made(&mut sketch, &[256, 128], "jit(f)/other/add"),
        ];
        let all = sketch.instruction(Opcode::FUSION, array(&[64], &[0]), &rows, "jit(f)/sum");
        for row in rows.into_iter().chain([all]) {
            sketch.free(row);
        }
        let found = sketch.findings(1 << 30, temporaries::run);
        assert_eq!(found.len(), 1, "{found:?}");
        let title = &found[0].title;
        assert!(title.ends_with("4.00 MiB of it 2 arrays with as many elements as f32[1024,512]"), "{title}");
    }
}
