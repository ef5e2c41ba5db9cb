//! Rule `state_in_place`: programs whose memory is state that they update in place, such as a decoder's cache.

use std::collections::HashSet;

use super::finding::{ChangesResults, Finding};
use super::gathered::is_gather;
use super::heads;
use super::layout_copy::{copied_argument, sizes_in_memory};
use super::library::Library;
use super::program_context::{AtPeak, ProgramContext, Total, counted, listed};
use crate::analysis::class::Class;
use crate::analysis::flow::label::COPY_OF;
use crate::analysis::flow::loops::Role as LoopRole;
use crate::analysis::padding::by_dimension;
use crate::analysis::what_if::{Arguments, Edit, Role};
use crate::model::{
    BufferId, Bytes, Category, ElementType, InstructionId, Opcode, Program, ShapeNode, outline, percent,
};

/// Name of the rule.
pub const NAME: &str = "state_in_place";

/// Least share of allocated bytes at which state is the cause.
const SHARE: f64 = 0.30;

/// The same of the state alone, where it is the cause together with copies of it.
const OWN_SHARE: f64 = 0.15;

/// Largest share of allocated bytes that temporaries may take.
const TEMPORARIES: f64 = 0.05;

/// Whether an instruction updates part of an array in place.
fn updates(program: &Program, instruction: InstructionId) -> bool {
    let is_update = |row: u32| {
        matches!(program.instructions.opcode.get(row as usize), Some(&(Opcode::DYNAMIC_UPDATE_SLICE | Opcode::SCATTER)))
    };
    if is_update(instruction.0) {
        return true;
    }
    let Some(shape) = program.shape_of(instruction) else { return false };
    program.instructions.called_by(instruction).iter().any(|called| {
        program.computations.get(called.index()).is_some_and(|c| {
            (c.start..c.end).any(|row| {
                is_update(row)
                    && program
                        .shape_of(InstructionId(row))
                        .is_some_and(|inner| shape.nodes.iter().any(|node| node.dimensions == inner.root().dimensions))
            })
        })
    })
}

/// Rows of the arguments that a program updates in place, or would if they were donated.
fn state(case: &ProgramContext<'_>) -> Vec<usize> {
    let program = case.program;
    let made_by_update = |buffer: BufferId| program.buffers.instruction_of(buffer).is_some_and(|i| updates(program, i));
    let results: Vec<BufferId> = case
        .memory
        .base
        .iter()
        .filter(|base| matches!(base.role, Role::Result(_)) && made_by_update(base.buffer))
        .map(|base| base.buffer)
        .collect();
    let same = |a: BufferId, b: BufferId| {
        let (Some(a), Some(b)) = (case.node(a), case.node(b)) else { return false };
        a.dimensions == b.dimensions && a.element_type == b.element_type
    };
    case.arguments()
        .filter(|&(row, _, _, is_donated)| {
            let base = &case.memory.base[row];
            if is_donated {
                let allocation = &program.allocations[base.allocation.index()];
                program.assigned_to(allocation).iter().any(|a| made_by_update(a.buffer))
            } else {
                results.iter().any(|&result| same(result, base.buffer))
            }
        })
        .map(|a| a.0)
        .collect()
}

/// State smaller than this fraction (1/50) of its largest array is not named.
const SMALL_PART: u64 = 50;

/// Into how many parts an argument is sharded.
pub(super) fn parts(case: &ProgramContext<'_>, row: usize) -> i64 {
    let Role::Argument { number, .. } = &case.memory.base[row].role else { return 1 };
    let sharding = case.program.sharding_of_parameter(*number);
    sharding.map_or(1, crate::model::Sharding::parts)
}

/// Temporaries at the peak with the shape of a cache, presumably copies of it.
struct Twins {
    /// Bytes of all of them.
    all: u64,
    /// Those that are neither gathered from other devices nor made for another layout or in a wider type, with their bytes.
    second: Vec<(BufferId, u64)>,
    /// Bytes of those in a wider type than the caches.
    widened: u64,
    /// Those that are padded where the cache is not: a loop works on them.
    padded: Vec<(BufferId, u64)>,
    /// Those in another order of dimensions that no finding about copies tells: a loop works on them, too.
    relaid: Vec<(BufferId, u64)>,
}

