//! Rule `attention_scores`: attention that materialises its scores for all pairs of positions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::activations;
use super::finding::{ChangesResults, Finding};
use super::in_the_way::InTheWay;
use super::library::{KerasAttention, Library};
use super::precision::computes_in_16_bits;
use super::program_context::{AtPeak, ProgramContext, Total, counted, in_a_row};
use crate::analysis::class::Class;
use crate::analysis::flow::softmax::{LEAST_POSITIONS, repeated};
use crate::analysis::flow::{Value, computed};
use crate::analysis::names::lookup::is_draw;
use crate::analysis::once::once;
use crate::analysis::what_if::saved_for_backward::BLOCK;
use crate::analysis::what_if::{Checkpoint, EVERY, Edit};
use crate::model::{Bytes, FastSet, InstructionId, NO_ROW, Program, ShapeNode, outline, percent};

/// Name of the rule.
pub const NAME: &str = "attention_scores";

/// Share of allocated bytes from which scores are reported even where the peak hardly falls without them.
const MUCH: f64 = 0.10;

/// The operation that repeats a value along other dimensions.
const BROADCAST: &str = "/broadcast_in_dim";

/// How many arrays with two sequence dimensions the attention of one layer keeps at most.
const ARRAYS_OF_LAYER: usize = 2;

