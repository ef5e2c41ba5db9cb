//! The words of the screen, explained: the glossary's entries and how they are found.

/// A term and its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct Term {
    /// The term.
    pub name: &'static str,
    /// Other forms in which it stands on the screen.
    pub also: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
}

const fn term(name: &'static str, also: &'static [&'static str], meaning: &'static str) -> Term {
    Term { name, also, meaning }
}

/// All terms, in alphabetical order.
pub const TERMS: &[Term] = &[
    term(
        "Activation",
        &["activations"],
        "An intermediate result of the forward pass that the backward pass needs again. Guessed from names and lifetimes; rematerialization trades it for computation.",
    ),
    term(
        "Address",
        &["Offset"],
        "Where in its allocation, or in the memory space, a buffer begins, in bytes. Buffers whose lives do not overlap may have the same address.",
    ),
    term(
        "All tiles",
        &["Mean tile"],
        "Bytes of all tiles of an IPU together, or their mean. What must fit is each tile by itself.",
    ),
    term(
        "Allocated",
        &["allocated bytes", "allocation", "allocations"],
        "What the compiler reserves for the whole run of a program: arguments, outputs, constants and one heap for the temporaries. Whether a program fits is decided by this number, not by the peak.",
    ),
    term(
        "Always live",
        &["always-live", "Not always live"],
        "In an IPU profile, memory that is in use in every step, such as code and constants; the rest of the tile's memory is shared over time.",
    ),
    term(
        "Argument",
        &["arguments", "parameter", "parameters"],
        "A value that is passed to the program, such as a weight or a batch. It stays in memory for the whole run, unless it is donated.",
    ),
    term(
        "At the peak",
        &["In use at the peak", "of the peak", "Share of the peak", "Largest at the peak", "live@peak"],
        "Said of a buffer that is live at the step where memory use is highest. Only what is live there can bring the peak down.",
    ),
    term(
        "BFC allocator",
        &["BFC", "Bin, from", "Chunk", "Chunks"],
        "The allocator of XLA and TensorFlow on GPUs (best fit with coalescing). It hands out chunks of one region, kept in bins by size; free chunks that are not adjacent cannot be used together.",
    ),
    term(
        "Buffer",
        &["buffers"],
        "The memory of one value of the program. Several buffers share an allocation, and buffers of different values can share addresses.",
    ),
    term(
        "Cache",
        &["KV cache"],
        "In a program that generates text, the keys and values of the tokens so far, passed in and out at every step. Guessed from the names of arguments.",
    ),
    term(
        "Capacity",
        &["limit"],
        "The most that a program may allocate in a memory space: what the device has less what the system takes. It comes from the compiler's message, the device's description or --capacity; the evidence is shown beside it.",
    ),
    term(
        "Category",
        &["Categories", "Largest categories"],
        "What the compiler itself says about a buffer: parameter, output, temporary, constant or thread-local; for an IPU, what the memory of a tile is for.",
    ),
    term(
        "Class",
        &["Class (guess)", "classes"],
        "What a buffer is for: weight, optimizer state, cache, input, output, activation, gradient, temporary. A guess from names, passes and lifetimes, and marked as one.",
    ),
    term(
        "Colour",
        &["memory space", "Memory"],
        "A kind of memory of the device, numbered by the compiler: HBM is 0, VMEM 1. Each has its own capacity, peak and buffers.",
    ),
    term("Constant", &["constants"], "A value that is part of the program. It stays in memory for the whole run."),
    term("Count", &["Runs"], "How many there are of what the row names."),
    term("Device", &[], "The chip that a program was compiled for, or on which an array lies."),
    term(
        "Donation",
        &["donated", "none donated", "donate"],
        "An argument that the caller gives up (donate_argnums in JAX), so that an output can take its memory. State that is updated in every step should be donated.",
    ),
    term(
        "Element type",
        &["Type", "dtype"],
        "The type of one number: f32 has 4 bytes, bf16 2, s8 1. Bytes and padding follow from it.",
    ),
    term(
        "Event",
        &["Heap event", "Heap events", "Events"],
        "A point at which the compiler's heap simulator, or an allocator while the program runs, takes or frees memory.",
    ),
    term("Evidence", &["Known from"], "Where a number comes from: a file, a message, a table of devices."),
    term(
        "Exchange code",
        &["exchange"],
        "On an IPU, the program by which a tile sends and receives data. It grows with the number of places that data comes from, and is always live.",
    ),
    term(
        "Expansion",
        &["Without padding", "Useful"],
        "How many times larger a shape is in memory than its numbers are, because of padding.",
    ),
    term(
        "Finding",
        &["Findings", "Advisor"],
        "A likely cause of high memory use with its evidence, what to change, and what that would save at the peak after packing the heap anew.",
    ),
    term(
        "Fragmentation",
        &[],
        "Allocated bytes that hold nothing at the peak: holes between buffers, left because buffers of different lives do not fit together. Allocated less peak.",
    ),
    term("Free", &["Bytes free", "Largest free blocks", "nearly idle"], "Memory that nothing holds at that moment."),
    term(
        "Fusion",
        &["Op kind", "Opcode", "Op"],
        "An operation that XLA has made of several, so that the values between them need no memory. The op kind is XLA's name for what an operation does.",
    ),
    term(
        "Gap",
        &["gaps", "including gaps"],
        "On a tile of an IPU, memory that cannot be used because of alignment or of banks that must not be shared. A tile must hold its data and its gaps.",
    ),
    term("Gradient", &["gradients"], "What the backward pass computes for a weight. Guessed from names and lifetimes."),
    term("Guess", &[], "A statement of ours that the file does not make. Its reason is in the tooltip."),
    term(
        "HBM",
        &["High bandwidth memory"],
        "The large memory of a TPU or GPU, in which weights, activations and everything else lies that does not fit into the small memories beside the cores.",
    ),
    term("Headroom", &["to spare"], "What is left of the capacity."),
    term("Hole", &["Largest hole in the heap"], "Addresses between live buffers that nothing holds at that step."),
    term(
        "Input",
        &["inputs"],
        "An argument that is neither weight nor state: a batch of data, a mask, a step number. Guessed from names.",
    ),
    term(
        "Kind",
        &["Rule", "What"],
        "What sort of thing a row is about: of memory what holds it, of a finding the rule that made it.",
    ),
    term(
        "Layers folded",
        &["Fold layers", "layer_*"],
        "Equal parts of a model are shown as one, with their number behind a ×.",
    ),
    term(
        "Layout",
        &["Tiling"],
        "The order of a shape's dimensions in memory and the tiles they are stored in. The last dimensions are padded to whole tiles, on a TPU mostly 8 by 128.",
    ),
    term(
        "Life",
        &["Lifetime", "Lifetimes", "Live for", "Steps", "From", "To", "live range"],
        "The steps from the first write of a buffer to its last use. From and To are the first and the last of them, or the ends of a range.",
    ),
    term(
        "Live",
        &["Live bytes", "In use", "In use by", "Live at the peak", "Live memory over the program"],
        "Said of a buffer that has been written and will be read again. The sum over all is the curve.",
    ),
    term(
        "Live arrays",
        &["pprof"],
        "The arrays that a JAX program held when its memory profile was saved, with the Python stack that made each.",
    ),
    term(
        "Name",
        &[],
        "The compiler's name for the operation that makes a buffer, such as fusion.12; it is another one after every change. Comparisons match buffers by scope and shape.",
    ),
    term(
        "Not overlapped",
        &["Overlapped, not summed", "Overlapped"],
        "On an IPU, variables that are never live together share addresses. Bytes of a category that share addresses with others are overlapped, and counted once in a tile's total.",
    ),
    term(
        "Optimizer state",
        &["optimizer"],
        "What an optimizer keeps for each weight, such as Adam's two moments. Guessed from names of arguments.",
    ),
    term(
        "Output",
        &["outputs"],
        "A value that the program returns. Its memory is counted in addition to the arguments', unless one was donated for it.",
    ),
    term("Over", &["Does not fit"], "Allocated bytes beyond the capacity. The compiler refuses such a program."),
    term(
        "Packing",
        &["Repacked", "packed"],
        "Giving every buffer an address so that no two that are live together overlap. A change is judged by packing the buffers anew, as the compiler does.",
    ),
    term(
        "Padding",
        &["Padding share", "Padding at the peak", "Rounded up by"],
        "Bytes between the numbers of a shape that only fill its tiles. A dimension of 129 in tiles of 128 takes 256.",
    ),
    term(
        "Pass",
        &["backward pass", "forward pass"],
        "Whether an operation belongs to the forward computation, to its transpose (the gradients), or to what is computed a second time.",
    ),
    term(
        "Peak",
        &["Highest use", "Most", "Lifetime peak"],
        "The step at which the bytes that are live are most, and those bytes. Marked by a triangle that stands on its tip.",
    ),
    term(
        "Plan",
        &["The plan"],
        "The changes that together bring a program under its limit, those first that cost least.",
    ),
    term(
        "Program",
        &["module", "Programs"],
        "What the compiler makes of one jitted function for one set of shapes: a module with its own memory plan.",
    ),
    term(
        "Region",
        &["By region"],
        "A part of an IPU tile's memory: interleaved, which two loads can read at once, or not.",
    ),
    term(
        "Rematerialization",
        &["recomputed", "remat", "checkpoint"],
        "Computing an activation again in the backward pass in place of keeping it (jax.checkpoint). XLA also does it by itself when memory is short.",
    ),
    term(
        "Replicated",
        &["Sharding", "sharded"],
        "Said of an array of which every device has a whole copy. A sharded array is divided among the devices.",
    ),
    term(
        "Reserved",
        &["Reserved, not written yet", "Requested"],
        "Memory that is set aside. For results it is set aside before anything is written; sums at a step count what is reserved.",
    ),
    term(
        "Saves at peak",
        &["saves", "Change"],
        "By how much the peak falls if this change alone is made, after packing the heap anew.",
    ),
    term(
        "Scope",
        &["name scope", "Source"],
        "The path of names that the framework gives to an operation: modules and functions, as in layer_3/attn/dot_general. The source is the line of Python that it comes from.",
    ),
    term("Shape", &["shapes"], "Element type and dimensions of an array, such as bf16[8,128]."),
    term("Share", &["Share of all"], "Part of the whole, in percent."),
    term(
        "Size",
        &["Its bytes", "Bytes", "holds"],
        "Bytes in memory, padding included. Powers of 1024 (GiB) unless the View menu says otherwise; tooltips have the exact number.",
    ),
    term(
        "Stack",
        &["Allocated here, innermost frame first", "Allocated in this frame", "Allocated in"],
        "The calls that led to an allocation, or the memory that a runtime keeps for running programs.",
    ),
    term(
        "Step",
        &["program point"],
        "A position in the order in which the operations of a program run. The x axis of the charts; not a step of training.",
    ),
    term(
        "Temporary",
        &["temporaries", "Temp"],
        "A value between operations. Temporaries share one heap, packed by the compiler, whose size depends on which of them are live together.",
    ),
    term(
        "Thread-local",
        &[],
        "Memory of functions that run beside the program, such as the reduction in a sort. It is not counted in the totals.",
    ),
    term(
        "Tile",
        &["tiles", "Fullest tile", "Fullest tiles", "IPU", "By IPU"],
        "On an IPU, one of its cores with its own memory: every tile must fit by itself. On a TPU, the block of numbers in which shapes are stored and padded.",
    ),
    term("Variable", &["Variables"], "On an IPU, an array that the compiler spreads over tiles."),
    term(
        "VMEM",
        &["SMEM", "vector memory"],
        "The small memory beside the cores of a TPU, into which operations load their data. SMEM is the one for scalars.",
    ),
    term(
        "Weight",
        &["weights", "params"],
        "A parameter of the model that training changes. Guessed from names of arguments.",
    ),
    term(
        "What if",
        &["Sets of changes"],
        "Changes that are tried out on the model of the program's memory: nothing is compiled, the prediction says how far off such predictions have been.",
    ),
];

impl Term {
    /// All of its forms.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }

    /// Whether its forms and its meaning contain every word of a search.
    fn contains(&self, words: &[&str]) -> bool {
        let text = self.names().chain([self.meaning]).collect::<Vec<_>>().join(" ").to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}

/// The term that stands on the screen as these words, and nothing else: a label, a column's title with its arrow.
#[must_use]
pub fn of_label(words: &str) -> Option<&'static Term> {
    let label = words.trim_end_matches(['\u{2191}', '\u{2193}', ':', ' ']).trim();
    // A unit behind a comma is that of the column.
    let label = ["B", "KiB", "MiB", "GiB", "KB", "MB", "GB"]
        .iter()
        .find_map(|unit| label.strip_suffix(unit)?.strip_suffix(", "))
        .unwrap_or(label);
    TERMS.iter().find(|term| term.names().any(|name| name.eq_ignore_ascii_case(label)))
}

/// The longest term among some words.
#[must_use]
pub fn within(words: &str) -> Option<&'static Term> {
    if let Some(term) = of_label(words) {
        return Some(term);
    }
    let text = words.to_lowercase();
    let is_word = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + name.len()..].chars().next())
        })
    };
    let found = TERMS.iter().flat_map(|term| term.names().map(move |name| (name.to_lowercase(), term)));
    found.filter(|(name, _)| is_word(name)).max_by_key(|(name, _)| name.len()).map(|(_, term)| term)
}