/// How many times its bytes an array takes at least that counts as padded.
const PADDED: f64 = 1.25;

/// Looks for copies of caches at the peak.
fn twins(case: &ProgramContext<'_>) -> Twins {
    let classes = case.analysis.classes(case.program);
    let is_cache = |row: usize| classes.of(case.memory.base[row].buffer) == Class::Cache;
    let caches = || case.arguments().filter(|argument| is_cache(argument.0));
    let nodes = || caches().filter_map(|(row, ..)| case.node(case.memory.base[row].buffer));
    let shapes: HashSet<Vec<i64>> = nodes().map(|node| outline(&node.dimensions)).collect();
    let layouts: HashSet<(&[i64], Option<Vec<u32>>)> =
        nodes().map(|node| (node.dimensions.as_slice(), node.order_in_memory())).collect();
    let sizes: HashSet<&[i64]> = layouts.iter().map(|layout| layout.0).collect();
    let is_twin = |t: &&AtPeak| case.node(t.buffer).is_some_and(|node| shapes.contains(&outline(&node.dimensions)));
    // What a loop works on in another layout is a copy of a copy.
    let is_relaid = |node: &ShapeNode| {
        let own = node.dimensions.as_slice();
        sizes.contains(own) && !layouts.contains(&(own, node.order_in_memory()))
    };
    // On a GPU such a copy is a transposition: of as many elements, under other dimensions. What a loop writes to it names it
    // within.
    let is_named_copy = |t: &&AtPeak| {
        let label = |buffer| case.analysis.labels(case.program).of(case.program, buffer);
        let is_so = |buffer| label(buffer).is_some_and(|label| label.text.starts_with(COPY_OF));
        is_so(t.buffer) || is_so(case.root(t))
    };
    let is_transposed = |t: &&AtPeak| {
        case.node(t.buffer).is_some_and(|node| !sizes.contains(node.dimensions.as_slice())) && is_named_copy(t)
    };
    let is_padded = |node: &ShapeNode| {
        let padded = node.padded_size().map_or(0, |bytes| bytes.0);
        padded as f64 >= node.unpadded_size().0 as f64 * PADDED
    };
    let is_packed = nodes().all(|node| !is_padded(node));
    let is_padded_copy = |t: &&AtPeak| is_packed && case.node(t.buffer).is_some_and(is_padded);
    let widest = nodes().map(|node| node.element_type.storage_bits()).max().unwrap_or(0);
    let is_widened = |t: &&AtPeak| {
        case.node(t.buffer).is_some_and(|node| node.element_type.storage_bits() > widest) && !is_gather(case, t)
    };
    let is_other = |t: &&AtPeak| {
        is_gather(case, t)
            || is_widened(t)
            || copied_argument(case, t.buffer).is_some()
            || case.node(t.buffer).is_some_and(is_relaid)
            || is_transposed(t)
            || is_padded_copy(t)
    };
    let all = case.peak.iter().filter(is_twin).map(|t| t.size).total();
    let is_second = |t: &&AtPeak| is_twin(t) && !is_other(t);
    let second = case.peak.iter().filter(is_second).map(|t| (t.buffer, t.size)).collect();
    let padded = case.peak.iter().filter(is_twin).filter(is_padded_copy).map(|t| (t.buffer, t.size)).collect();
    let is_worked_on = |t: &&AtPeak| {
        !is_gather(case, t)
            && copied_argument(case, t.buffer).is_none()
            && !is_padded_copy(t)
            && (is_transposed(t) || case.node(t.buffer).is_some_and(is_relaid) && is_named_copy(t))
    };
    let relaid = case.peak.iter().filter(is_twin).filter(is_worked_on).map(|t| (t.buffer, t.size)).collect();
    let widened = case.peak.iter().filter(is_twin).filter(is_widened).map(|t| t.size).total();
    Twins { all, second, widened, padded, relaid }
}