/// Looks for buffers at the peak with two sequence dimensions.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(sequence) = case.memory.kept.sequence else { return };
    let held = case.held(&case.memory.kept.scores);
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let is_one_block = sequence <= BLOCK;
    let mut finding = case.finding(NAME);
    // Blocks of keys that come from other devices in turn: what is left is not to keep the scores of each.
    let is_ring = case.memory.has_backward() && is_of_ring(case, &held);
    let edit = if is_ring { Edit::Remat(Checkpoint::Scan) } else { Edit::Blockwise("*".to_owned()) };
    let saved = case.fill(&mut finding, vec![edit]);
    let is_remedied = case.is_worth(saved);
    if !is_remedied {
        // What only has their shape is not worth a word then.
        if !case.is_share(bytes, MUCH) || !case.memory.kept.are_sure {
            return;
        }
        finding = case.finding(NAME);
    }
    finding.at_stake_bytes = Some(Bytes(bytes));
    let drawn: u64 = held.iter().filter(|t| is_drawn(case, t)).map(|t| t.size).total();
    let are_gradients = held.iter().filter(|t| is_gradient(case, t)).map(|t| t.size).total().saturating_mul(2) > bytes;
    finding.title = format!(
        "{}{} {} ({} of the peak){}",
        if are_gradients { "Gradients of attention scores" } else { "Attention scores" },
        if case.is_worth(drawn) && drawn < bytes { ", and what dropout draws for them, take" } else { " take" },
        Bytes(bytes).short(),
        percent(bytes, case.memory.peak.max(1)),
        match (is_remedied, is_ring) {
            (true, true) => format!(": {}", finding.less(" if they are computed again in the backward pass")),
            (true, false) => format!(": {}", finding.less(" if computed block by block")),
            (false, _) => String::new(),
        }
    );
    let side = |t: &AtPeak| case.node(t.buffer).and_then(|node| repeated(&node.dimensions));
    // As many samples as positions are no rows.
    let is_batch = case.memory.data.iter().any(|data| data.batch() == sequence);
    let rows_of = |t: &AtPeak, sequence: i64| {
        let times = case.node(t.buffer).map_or(0, |node| node.dimensions.iter().filter(|&&it| it == sequence).count());
        times > 2 && !is_batch
    };
    let window = || {
        let windows: Option<FastSet<i64>> = held.iter().map(|t| window(case, case.node(t.buffer)?)).collect();
        windows.filter(|windows| windows.len() == 1).and_then(|windows| windows.into_iter().next())
    };
    let (pair, growth) = if case.memory.kept.are_crossed || sequence < LEAST_POSITIONS {
        ("pair of positions of two sequences".to_owned(), "product of the two lengths".to_owned())
    } else if held.iter().all(|t| side(t) == Some(sequence) && rows_of(t, sequence)) {
        // As in triangle attention, for each row of a pair representation.
        (format!("pair of {sequence} positions in each of {sequence} rows"), "cube of the sequence length".to_owned())
    } else if held.iter().all(|t| side(t) == Some(sequence)) {
        (format!("pair of {sequence} positions"), "square of the sequence length".to_owned())
    } else if let Some(window) = window() {
        (format!("position and each of {window} positions around it"), format!("length times these {window}"))
    } else {
        ("pair of positions".to_owned(), "product of the lengths".to_owned())
    };
    // What a mask fills in has the same shape where it is broadcast to all scores.
    let is_stack = |t: &AtPeak| case.memory.kept.is_stack(t.family);
    let is_fill = |t: &AtPeak| !is_stack(t) && case.name(t.family).ends_with(BROADCAST);
    let (fills, scores): (Vec<&AtPeak>, Vec<&AtPeak>) = held.iter().copied().partition(|t| is_fill(t));
    let (fills, scores) = if scores.is_empty() { (scores, fills) } else { (fills, scores) };
    // So does what dropout draws for each of them.
    let (others, scores): (Vec<&AtPeak>, Vec<&AtPeak>) = scores.into_iter().partition(|t| is_drawn(case, t));
    let (drawn, scores) = if scores.is_empty() { (0, others) } else { (drawn, scores) };
    // And a bias, such as one by relative position, where that is spread before it is added.
    let (spread, scores): (Vec<&AtPeak>, Vec<&AtPeak>) = scores.into_iter().partition(|t| is_spread(case, t));
    let (spread, scores) = if scores.is_empty() { (scores, spread) } else { (spread, scores) };
    let spread = spread.iter().map(|t| t.size).total();
    let filled: u64 = fills.iter().map(|t| t.size).total();
    let mut more = String::new();
    for (bytes, what) in [
        (filled, "what a mask fills in, broadcast to their shape"),
        (spread, "a bias, broadcast to their shape"),
        (drawn, "what dropout draws for each of them"),
    ] {
        if case.is_worth(bytes) {
            let _ = write!(more, ", and {} more is {what}", Bytes(bytes).short());
        }
    }
    finding.why = format!(
        "At the peak {} one score for each {pair}{}; the largest is {}{more}. Scores grow with the {growth}; {}.",
        counted(scores.len(), "temporary holds", "temporaries hold"),
        gradients_among(case, &scores),
        case.describe_first(&scores),
        if is_ring {
            "keys come from other devices block by block (`ppermute`), but the backward pass keeps the scores of every block"
        } else if is_one_block {
            "they are no longer than one block, so that computing them block by block saves nothing"
        } else {
            "block-wise attention never materialises them in full"
        }
    );
    if is_one_block && !is_remedied {
        // Said above.
    } else if is_remedied {
        finding.why.push_str(&case.unlike(&finding, bytes));
    } else {
        finding.why.push_str(" By how much the peak falls with that alone cannot be told.");
    }
    if is_ring {
        finding.advice.push("`jax.checkpoint` on what is computed for each block, or on the layer: the blocks' scores are computed again, one block at a time".to_owned());
        finding.advice.push("or a kernel for ring attention with a backward pass of its own, which keeps one number for each row of scores".to_owned());
    } else if is_one_block && !is_remedied {
        if !case.memory.has_checkpoints() && case.memory.has_backward() {
            finding.advice.extend(checkpointed(case, &held).map(|of_layer| {
                format!("`jax.checkpoint` around the attention alone, where nothing else reads the scores: those of one layer at a time ({}) stay live, with their gradient", Bytes(of_layer).short())
            }));
        }
    } else {
        advise(case, &mut finding, &held);
        if case.is_worth(filled) {
            finding.advice.push("or a mask without batch and heads, of positions by positions, that is added to the scores: what it fills in need not be as large as they are".to_owned());
        }
    }
    // Same results up to the order of summation, but for what is dropped elsewhere.
    // cuDNN's attention takes 16 bits alone: queries, keys and values of a program in 32 bits are rounded for it.
    let is_rounded = case.memory.is_gpu && !computes_in_16_bits(case);
    finding.changes_results = if has_dropout(case) || is_rounded { ChangesResults::Maybe } else { ChangesResults::No };
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Whether a temporary with the shape of scores is a smaller array, broadcast to it, or a copy of that.
fn is_spread(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    let program = case.program;
    let made = || {
        let at = computed(program, Value::of_buffer(program, t.buffer)?).at;
        let from = program.instructions.operands_of(at).first().filter(|&&row| row != NO_ROW)?;
        let elements = program.shape_of(InstructionId(*from))?.root().element_count();
        (program.opcode_name(at) == "broadcast").then_some(elements)
    };
    made().is_some_and(|elements| elements > 1)
}

