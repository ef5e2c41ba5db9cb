//! Terms of the views and of what is said in them.

use super::term::{Term, term};

/// Terms of the views, in alphabetical order.
pub const TERMS: &[Term] = &[
    term(
        "Allocator",
        &["allocator history", "allocator dump", "before the trace"],
        "How a runtime hands out memory while a program runs, as a trace or a dump of it has recorded it. What was there before the trace began is known by its size only.",
    ),
    term(
        "Compare",
        &["Before", "After", "Change", "Difference", "Differences", "Side by side", "Swap"],
        "Two files held against each other. What differs is matched by scope, shape and class, whatever numbers the compiler gave; differences are after less before, and those of all rows add up to that of the whole.",
    ),
    term(
        "Critical",
        &["warning", "hint"],
        "How much a finding matters: critical where the program does not fit because of it, a warning where it costs much memory, a hint where it may be worth a try.",
    ),
    term(
        "Failure",
        &["Messages", "As printed"],
        "An out-of-memory message and what it says: what was asked for, what was free, and who held the rest. Numbers are as printed.",
    ),
    term(
        "Heat map",
        &["Occupancy"],
        "Addresses over time: how much of each range is in use, and where room is lost between buffers.",
    ),
    term(
        "Library frames",
        &["Function", "Calls"],
        "Functions of the frameworks in a stack of calls, which are hidden so that one's own stand first.",
    ),
    term(
        "Liveness",
        &["In steps"],
        "For an IPU program, the bytes that are live in each of its steps, always live or not.",
    ),
    term(
        "Needs",
        &["Fits", "Would it fit?", "needed"],
        "What a program reserves for its whole run, held against what the device has.",
    ),
    term(
        "On other chips",
        &["other chips"],
        "Whether what the program allocates now would fit devices with another capacity. It is not compiled for them: their layouts may need more or less.",
    ),
    term("Pins", &["Pin"], "Buffers that are marked to be found again, with a note; they are kept in the session."),
    term("Presenter", &["Presenter mode"], "Larger text and less around it, for a shared screen."),
    term(
        "Report",
        &[],
        "Everything that is known of what is open as text: the same numbers as in the views, and as the command prints them.",
    ),
    term("Runtime", &["Time"], "What really happened while a program ran, as opposed to what its compiler planned."),
    term("Session", &[], "What is open and where one looks. It can be saved as a file and handed on."),
    term("Timeline", &["Overview", "the highest"], "Bytes in use over the program's steps, with the peak marked."),
    term(
        "Treemap",
        &["Icicle"],
        "What is live at a step as areas in proportion to bytes, grouped by scope or class; an icicle shows the groups in rows.",
    ),
    term(
        "Waterfall",
        &["By class", "By scope", "By stack"],
        "From the bytes before to those after in steps: each starts where the last one ended, and the last ends at the bytes after, to the byte.",
    ),
];