/// What changes save once all is donated that can be, in words, where that is clearly less.
fn once_donated(case: &ProgramContext<'_>, edits: &[Edit]) -> Option<String> {
    let donation = Edit::Donate(Arguments::all());
    let donated = case.saved(&case.try_out(std::slice::from_ref(&donation)));
    if !case.is_worth(donated) {
        return None;
    }
    let both = case.saved(&case.try_out(&[&[donation], edits].concat()));
    let then = both.saturating_sub(donated);
    let is_clearly_less = then as f64 <= case.saved(&case.try_out(edits)) as f64 * CLEARLY_LESS;
    is_clearly_less.then(|| format!(" Once it is donated, 8 bits save {}.", Bytes(then).short()))
}

/// Share of a saving that is clearly less.
const CLEARLY_LESS: f64 = 0.75;

/// What part of the largest copy another takes at least whose order is told.
const SMALL: u64 = 16;

/// How to do without copies in another order of dimensions, in words.
fn in_their_order(case: &ProgramContext<'_>, relaid: &[(BufferId, u64)]) -> Option<String> {
    let bytes = relaid.iter().map(|copy| copy.1).total();
    if !case.is_worth(bytes) {
        return None;
    }
    let order = |buffer: BufferId| {
        let sizes: Vec<String> = sizes_in_memory(case.node(buffer)?)?.iter().map(ToString::to_string).collect();
        Some(format!("[{}]", sizes.join(",")))
    };
    // What is small beside the cache, such as a mask, has an order of its own.
    let largest = relaid.iter().map(|copy| copy.1).max().unwrap_or(0);
    let large = relaid.iter().filter(|copy| copy.1.saturating_mul(SMALL) >= largest);
    let mut orders: Vec<String> = large.filter_map(|copy| order(copy.0)).collect();
    orders.sort();
    orders.dedup();
    // What the program needs then is worth a word where it does not fit now.
    let families: Vec<usize> = relaid.iter().filter_map(|copy| case.memory.families.of(copy.0)).collect();
    let needs = || case.memory.without(case.program, &families).expected();
    let then = match case.memory.capacity.filter(|_| case.fits_already() == Some(false)) {
        Some(capacity) => match needs() {
            needs if needs.0 <= capacity => format!("; the program then needs {} at most, and fits", needs.short()),
            needs => format!("; the program then needs up to {}", needs.short()),
        },
        None => String::new(),
    };
    Some(format!(
        "{} of temporaries are copies of it in another layout, on which the loop works: make the cache with its dimensions in the order in which the loop's products read it ({}), and no copy is needed{then}",
        Bytes(bytes).short(),
        listed(&orders, 3)
    ))
}

/// The dimension of an array whose padding takes most.
fn padded_dimension(node: &ShapeNode) -> Option<u64> {
    by_dimension(node).into_iter().max_by_key(|dimension| dimension.bytes).map(|dimension| dimension.padding.size)
}

/// How to do without copies that are padded, in words.
fn without_padding(case: &ProgramContext<'_>, padded: &[(BufferId, u64)]) -> Option<String> {
    let bytes = padded.iter().map(|copy| copy.1).total();
    let node = padded.iter().max_by_key(|copy| copy.1).and_then(|copy| case.node(copy.0))?;
    let last = padded_dimension(node)?;
    case.is_worth(bytes).then(|| {
        format!(
            "{} of temporaries are copies of it that the loop works on, with a dimension of {last} padded, which lies packed in the cache: merge this dimension with a neighbour (`reshape`) where the cache is made, so that the loop can update the cache itself",
            Bytes(bytes).short()
        )
    })
}

/// Whether attention in a program reads its cache page by page, by the name of a kernel or an operation, or by an argument
/// that says which pages, or as a table of the samples gives them out.
fn is_paged(case: &ProgramContext<'_>) -> bool {
    let tells = |path: &str| ["page", "block_table"].iter().any(|word| path.contains(word));
    let is_index = |row: usize| {
        case.node(case.memory.base[row].buffer)
            .is_some_and(|node| node.element_type.is_index() && node.dimensions.len() > 1)
    };
    case.memory.data.iter().any(|data| data.pages > 0)
        || case.arguments().any(|(row, path, ..)| is_index(row) && (tells(path) || path.ends_with("tables")))
        || case.program.instructions.ids().any(|at| heads::is_paged_kernel(case.program, at))
}