/// Whether a temporary with the shape of scores is made of random bits.
pub fn is_drawn(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    !case.memory.kept.is_stack(t.family) && is_draw(case.name(t.family))
}

/// How many positions each one looks at in attention by blocks of a sequence: the last two dimensions of the scores are
/// those of a block and of the positions around it, and blocks and their positions make up the length of the data.
fn window(case: &ProgramContext<'_>, node: &ShapeNode) -> Option<i64> {
    let [before @ .., of_block, window] = &node.dimensions[..] else { return None };
    let is_length = |size: i64| case.memory.data.iter().any(|data| data.dimensions.iter().skip(1).any(|&d| d == size));
    let is_divided = before.iter().any(|&blocks| blocks > 1 && is_length(blocks.saturating_mul(*of_block)));
    (is_divided && window > of_block && !node.dimensions.iter().any(|&size| is_length(size))).then_some(*window)
}

/// Whether dropout on the probabilities is in the way of block-wise attention: without it results change.
pub fn has_dropout(case: &ProgramContext<'_>) -> bool {
    match in_the_way(case) {
        None | Some(InTheWay::NoSoftmax) => false,
        Some(InTheWay::Dropout) => true,
        Some(InTheWay::Bias(_) | InTheWay::Relative) => drops_probabilities(case),
    }
}

/// What is in the way of block-wise attention, worked out once.
fn in_the_way<'c>(case: &'c ProgramContext<'_>) -> Option<&'c InTheWay> {
    let find = || {
        let held = case.held(&case.memory.kept.scores);
        if held.is_empty() { None } else { find_in_the_way(case, &held) }
    };
    once(&case.in_the_way, find).as_ref()
}

/// How much more checkpoints of the layers save than attention by blocks, in words, where that is much and no finding of its
/// own says so: what else the layers keep is not at the peak, or not much of it.
fn of_layers(case: &ProgramContext<'_>, finding: &Finding, has_backward: bool) -> Option<String> {
    if !has_backward || !case.memory.kept.stacks.is_empty() || case.memory.has_checkpoints() {
        return None;
    }
    let is_other = |t: &&AtPeak| !case.memory.kept.has_own_remedy(t.family) && case.is_kept_of_forward(t);
    // Where these are much, they have a finding.
    if case.is_share(case.peak.iter().filter(is_other).map(|t| t.size).total(), activations::OWN_SHARE) {
        return None;
    }
    let edit = Edit::Remat(Checkpoint::every_layer());
    let prediction = case.try_out(std::slice::from_ref(&edit));
    let saved = case.saved(&prediction);
    let more = saved.saturating_sub(finding.saves_bytes().map_or(0, |bytes| bytes.0));
    (prediction.undecided.is_none() && case.is_worth(more)).then(|| {
        format!("{}: {} less with that alone (`{edit}`)", Library::of(case).remat(EVERY), Bytes(saved).short())
    })
}

/// Whether a temporary is a gradient.
fn is_gradient(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    case.analysis.classes(case.program).of(t.buffer) == Class::Gradient
}