/// The terms that match a search; those whose name does come first.
#[must_use]
pub fn matching(search: &str) -> Vec<&'static Term> {
    let search = search.to_lowercase();
    let words: Vec<&str> = search.split_whitespace().collect();
    let mut found: Vec<&Term> = TERMS.iter().filter(|term| term.contains(&words)).collect();
    let rank = |term: &Term| {
        let name = term.name.to_lowercase();
        (name != search.trim(), !words.iter().all(|word| name.contains(word)))
    };
    found.sort_by_key(|term| rank(term));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_by_what_stands_on_the_screen() {
        assert_eq!(of_label("Padding share \u{2193}").map(|term| term.name), Some("Padding"));
        assert_eq!(of_label("jit_step"), None);
        assert_eq!(within("9 buffers at the peak").map(|term| term.name), Some("At the peak"), "the longest");
        assert_eq!(within("unpeaked"), None);
        assert_eq!(matching("peak")[0].name, "Peak");
        assert!(matching("donate jax").iter().any(|term| term.name == "Donation"));
    }

    #[test]
    fn the_glossary_is_in_order_and_no_form_is_claimed_twice() {
        assert!(TERMS.is_sorted_by_key(|term| term.name.to_lowercase()));
        let mut names: Vec<String> = TERMS.iter().flat_map(Term::names).map(str::to_lowercase).collect();
        names.sort();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