/// Whether a loop collects the next values of some arguments, as results with memory of their own.
fn is_collected(case: &ProgramContext<'_>, rows: &[usize]) -> bool {
    let labels = case.analysis.labels(case.program);
    let alike = |result: BufferId| {
        let own = case.node(result).map(|node| &node.dimensions);
        rows.iter().any(|&row| case.node(case.memory.base[row].buffer).map(|node| &node.dimensions) == own)
    };
    let results = case.memory.base.iter().filter(|base| matches!(base.role, Role::Result(_)));
    results
        .map(|base| base.buffer)
        .filter(|&result| alike(result))
        .any(|result| labels.role(case.program, result).is_some_and(|part| part.role == LoopRole::Collected))
}

/// Looks for state that takes most of the memory.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let classes = case.analysis.classes(case.program);
    let Twins { all: twins, second, widened, padded, relaid } = twins(case);
    let copies = second.iter().map(|copy| copy.1).total();
    if case.is_share(case.memory.temporaries().saturating_sub(twins), TEMPORARIES) {
        return;
    }
    let mut rows = state(case);
    let caches = case.arguments().map(|a| a.0).filter(|&row| classes.of(case.memory.base[row].buffer) == Class::Cache);
    rows.extend(caches.collect::<Vec<_>>());
    rows.sort_unstable();
    rows.dedup();
    // Ignore small counters among the state: they would only make the names longer.
    let most = rows.iter().map(|&row| case.memory.base[row].size).max().unwrap_or(0);
    let counts = |row: usize| case.memory.base[row].size >= most / SMALL_PART;
    rows.retain(|&row| counts(row));
    let bytes: u64 = rows.iter().map(|&row| case.memory.base[row].size).total();
    // Copies that a loop works on are of the state, too.
    let worked_on = relaid.iter().chain(&padded).map(|copy| copy.1).total();
    let with_copies = bytes.saturating_add(worked_on);
    let is_much = case.is_share(bytes, SHARE) || case.is_share(bytes, OWN_SHARE) && case.is_share(with_copies, SHARE);
    if !is_much {
        return;
    }
    let names = case.names_of(&rows, counts);
    let largest = rows.iter().copied().max_by_key(|&row| case.memory.base[row].size);
    let node = largest.and_then(|row| case.node(case.memory.base[row].buffer));
    let mut finding = case.finding(NAME);
    let is_wide = node.is_some_and(|node| node.element_type.storage_bits() > 8);
    // What each of the arrays has beyond 8 bits an element.
    let beyond = |row: usize| {
        let bits =
            case.node(case.memory.base[row].buffer).map_or(0, |node| u64::from(node.element_type.storage_bits()));
        let size = case.memory.base[row].size;
        size - (size / bits.max(8)).saturating_mul(8).min(size)
    };
    let in_8_bits: u64 = rows.iter().map(|&row| beyond(row)).total();
    let mut is_less_in_8_bits = false;
    if is_wide {
        let to = ElementType::from_name("f8e4m3fn").unwrap_or(ElementType::BF16);
        let mut tried = case.finding(NAME);
        let saved = case.fill(&mut tried, vec![Edit::Dtype(Arguments(names.clone()), to)]);
        is_less_in_8_bits = case.is_worth(saved);
        if is_less_in_8_bits {
            finding = Finding { changes_results: ChangesResults::Yes, ..tried };
        }
    }
    finding.at_stake_bytes = Some(Bytes(bytes));
    let is_cache = largest.is_some_and(|row| classes.of(case.memory.base[row].buffer) == Class::Cache);
    let is_paged = is_cache && is_paged(case);
    let is_donated = |row: usize| matches!(case.memory.base[row].role, Role::Argument { is_donated: true, .. });
    let in_place: u64 = rows.iter().filter(|&&row| is_donated(row)).map(|&row| case.memory.base[row].size).total();
    let is_copied = case.is_worth(worked_on);
    let has_second = case.is_worth(copies);
    let is_in_place = in_place.saturating_mul(2) > bytes && !is_copied && !has_second;
    finding.title = format!(
        "{} is {} of what is allocated: {}{} ({})",
        match (is_in_place, is_cache) {
            (true, true) => "The cache, updated in place,",
            (true, false) => "State updated in place",
            (false, true) => "The cache",
            (false, false) => "State",
        },
        percent(bytes, case.allocated().max(1)),
        Bytes(bytes).short(),
        match (is_in_place, is_copied) {
            (true, _) => String::new(),
            (false, true) => "; the copies that a loop works on take more".to_owned(),
            (false, false) if has_second => format!("; second copies of it take {} more", Bytes(copies).short()),
            (false, false) => ", and its next value is a copy".to_owned(),
        },
        listed(&names, 3)
    );
    let shape = |&row: &usize| case.node(case.memory.base[row].buffer).map(|node| &node.dimensions);
    let are_alike = rows.iter().all(|row| shape(row) == largest.as_ref().and_then(shape));
    let temporaries = case.space.at_peak.by_category.iter().find(|row| row.0 == Category::Temporary);
    let others = temporaries.map_or(0, |row| row.1.0).saturating_sub(if case.is_worth(twins) { twins } else { 0 });
    finding.why = format!(
        "{}; what scales is the state itself{}.{}",
        match (others, case.is_worth(twins)) {
            (0, true) => "There are no other temporaries to speak of".to_owned(),
            (_, true) => format!("Other temporaries take only {}", Bytes(others).short()),
            (_, false) => format!("Temporaries take only {}", Bytes(others).short()),
        },
        largest
            .map(|row| {
                let arrays =
                    counted(rows.len(), "array:", if are_alike { "arrays like" } else { "arrays; the largest is" });
                format!(", {arrays} {}", case.describe(case.memory.base[row].buffer))
            })
            .unwrap_or_default(),
        match (is_cache, is_paged) {
            (true, true) if are_alike => " Its size is the number of pages times the size of one.",
            (true, true) => " The size of what has pages is their number times the size of one.",
            (true, false) =>
                if !are_latents(case, &rows) {
                    " Its size grows with the batch, with the positions, and with the number and size of key and value heads."
                } else {
                    " Its size grows with the batch, with the positions, and with the width of the latents."
                },
            (false, _) => "",
        }
    );
    finding.why.push_str(&case.counted_twice(&finding, &rows, (bytes, in_8_bits)));
    if is_less_in_8_bits {
        finding.why.extend(once_donated(case, finding.edits()));
    }
    let devices = case.program.devices();
    let parts = largest.map_or(1, |row| parts(case, row));
    if parts > 1 && i64::from(devices) > parts {
        finding.advice.push(format!("it is sharded {parts} ways over {devices} devices; sharded over all of them it shrinks exactly in proportion"));
    } else if devices > 1 && parts <= 1 {
        let along = if is_cache {
            "along its heads (`P(None, None, \"model\")`) or the batch"
        } else {
            "along one of its dimensions"
        };
        finding.advice.push(format!("shard it over the {devices} devices {along}; it shrinks exactly in proportion"));
    }
    if case.is_worth(copies) {
        let how = if are_tiled_otherwise(case, node, &second) {
            OTHER_TILES
        } else if !case.program.instructions.opcode.contains(&Opcode::WHILE) {
            "update it in place (`jax.lax.dynamic_update_slice`), and read nothing of the old one after that"
        } else if Library::of(case) == Library::Linen {
            "carry it through the loop and update it in place (`nn.scan` with `variable_carry` for it instead of `variable_axes`, each layer writing its own part with `jax.lax.dynamic_update_slice`), instead of scanning over it and collecting the results"
        } else {
            "carry it through the loop and update it in place (`jax.lax.dynamic_update_slice` on the carry of `jax.lax.fori_loop` or `scan`), instead of scanning over it and collecting the results"
        };
        let families: Vec<usize> = second.iter().filter_map(|copy| case.memory.families.of(copy.0)).collect();
        let saved = case.saved(&case.memory.without(case.program, &families));
        let less = if case.is_worth(saved) {
            format!(", without which it takes up to {} less, with the same results", Bytes(saved).short())
        } else {
            String::new()
        };
        finding.advice.push(format!("{} of temporaries are second copies of it{less}: {how}", Bytes(copies).short()));
    }
    if case.is_worth(widened) {
        finding.advice.push(format!(
            "{} of temporaries hold a part of it in a wider type: multiply it in its own (`preferred_element_type=jnp.float32` keeps sums exact); where each sequence has a single query, the compiler may widen it all the same",
            Bytes(widened).short()
        ));
    }
    finding.advice.extend(without_padding(case, &padded));
    finding.advice.extend(in_their_order(case, &relaid));
    if is_cache && !is_in_place && !case.is_worth(copies) && is_collected(case, &rows) {
        finding.advice.push(format!(
            "carry it through the loop over layers and update it in place (`jax.lax.dynamic_update_slice` on the carry of `scan`), instead of scanning over it and collecting the next one, and donate it: the next value then takes its place, up to {} less, with the same results; either of the two alone changes nothing",
            Bytes(bytes).short()
        ));
    }
    finding.advice.push(
        match (is_cache, is_paged) {
            (true, true) => "fewer pages: it shrinks in proportion, and fewer or shorter sequences have room at once",
            (true, false) => "a smaller batch, or a shorter context: it shrinks in proportion",
            (false, _) => "less of it: it shrinks in proportion to each of its dimensions",
        }
        .to_owned(),
    );
    if is_less_in_8_bits {
        finding
            .advice
            .push("keep it in 8 bits (`float8_e4m3fn`, `int8` with scales): the saving above is for this; what is written into it has to be cast to its type, which not every library's attention does".to_owned());
    } else if is_wide && !relaid.is_empty() {
        finding.advice.push(
            "8 bits alone (`float8_e4m3fn`, `int8` with scales) are predicted to save nothing: the copies in the loop are then padded to as much as now; first make the copies unnecessary".to_owned(),
        );
    }
    if is_cache {
        if has_heads(case, &rows) && !heads::are_shared(case, node) {
            finding
                .advice
                .push("a model with fewer key and value heads (grouped-query attention), if not in use yet".to_owned());
        }
        // Layers that attend to a window alone have shorter caches, if that is used already.
        let dimensions = |&row: &usize| case.node(case.memory.base[row].buffer).map(|node| outline(&node.dimensions));
        // Counters and positions aside; keys and values of all layers may be one stack each.
        let shapes: Vec<_> = rows.iter().filter_map(dimensions).filter(|shape| shape.len() > 2).collect();
        if !is_paged && shapes.len() > KEYS_AND_VALUES && shapes.windows(2).all(|two| two[0] == two[1]) {
            finding.advice.push(format!(
                "where some layers attend to a window alone (sliding-window attention), caches no longer than that window for these: all {} arrays of the cache have the same shape now",
                shapes.len()
            ));
        }
        if !is_paged {
            finding.advice.push("a paged cache, so that each sequence takes only the pages it has filled".to_owned());
        }
    }
    finding.buffers = rows.iter().map(|&row| case.memory.base[row].buffer).collect();
    finding.buffers.extend(padded.iter().chain(&relaid).chain(&second).map(|copy| copy.0));
    findings.push(finding);
}