/// How many of some scores are gradients of them, in words.
fn gradients_among(case: &ProgramContext<'_>, scores: &[&AtPeak]) -> String {
    match scores.iter().filter(|t| is_gradient(case, t)).count() {
        0 => String::new(),
        count if count == scores.len() => ", or rather its gradient".to_owned(),
        1 => ", one of them its gradient".to_owned(),
        count => format!(", {count} of them its gradient"),
    }
}

/// How to keep fewer scores, and what block-wise attention keeps of them where nothing is in its way.
fn advise(case: &ProgramContext<'_>, finding: &mut Finding, held: &[&AtPeak]) {
    let has_backward = case.memory.has_backward();
    let in_the_way = in_the_way(case);
    if has_backward && in_the_way.is_none() {
        finding.why.push_str(&kept(case, held, finding.effect.is_some()));
    }
    let checkpoint = if has_backward { checkpointed(case, held) } else { None };
    let each = if has_backward { ", with `jax.checkpoint` around each," } else { "" };
    match in_the_way {
        None => {
            finding.advice.push(format!("{}{}{}", blockwise(case), padded(case, held), soft_capped(case, held)));
            finding.advice.extend(of_layers(case, finding, has_backward));
            finding.advice.extend(checkpoint.map(|of_layer| {
                format!(
                    "or `jax.checkpoint` around the attention alone, which needs no kernel: the scores of one layer at a time ({}) stay live, with their gradient",
                    Bytes(of_layer).short()
                )
            }));
        }
        Some(obstacle) => {
            finding.advice.extend(checkpoint.map(|of_layer| {
                format!(
                    "`jax.checkpoint` around the attention alone: only the scores of one layer at a time ({}) stay live, with their gradient{}",
                    Bytes(of_layer).short(),
                    other_generator(case)
                )
            }));
            let and_dropout = if !case.memory.is_gpu && !matches!(obstacle, InTheWay::Dropout) && has_dropout(case) {
                "; nor has either dropout on the probabilities, which this model uses"
            } else {
                ""
            };
            let words = obstacle.words(case.memory.is_gpu, each);
            finding.advice.push(format!("{}{words}{and_dropout}", blockwise(case)));
        }
    }
}

/// What a checkpoint needs where it would make the compiler hold all random bits of dropout at once, in words; nothing
/// elsewhere.
pub fn other_generator(case: &ProgramContext<'_>) -> String {
    let again = |bits: Bytes| match Library::of(case).other_generator() {
        Some(keys) => format!(
            ", but only with {keys}: with JAX's default one, the random bits of dropout are computed again in some {} at once",
            bits.short()
        ),
        None => format!(
            ", but the random bits of dropout are then computed again in some {} at once, and Keras' seeds fit no other generator",
            bits.short()
        ),
    };
    case.memory.random_bits_again(case.program).map_or_else(String::new, again)
}

