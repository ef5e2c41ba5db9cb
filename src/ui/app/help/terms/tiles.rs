//! Terms of an IPU's tiles.

use super::term::{Term, term};

/// Terms of an IPU's tiles, in alphabetical order.
pub const TERMS: &[Term] = &[
    term(
        "All tiles",
        &["Mean tile"],
        "Bytes of all tiles of an IPU together, or their mean. What must fit is each tile by itself.",
    ),
    term(
        "Always live",
        &["always-live", "Not always live"],
        "In an IPU profile, memory that is in use in every step, such as code and constants; the rest of the tile's memory is shared over time.",
    ),
    term(
        "Control code",
        &["Control", "Control table"],
        "Code that a tile runs between the steps of a program: loops, calls, and the order of the work.",
    ),
    term(
        "Copy descriptor",
        &["Copy descriptors"],
        "Variable-size fields of the vertices that copy data within a tile; part of the vertex state.",
    ),
    term(
        "Exchange",
        &["Exchanges", "DoExchange", "Message"],
        "A step in which the tiles of an IPU send each other data; between exchanges every tile computes by itself (OnTileExecute). Messages are the buffers for data on its way in or out.",
    ),
    term(
        "Exchange code",
        &[],
        "On an IPU, the program by which a tile sends and receives data. It grows with the number of places that data comes from, and is always live.",
    ),
    term(
        "Gap",
        &["gaps", "including gaps"],
        "On a tile of an IPU, memory that cannot be used because of alignment or of banks that must not be shared. A tile must hold its data and its gaps.",
    ),
    term(
        "Instrumentation results",
        &["instrumentation"],
        "Counters that a profiled program writes on every tile. Without profiling they are not there.",
    ),
    term(
        "Interleaved",
        &["Non interleaved", "Non-interleaved", "interleaved memory"],
        "The upper region of a tile's memory, whose elements are read two at a time; some vertices need their data there. Not interleaved is the lower region, which also holds the code.",
    ),
    term(
        "Not overlapped",
        &["Overlapped, not summed", "Overlapped"],
        "On an IPU, variables that are never live together share addresses. Bytes of a category that share addresses with others are overlapped, and counted once in a tile's total.",
    ),
    term(
        "Overflowed",
        &["Overflowed memory"],
        "Bytes of a tile beyond its memory: where it is not zero on any tile, the program does not fit.",
    ),
    term(
        "Rearrangement",
        &["rearranged", "pre-arranged"],
        "A copy of a variable in the order that an operation needs. Laying the variable out like that from the start saves it.",
    ),
    term(
        "Software order",
        &["Floor plan"],
        "Tiles in the order of their numbers, in which a compiler divides work, or as they lie on the chip.",
    ),
    term(
        "Tile",
        &["tiles", "Fullest tile", "Fullest tiles", "IPU", "By IPU"],
        "On an IPU, one of its cores with its own memory: every tile must fit by itself. On a TPU, the block of numbers in which shapes are stored and padded.",
    ),
    term("Variable", &["Variables"], "On an IPU, an array that the compiler spreads over tiles."),
    term(
        "Vertex code",
        &["Vertices", "Vertex"],
        "Code of the computations on a tile (codelets), once for every type of vertex used there. Vertices are the pieces of work of an operation.",
    ),
    term(
        "Vertex state",
        &["Vertex instance state", "Vertex field data", "Vector list descriptor", "Vector list descriptors"],
        "What each vertex keeps on its tile: fixed fields, fields of variable size, and lists of addresses. It grows with the number of vertices.",
    ),
];