/// What to do where a loop works on a copy in another tiling.
const OTHER_TILES: &str = "they are tiled otherwise than the arguments, as the update of single rows needs it: give arguments and results that layout (`jax.experimental.layout`), or keep the state in 16 bits, whose rows are written in place";

/// Whether most copies of an array differ from it in nothing but their tiles.
fn are_tiled_otherwise(case: &ProgramContext<'_>, array: Option<&ShapeNode>, copies: &[(BufferId, u64)]) -> bool {
    let Some((array, own)) = array.and_then(|array| Some((array, array.layout.as_ref()?))) else { return false };
    let is_retiled = |copy: &&(BufferId, u64)| {
        case.node(copy.0).is_some_and(|node| {
            let layout = node.layout.as_ref();
            node.element_type == array.element_type
                && layout.is_some_and(|it| it.minor_to_major == own.minor_to_major && it.tiles != own.tiles)
        })
    };
    let retiled = copies.iter().filter(is_retiled).map(|copy| copy.1).total();
    retiled.saturating_mul(2) > copies.iter().map(|copy| copy.1).total()
}

/// Whether a cache has several heads that queries could share: of keys and values, which are merged where an array has three
/// dimensions, and not latents.
fn has_heads(case: &ProgramContext<'_>, rows: &[usize]) -> bool {
    let is_single = |row: &usize| {
        let node = case.node(case.memory.base[*row].buffer);
        node.is_some_and(|node| node.dimensions.len() > 3 && node.dimensions.iter().rev().nth(1) == Some(&1))
    };
    !are_latents(case, rows) && !rows.first().is_some_and(is_single)
}