/// The bytes of one layer's scores, where a checkpoint around the attention alone saves much by leaving no others: in the
/// backward pass their gradient is live too, and where the compiler or a checkpoint recomputes the scores now, hardly more
/// than that may be.
fn checkpointed(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<u64> {
    let kept = &case.memory.kept;
    let mut by_layer: BTreeMap<Result<&str, usize>, (usize, u64)> = BTreeMap::new();
    let mut all = 0u64;
    for t in held.iter().filter(|t| case.memory.is_kept(t.family)) {
        all = all.saturating_add(t.size);
        let stack = kept.stacks.iter().find(|stack| stack.family as usize == t.family);
        let slices = stack.map_or(1, |stack| u64::try_from(stack.layers).unwrap_or(1).max(1));
        let layer = kept.layer(t.family).filter(|_| stack.is_none()).map(|layer| layer.name.as_str());
        let (count, sum) = by_layer.entry(layer.ok_or(t.family)).or_default();
        // Largest first. Layers may share a name: one has scores and probabilities.
        if *count < ARRAYS_OF_LAYER {
            (*count, *sum) = (*count + 1, sum.saturating_add(t.size / slices));
        }
    }
    let of_layer = by_layer.into_values().map(|row| row.1).max()?;
    case.is_worth(all.saturating_sub(of_layer.saturating_mul(2))).then_some(of_layer)
}

/// Positions that the kernels of JAX take at once, in words where a sequence is not a multiple of that long: splash attention
/// wants its blocks to divide the positions, flash attention blocks of 128.
fn padded(case: &ProgramContext<'_>, held: &[&AtPeak]) -> String {
    if case.memory.is_gpu {
        return String::new();
    }
    let positions = |t: &&AtPeak| {
        let own = case.memory.kept.of_layer(t.family, case.node(t.buffer)?);
        // Of queries and keys that are not as many, the scores' last two dimensions.
        let of_both = own.get(own.len().saturating_sub(2)..).unwrap_or_default();
        let positions = repeated(own).map_or_else(|| of_both.to_vec(), |positions| vec![positions]);
        // Heads of queries that share one of keys are fewer.
        positions.into_iter().filter(|&size| size >= LEAST_POSITIONS && size % BLOCK != 0).max()
    };
    // An encoder's and a decoder's, longest first.
    let mut uneven: Vec<i64> = held.iter().filter_map(positions).collect();
    uneven.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    uneven.dedup();
    if uneven.is_empty() {
        return String::new();
    }
    let padded = uneven.iter().map(|size| format!("the {size} to {}", size + BLOCK - size % BLOCK)).collect();
    let whose = if Library::of(case) == Library::Keras { "; the kernel takes" } else { "; they take" };
    format!(
        "{whose} multiples of {BLOCK} positions: pad {}, with segment ids that leave out what is added",
        in_a_row(padded)
    )
}

/// Which kernel takes scores that a `tanh` keeps in bounds, in words where there is one, as in Gemma 2.
fn soft_capped(case: &ProgramContext<'_>, held: &[&AtPeak]) -> &'static str {
    let has_own = Library::of(case) == Library::MaxText || case.memory.is_gpu;
    if !has_own && is_any_made(case, held, "tanh", &|at| is_scaled(case.program, at)) {
        "; the scores are capped by a `tanh`, for which splash attention has `attn_logits_soft_cap` and JAX's flash attention nothing"
    } else {
        ""
    }
}

/// Whether a value is multiplied next, as scores are that a `tanh` keeps in bounds; in a GELU, 1 is added to it.
fn is_scaled(program: &Program, at: InstructionId) -> bool {
    let Some(computation) = program.computation_of(at).and_then(|own| program.computations.get(own.index())) else {
        return false;
    };
    let reads = |row: &InstructionId| program.instructions.operands_of(*row).contains(&at.0);
    (at.0 + 1..computation.end).map(InstructionId).find(reads).is_none_or(|row| program.opcode_name(row) == "multiply")
}

/// Whether an operation makes an array with the dimensions of some scores, in any order, and passes a test.
fn is_any_made(
    case: &ProgramContext<'_>,
    held: &[&AtPeak],
    opcode: &str,
    accept: &dyn Fn(InstructionId) -> bool,
) -> bool {
    let program = case.program;
    // Of a stack of scores, each step makes one layer's.
    let of_layer = |t: &&AtPeak| Some(outline(case.memory.kept.of_layer(t.family, case.node(t.buffer)?)));
    let outlines: FastSet<Vec<i64>> = held.iter().filter_map(of_layer).collect();
    // Cheaper than their dimensions in order.
    let elements = |dimensions: &Vec<i64>| dimensions.iter().map(|size| size.unsigned_abs()).product();
    let counts: FastSet<u64> = outlines.iter().map(elements).collect();
    let has_their_shape = |node: &ShapeNode| {
        node.dimensions.len() > 1
            && counts.contains(&node.element_count())
            && outlines.contains(&outline(&node.dimensions))
    };
    let meant = program.opcodes.named(|name| name == opcode);
    let all = program.instructions.opcode.iter().zip(0u32..);
    all.filter(|(opcode, _)| meant.contains(opcode))
        .map(|(_, row)| InstructionId(row))
        .any(|at| program.shape_of(at).is_some_and(|shape| has_their_shape(shape.root())) && accept(at))
}

/// Whether scores by relative position are shifted into place: padded by a column, or to twice as many, and read anew in
/// rows of the scores' length.
fn are_shifted(case: &ProgramContext<'_>, held: &[&AtPeak]) -> bool {
    let program = case.program;
    let scores: FastSet<Vec<i64>> =
        held.iter().filter_map(|t| case.node(t.buffer)).map(|node| outline(&node.dimensions)).collect();
    // What is left of the scores' dimensions where the padded one is taken back.
    let is_padded = |dimensions: &[i64]| {
        (0..dimensions.len()).any(|place| {
            let with = |size: i64| {
                let mut own = dimensions.to_vec();
                own[place] = size;
                own.sort_unstable();
                size >= LEAST_POSITIONS && scores.contains(&own)
            };
            let size = dimensions[place];
            with(size - 1) || (size % 2 == 0 && with(size / 2))
        })
    };
    program.instructions.ids().any(|at| {
        program.opcode_name(at) == "pad"
            && program.shape_of(at).is_some_and(|shape| {
                let node = shape.root();
                node.element_type.is_float() && node.dimensions.len() > 3 && is_padded(&outline(&node.dimensions))
            })
    })
}

/// What block-wise attention keeps of the scores for the backward pass. Without a scan the compiler makes the rows that
/// the backward kernel of JAX's flash attention reads as soon as it has their numbers.
fn kept(case: &ProgramContext<'_>, held: &[&AtPeak], is_predicted: bool) -> String {
    if case.memory.is_gpu {
        return " Not counted is the logsumexp of each row, which block-wise attention keeps for the backward pass."
            .to_owned();
    }
    // One number each of the maximum and the sum, in 32 bits, for each row and column of a block.
    let rows_of = |t: &&AtPeak| {
        let node = case.node(t.buffer)?;
        let keys = repeated(&node.dimensions).and_then(|keys| u64::try_from(keys).ok()).filter(|&keys| keys > 0)?;
        case.is_kept_of_forward(t).then(|| node.element_count() / keys)
    };
    // Once for each layer, of which several arrays of scores may be there.
    let mut of_layers: BTreeMap<String, u64> = BTreeMap::new();
    for t in held {
        let layer = case.memory.kept.layer(t.family).map_or_else(|| t.family.to_string(), |layer| layer.name.clone());
        let rows = of_layers.entry(layer).or_default();
        *rows = rows_of(t).unwrap_or(0).max(*rows);
    }
    let rows = of_layers.into_values().fold(0u64, u64::saturating_add);
    let bytes = rows.saturating_mul(BLOCK.unsigned_abs()).saturating_mul(2 * 4);
    // Scores that the compiler computes again are not there, but what kernels keep of them would be.
    let size = if case.is_worth(bytes) && case.memory.rematerialised == 0 {
        format!(", up to {} of these", Bytes(bytes).short())
    } else {
        String::new()
    };
    let two = if held.iter().any(|t| case.memory.kept.is_stack(t.family)) {
        "maximum and sum".to_owned()
    } else {
        format!("maximum and sum, which the compiler may spread to {BLOCK} columns each{size}")
    };
    let largest = held.first().and_then(|t| case.node(t.buffer));
    let small = largest.and_then(|scores| case.memory.small_heads(case.program, scores));
    let padded = small.map_or_else(String::new, |elements| {
        let allowed = if is_predicted { ", which the prediction allows for" } else { "" };
        format!(" Both kernels pad heads of {elements} elements to {BLOCK}{allowed}.")
    });
    format!(
        " Not counted are the softmax statistics of each row that these kernels keep for the backward pass: splash attention its logsumexp, JAX's flash attention {two}.{padded}"
    )
}

/// Whether most scores are stacks that loops save, in a program whose devices pass on keys in turn.
fn is_of_ring(case: &ProgramContext<'_>, held: &[&AtPeak]) -> bool {
    let program = case.program;
    let all: u64 = held.iter().map(|t| t.size).total();
    let stacked: u64 = held.iter().filter(|t| case.memory.kept.is_stack(t.family)).map(|t| t.size).total();
    let passes_on = |at: InstructionId| {
        program.opcode_name(at).starts_with("collective-permute") && program.text.op_name(at).ends_with("/ppermute")
    };
    stacked.saturating_mul(2) > all && program.instructions.ids().any(passes_on)
}

/// Words in the paths of arguments that are trained biases of scores: by the distance of the positions, as in T5 or Swin.
const BIASES: [&str; 4] = ["relative_attention_bias", "relative_position_bias", "rel_pos_bias", "position_bias"];

/// Words in the names of operations that add to scores what depends on the distance of the positions, as in Segment
/// Anything's encoder, or DeBERTa's, which gathers it for each pair; PyTorch's product of batches that are added to another
/// array is that of BLOOM's scores and its slopes.
const BY_DISTANCE: [&str; 5] = ["relative_position", "rel_pos", "alibi", "disentangled", "aten::baddbmm"];

/// Words in the names of operations that compute a softmax of scores.
const SOFTMAX: [&str; 2] = ["softmax", "dot_product_attention"];

/// Words in the names of operations that draw what dropout drops.
const DRAWS: [&str; 3] = ["bernoulli", "dropout", "random_bits"];

/// What is in the way, from the scores at the peak.
fn find_in_the_way(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<InTheWay> {
    let mut biases: Vec<_> =
        case.arguments().filter(|argument| BIASES.iter().any(|word| argument.1.contains(word))).collect();
    biases.sort_by_key(|argument| std::cmp::Reverse(case.memory.base[argument.0].size));
    if let Some((_, path, ..)) = biases.first() {
        return Some(InTheWay::Bias((*path).to_owned()));
    }
    let program = case.program;
    let is_by_distance = |at: InstructionId| {
        let name = program.text.op_name(at).to_ascii_lowercase();
        BY_DISTANCE.iter().any(|word| name.contains(word))
    };
    let is_bias = |at: InstructionId| is_by_distance(at) || adds_bias(case, at);
    if are_shifted(case, held) || is_any_made(case, held, "add", &is_bias) {
        return Some(InTheWay::Relative);
    }
    let elements = |at: InstructionId| program.shape_of(at).map(|shape| shape.root().element_count());
    let of_scores: FastSet<u64> =
        held.iter().filter_map(|t| case.node(t.buffer)).map(crate::model::ShapeNode::element_count).collect();
    let is_exponential = |at: InstructionId| {
        program.opcode_name(at) == "exponential" && elements(at).is_some_and(|count| of_scores.contains(&count))
    };
    // Of a stack of scores each step makes one.
    let is_stacked = held.iter().any(|t| case.memory.kept.is_stack(t.family));
    // A softmax may be computed in parts of another size.
    let is_named = |at: InstructionId| {
        let name = program.text.op_name(at).to_ascii_lowercase();
        SOFTMAX.iter().any(|word| name.contains(word))
    };
    let has = |accept: &dyn Fn(InstructionId) -> bool| program.instructions.ids().any(accept);
    if !is_stacked && !has(&is_exponential) && !has(&is_named) {
        return Some(InTheWay::NoSoftmax);
    }
    drops_probabilities(case).then_some(InTheWay::Dropout)
}

/// Whether scores are made where something drawn is compared with the share that is dropped, worked out once.
fn drops_probabilities(case: &ProgramContext<'_>) -> bool {
    let is_drawn = |at: InstructionId| {
        case.program.text.op_name(at).split('/').any(|part| {
            let part = part.to_ascii_lowercase();
            DRAWS.iter().any(|word| part.contains(word))
        })
    };
    let held = || case.held(&case.memory.kept.scores);
    *once(&case.drops_probabilities, || is_any_made(case, &held(), "compare", &is_drawn))
}

/// Whether a sum adds to scores what is the same for all samples but not for all heads, such as a term for each distance: an
/// array of heads, positions and positions. A mask has no heads, or samples in their place.
fn adds_bias(case: &ProgramContext<'_>, at: InstructionId) -> bool {
    let program = case.program;
    let outline_of = |at: InstructionId| program.shape_of(at).map(|shape| outline(&shape.root().dimensions));
    let Some(own) = outline_of(at) else { return false };
    let Some(positions) = repeated(&own) else { return false };
    // Of windows of pictures, what is the same for all heads is a mask.
    let before_positions = program.shape_of(at).and_then(|shape| shape.root().dimensions.iter().rev().nth(2).copied());
    let parts = case.memory.summed_parts(program).max(case.memory.micro_batches(program));
    let samples = |size: i64| {
        let batch = case.memory.data.first().map_or(0, |data| data.batch());
        size == batch || size.saturating_mul(parts) == batch
    };
    let operand = |at: InstructionId| program.instructions.operands_of(at).first().map(|&row| InstructionId(row));
    program.instructions.operands_of(at).iter().any(|&row| {
        let mut from = InstructionId(row);
        if program.opcode_name(from) == "convert" {
            let Some(inner) = operand(from) else { return false };
            from = inner;
        }
        let source = (program.opcode_name(from) == "broadcast").then(|| operand(from).and_then(outline_of)).flatten();
        let Some([heads, first, second]) = source.as_deref().and_then(|source| source.first_chunk::<3>()) else {
            return false;
        };
        let is_whole = source.as_ref().is_some_and(|source| {
            source.len() == 3 && (own.len() == 4 || (own.len() > 4 && before_positions == Some(*heads)))
        });
        is_whole && (*first, *second) == (positions, positions) && *heads < positions && !samples(*heads)
    })
}

/// How to compute the attention of a program block by block.
pub(super) fn blockwise(case: &ProgramContext<'_>) -> &'static str {
    let keras = keras_attention(case, &case.held(&case.memory.kept.scores));
    let library = Library::of(case);
    if case.memory.is_gpu {
        return library.blockwise_attention_on_gpu(keras);
    }
    library.blockwise_attention(keras)
}

/// Sources of the attention of Keras and KerasHub that can run as flash attention.
const KERAS_SOURCES: [&str; 2] = ["/multi_head_attention.py", "/cached_multi_head_attention.py"];

/// The source of `keras.ops.dot_product_attention`, which maps `jax.nn`'s over the batch, and of other operations, which
/// do not.
const KERAS_OPERATIONS: &str = "/keras/src/backend/jax/nn.py";
const MAPPED: &str = "/vmap(";

/// What of Keras makes the scores and has a switch for flash attention; that of a model's own, such as the disentangled
/// attention of DeBERTa, has none.
fn keras_attention(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<KerasAttention> {
    let made = || held.iter().filter_map(|t| case.program.buffers.instruction_of(t.buffer));
    let has_line = |at: InstructionId, is_meant: &dyn Fn(&str) -> bool| {
        let metadata = case.program.text.metadata(at);
        metadata.source.iter().chain(&metadata.stack).any(|line| is_meant(&line.file))
    };
    let is_layer = |file: &str| KERAS_SOURCES.iter().any(|source| file.ends_with(source));
    if made().any(|at| has_line(at, &is_layer)) {
        return Some(KerasAttention::Layer);
    }
    let is_mapped = |at: InstructionId| case.program.text.op_name(at).contains(MAPPED);
    let is_operation = |file: &str| file.ends_with(KERAS_OPERATIONS);
    made().any(|at| is_mapped(at) && has_line(at, &is_operation)).then_some(KerasAttention::Operation)
}
