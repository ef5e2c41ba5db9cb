//! Terms of a program's memory.

use super::term::{Term, term};

/// Terms of a program's memory, in alphabetical order.
pub const TERMS: &[Term] = &[
    term(
        "Activation",
        &["activations"],
        "An intermediate result of the forward pass that the backward pass needs again. Guessed from names and lifetimes; rematerialisation trades it for computation.",
    ),
    term(
        "Address",
        &["Offset"],
        "Where in its allocation, or in the memory space, a buffer begins, in bytes. Buffers whose lives do not overlap may have the same address.",
    ),
    term(
        "Age",
        &[],
        "How many steps ago the buffer at an address was reserved. Old buffers between young ones are what keeps holes open.",
    ),
    term(
        "Allocated",
        &["allocated bytes", "allocation", "allocations"],
        "What the compiler reserves for the whole run of a program: arguments, outputs, constants and one heap for the temporaries. Whether a program fits is decided by this number, not by the peak.",
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
        "Attention scores",
        &["Attention in blocks", "blockwise *", "blockwise"],
        "Products of queries with keys, one number for every pair of positions: their size grows with the square of the sequence length. Attention in blocks (flash or splash attention) computes them part by part and never keeps them whole.",
    ),
    term(
        "Backward",
        &["transpose(jvp)"],
        "The part of a training step that computes gradients from the last layer to the first. What the forward part has kept is freed here.",
    ),
    term(
        "Batch",
        &["A smaller batch", "Half the batch"],
        "How many examples a step works on. Activations grow with it, weights and optimizer state do not.",
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
    term(
        "Debug callback",
        &["callback"],
        "jax.debug.print and the like: what is printed is kept until the host has taken it.",
    ),
    term("Device", &[], "The chip that a program was compiled for, or on which an array lies."),
    term(
        "Donation",
        &["donated", "none donated", "donate"],
        "An argument that the caller gives up (donate_argnums in JAX), so that an output can take its memory. State that is updated in every step should be donated.",
    ),
    term(
        "Duplicate",
        &["duplicates"],
        "Two buffers that hold the same value at the same time, such as a copy of an argument.",
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
        "Expansion",
        &["Without padding", "Useful"],
        "How many times larger a shape is in memory than its numbers are, because of padding.",
    ),
    term(
        "Fetched",
        &[],
        "Copied from host memory to the device, where an argument is kept on the host. Fetched all at once, it takes as much memory as if it were on the device.",
    ),
    term(
        "Finding",
        &["Findings", "Advisor"],
        "A likely cause of high memory use with its evidence, what to change, and what that would save at the peak after packing the heap anew.",
    ),
    term(
        "Forward",
        &[],
        "The part of a training step that computes the loss. What the backward part needs again is kept until then.",
    ),
    term(
        "Fragmentation",
        &[],
        "Allocated bytes that hold nothing at the peak: holes between buffers, left because buffers of different lives do not fit together. Allocated less peak.",
    ),
    term("Free", &["Bytes free", "Largest free blocks", "nearly idle"], "Memory that nothing holds at that moment."),
    term(
        "Frozen",
        &["frozen weights"],
        "Of weights: read by the training step, but not changed, such as those that LoRA adds small matrices to.",
    ),
    term(
        "Fusion",
        &["Op kind", "Opcode", "Op"],
        "An operation that XLA has made of several, so that the values between them need no memory. The op kind is XLA's name for what an operation does.",
    ),
    term(
        "Gathered",
        &["all-gather"],
        "A value that is divided over devices and is put together on every device before it is used: for that long each device holds the whole.",
    ),
    term("Gradient", &["gradients"], "What the backward pass computes for a weight. Guessed from names and lifetimes."),
    term("Guess", &[], "A statement of ours that the file does not make. Its reason is in the tooltip."),
    term(
        "HBM",
        &["High bandwidth memory"],
        "The large memory of a TPU or GPU, in which weights, activations and everything else lies that does not fit into the small memories beside the cores.",
    ),
    term("Headroom", &["to spare"], "What is left of the capacity."),
    term(
        "Heap",
        &["Heap allocations"],
        "The part of memory from which short-lived buffers are taken: all temporaries of an XLA program share one heap, whose size is set when it is compiled; an allocator's heap grows and shrinks while the program runs.",
    ),
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
        "Logits",
        &[],
        "The model's score for every word of the vocabulary at every position. With a large vocabulary they, and their gradient, are often the largest buffers; computing the loss in parts keeps only a part of them.",
    ),
    term(
        "Micro-batches",
        &["micro batches", "micro-batch"],
        "Parts of the batch that a training step runs on one after the other, adding up their gradients, so that the activations of one part are in memory at a time.",
    ),
    term(
        "Name",
        &[],
        "The compiler's name for the operation that makes a buffer, such as fusion.12; it is another one after every change. Comparisons match buffers by scope and shape.",
    ),
    term(
        "Offload",
        &["offloaded"],
        "Moving a buffer to the memory of the host until it is needed again. It costs transfers instead of device memory.",
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
    term("Oversized", &[], "A single buffer that takes more than a device has, whatever else is in memory."),
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
        "Precision",
        &["compute in bf16"],
        "How many bits a number has. Storing or computing in bfloat16 instead of float32 halves a buffer and may change results.",
    ),
    term(
        "Program",
        &["module", "Programs"],
        "What the compiler makes of one jitted function for one set of shapes: a module with its own memory plan.",
    ),
    term(
        "RAM",
        &["main memory"],
        "Memory of the machine itself, where a program runs on the processor or keeps what it offloads.",
    ),
    term(
        "Region",
        &["By region"],
        "A part of an IPU tile's memory: interleaved, which two loads can read at once, or not.",
    ),
    term(
        "Rematerialisation",
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
        "Result",
        &["Results take", "results"],
        "What a program returns. Where no argument is donated for it, it has memory of its own for the whole run.",
    ),
    term(
        "Same results",
        &["Results unchanged", "changes results", "Results change"],
        "Whether the program computes the same numbers after a change, apart from rounding. A smaller batch or another precision changes them; donation or rematerialisation does not.",
    ),
    term(
        "Saves at peak",
        &["saves"],
        "By how much the peak falls if this change alone is made, after packing the heap anew.",
    ),
    term(
        "Scope",
        &["name scope", "Source"],
        "The path of names that the framework gives to an operation: modules and functions, as in layer_3/attn/dot_general. The source is the line of Python that it comes from.",
    ),
    term("Sflag", &["sync flags"], "The small memory of synchronisation flags on a TPU."),
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
        "State in place",
        &["in place"],
        "A result, such as the new weights, written into the memory of the argument that it replaces.",
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
        "Training state",
        &["training_state"],
        "Weights and what the optimizer keeps of them: what a training step takes in, changes and gives back.",
    ),
    term(
        "VMEM",
        &["SMEM", "vector memory"],
        "The small memory beside the cores of a TPU, into which operations load their data. SMEM is the one for scalars.",
    ),
    term("Waste", &["all waste"], "Bytes that are reserved and hold nothing: padding and gaps."),
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
    term(
        "ZeRO",
        &[],
        "Dividing optimizer state (and more) over the devices that train on different data, instead of keeping a copy on each.",
    ),
];