/// Arrays of a cache that hold the keys and values of all layers.
const KEYS_AND_VALUES: usize = 2;

/// Whether a cache holds the latents that the keys and values of all heads are made from.
fn are_latents(case: &ProgramContext<'_>, rows: &[usize]) -> bool {
    rows.iter().any(|&row| match &case.memory.base[row].role {
        Role::Argument { path, .. } => {
            let path = path.to_ascii_lowercase();
            ["latent", "c_kv", "ckv", "compressed", "kv_lora"].iter().any(|word| path.contains(word))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};

    /// Advice for a paged cache of four heads that a kernel reads for so many query heads.
    fn advice(query_heads: i64) -> Vec<String> {
        let mut sketch = Sketch::default();
        let cache = sketch.argument(array(&[4096, 32, 4, 128], &[3, 2, 1, 0]), "kv_caches[0]");
        let query = sketch.argument(array(&[8, query_heads, 128], &[2, 1, 0]), "queries");
        let shape = array(&[8, query_heads, 128], &[2, 1, 0]);
        let call = sketch.instruction(Opcode::CUSTOM_CALL, shape, &[query, cache], "jit(f)/ragged_paged_attention");
        sketch.alloc(call);
        sketch.free(call);
        let found = sketch.findings(1 << 30, run);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().flat_map(|finding| finding.advice).collect()
    }

    /// Advice for a cache beside weights that make so many features of queries, and 512 of keys.
    fn advice_by_weights(queries: i64) -> Vec<String> {
        let mut sketch = Sketch::default();
        let cache = sketch.argument(array(&[4096, 32, 4, 128], &[3, 2, 1, 0]), "kv_caches[0]");
        let query = sketch.argument(array(&[64, queries], &[1, 0]), "params['layer']['q_proj']['kernel']");
        let key = sketch.argument(array(&[64, 512], &[1, 0]), "params['layer']['k_proj']['kernel']");
        let shape = array(&[8, 64], &[1, 0]);
        let read = sketch.instruction(Opcode::FUSION, shape, &[query, key, cache], "jit(f)/dot_general");
        sketch.alloc(read);
        sketch.free(read);
        sketch.findings(1 << 30, run).into_iter().flat_map(|finding| finding.advice).collect()
    }

    #[test]
    fn grouped_queries_are_known_by_the_weights_of_queries_and_keys() {
        let is_offered = |queries| advice_by_weights(queries).iter().any(|words| words.contains("grouped-query"));
        assert!(is_offered(512), "{:?}", advice_by_weights(512));
        assert!(!is_offered(2048));
    }

    #[test]
    fn grouped_queries_are_offered_only_where_they_are_not_in_use() {
        let is_offered = |query_heads| advice(query_heads).iter().any(|words| words.contains("grouped-query"));
        assert!(is_offered(4));
        assert!(!is_offered(8), "eight query heads share four heads of the cache");
    }
}
