//! What a size is for, by the words beside it: requested, free, capacity, in use.
//!
//! The words behind a size count first (`4.00 GiB total capacity`), then the nearest before it (`Tried to allocate
//! 2.00 GiB`). A number without a unit is a size only where the words say so.

use std::sync::LazyLock;

use regex::Regex;

use super::size::{Size, Unit, sizes};
use crate::model::PrintedSize;

/// What a size is for; the name is the report's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Asked for.
    Requested,
    /// Free, available.
    Free,
    /// The largest free block.
    LargestFree,
    /// What there is.
    Capacity,
    /// What may be used of it.
    Limit,
    /// In use, by whomever.
    InUse,
    /// Allocated by the one who asks.
    Allocated,
    /// Reserved by its allocator.
    Reserved,
    /// Kept by its cache.
    Cached,
    /// Active blocks.
    Active,
    /// Reserved and not allocated.
    Unallocated,
    /// In private pools.
    Pools,
    /// Allocations of others.
    Other,
}

impl Role {
    /// The report's key.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Free => "free",
            Self::LargestFree => "largest_free",
            Self::Capacity => "capacity",
            Self::Limit => "limit",
            Self::InUse => "in_use",
            Self::Allocated => "allocated",
            Self::Reserved => "reserved",
            Self::Cached => "cached",
            Self::Active => "active",
            Self::Unallocated => "unallocated",
            Self::Pools => "private_pools",
            Self::Other => "other",
        }
    }
}

/// A size with its role.
#[derive(Debug, Clone)]
pub struct Told {
    /// What it is for.
    pub role: Role,
    /// The size; its text only where it is printed with a unit, or in bytes.
    pub printed: PrintedSize,
    /// How it is printed.
    pub unit: Unit,
    /// Where it begins.
    pub at: usize,
}

/// Words behind a size, in the order of precedence.
const BEHIND: [(&str, Role); 16] = [
    (r"^,? ?(?:is |memory )?allocated in private pools", Role::Pools),
    (r"^ ?(?:is |are )?reserved by \w+ but unallocated|^ ?reserved but unallocated", Role::Unallocated),
    (r"^ ?(?:GPU )?total capacity|^ ?total memory|^ ?total\b", Role::Capacity),
    (r"^ ?(?:memory )?(?:has been|is|was|are)? ?(?:already )?allocated", Role::Allocated),
    (r"^ ?(?:is |are |memory )?(?:reserved|set aside)", Role::Reserved),
    (r"^ ?(?:is |are )?cached", Role::Cached),
    (r"^ ?(?:current |currently )?active", Role::Active),
    (r"^ ?(?:is |are |were |was )?(?:free|available|allocatable|remaining|left)\b", Role::Free),
    (r"^ ?exceed(?:s|ed)?(?: the| its)?(?: \w+)? limit", Role::InUse),
    (r"^ ?(?:memory )?(?:is |are )?(?:currently )?in use|^ ?(?:is |are )?used\b", Role::InUse),
    (r"^ ?allowed|^ ?limit\b|^ ?max(?:imum)?\b", Role::Limit),
    (r"^ ?capacity", Role::Capacity),
    (r"^ ?of free (?:system )?memory", Role::Free),
    (r"^ ?(?:KV cache )?(?:memory )?(?:is |are |was |were )?(?:needed|required|requested)", Role::Requested),
    (r"^ ?(?:\(rounded|for an array|for new constant)", Role::Requested),
    (r"^ ?(?:of )?(?:pinned|host|device) memory\b", Role::Requested),
];

/// Words before a size; of several the nearest counts, of two at one place the first of this list.
const BEFORE: [(&str, Role); 17] = [
    (r"too much \w+ data", Role::Requested),
    (r"largest (?:free |contiguous |available )?(?:block|chunk|region|free)", Role::LargestFree),
    (r"other allocations", Role::Other),
    (
        r"allocated so far|already allocated|(?:\w+ |currently )allocated(?: memory)?:?|memory pool usage|allocator usage|has allocated",
        Role::Allocated,
    ),
    (r"reserved", Role::Reserved),
    (
        r"total capac\w+(?: of)?|capacity(?: of)?|total (?:(?:GPU |device |available )?memory|size)|has a total|device total",
        Role::Capacity,
    ),
    (
        r"max_smem_bytes|hardware limit|limit(?:ed)?(?: is| of| set)?(?: to)?|max(?:imum)?(?: allowed| size)?(?: buffer size)?(?: of)?|allowed|greater than|exceeds?|larger than|threshold",
        Role::Limit,
    ),
    (
        r"free(?: \w+)? memory|free(?: mem)?|available(?: KV cache)?(?: \w+)?(?: memory)?|remaining|of which|memory is only|than is available|left",
        Role::Free,
    ),
    (r"\b[pv]{0,2}mem\b|\brss\b|peak(?: usage| memory)?(?: of)?", Role::InUse),
    (r"in use|used|usage|utilization:?.{0,40}total|bytes_in_use|memory usage|was using", Role::InUse),
    (
        r"tr(?:y|ied|ying) to (?:allocate|reserve|map|commit)|to (?:re)?allocate|(?:re)?allocating|allocate|(?:to|not|n't) (?:mmap|map|reserve|commit|pin|malloc|create|obtain|grow)|reserving|wanted|asked for",
        Role::Requested,
    ),
    (
        r"failed to alloc\w*|\w*malloc\w*|mmap\w*|alloc(?:ation)?(?: request)?(?: for| of)?|calloc(?: async)?",
        Role::Requested,
    ),
    (
        r"request(?:ed|ing)?(?: for| of| bytes of| amount| size)?(?: size)?(?: was| is)?(?: buffer of size)?|bytes of",
        Role::Requested,
    ),
    (r"require[sd]?|needs?|needed|desired|attempt(?:ed|ing)? to \w+", Role::Requested),
    (
        r"(?:of |for |buffer )?size|smem_bytes|(?:buffer|tensor|array|block|chunk|region|allocation|request) of",
        Role::Requested,
    ),
    (r"device memory", Role::Requested),
    (r"total", Role::Capacity),
];

/// What must stand directly before a number without a unit.
const BARE: &str = r#"(?i)(?:size(?: was| is)?|required|limit|available|requested(?: bytes of)?|memory|needed|free|allowed|total|total memory|data|bytes of|alloc\w*|allocatable|max|amount|memory of|reported|size\[|size:|_bytes=|requested=\\?"|available=\\?")\s*[:=(]{0,3}\s*$"#;

/// What is counted and not measured.
const COUNTED: &str = r"^\s*(?:(?:prefill|total|cached|new|running)\s+)?(?:tokens?|blocks?|requests?|sequences?|chunks?|pages?|layers?|files?|workers?|processes|times?|words?|elements?|entries|seconds?|ms|s)\b";

struct Rules {
    behind: Vec<(Regex, Role)>,
    before: Vec<(Regex, Role)>,
    bare: Regex,
    counted: Regex,
}

#[expect(clippy::expect_used, reason = "constants; a test compiles them")]
static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let compile = |rows: &[(&str, Role)]| {
        rows.iter()
            .map(|(pattern, role)| {
                let spaced = pattern.replace(' ', r"\s+").replace(r"\s+?", r"\s*");
                (Regex::new(&format!("(?i){spaced}")).expect("a valid pattern"), *role)
            })
            .collect()
    };
    Rules {
        behind: compile(&BEHIND),
        before: compile(&BEFORE),
        bare: Regex::new(BARE).expect("a valid pattern"),
        counted: Regex::new(COUNTED).expect("a valid pattern"),
    }
});

/// Characters before a size that are looked at.
const REACH: usize = 90;

/// Every size of a text whose role the words beside it say, in order.
pub fn told(text: &str) -> Vec<Told> {
    let found = sizes(text);
    let mut out: Vec<Told> = Vec::with_capacity(found.len());
    let mut previous_part: Option<Role> = None;
    for (i, size) in found.iter().enumerate() {
        let floor = if i == 0 { 0 } else { found[i - 1].end };
        let before = last(&text[floor..size.start], REACH);
        let ceiling = found.get(i + 1).map_or(text.len(), |next| next.start);
        let behind = super::head::head_of(&text[size.end..ceiling], REACH);
        let role = if previous_part.is_some() {
            // The second of `a / b` is what the first is part of.
            Some(Role::Capacity)
        } else {
            role(size, before, behind)
        };
        previous_part = None;
        let Some(role) = role else { continue };
        if size.is_part_of_next {
            // `Free memory/Total memory: a/b` names both before the first.
            let first = if before.to_ascii_lowercase().contains("free") { Role::Free } else { role };
            let first =
                if matches!(first, Role::Capacity | Role::Limit | Role::Requested) { Role::InUse } else { first };
            out.push(Told { role: first, printed: size.printed.clone(), unit: size.unit, at: size.start });
            previous_part = Some(first);
            continue;
        }
        out.push(Told { role, printed: size.printed.clone(), unit: size.unit, at: size.start });
    }
    out
}

fn role(size: &Size, before: &str, behind: &str) -> Option<Role> {
    // Behind `name: value` the next line has a name of its own.
    let behind =
        if before.trim_end().ends_with([':', '=']) { behind.lines().next().unwrap_or_default() } else { behind };
    // The words of another clause are not beside the size.
    let near = before.rsplit([';', '\n']).next().unwrap_or(before);
    let near = &near[sentence(near)..];
    let is_called_a_size = RULES.bare.is_match(near) || size.is_part_of_next || behind.trim_start().starts_with("max");
    if size.unit == Unit::Bare && (!is_called_a_size || RULES.counted.is_match(behind)) {
        return None;
    }
    if let Some((_, role)) = RULES.behind.iter().find(|(pattern, _)| pattern.is_match(behind)) {
        return Some(*role);
    }
    let ends = RULES.before.iter().filter_map(|(pattern, role)| {
        let end = pattern.find_iter(near).last()?.end();
        Some((end, *role))
    });
    // `max_by_key` keeps the last of equals; the first rule is to win.
    ends.fold(None, |best: Option<(usize, Role)>, (end, role)| match best {
        Some((other, _)) if other >= end => best,
        _ => Some((end, role)),
    })
    .map(|(_, role)| role)
}

/// Where the last sentence of a text begins.
fn sentence(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |at: &usize| {
        let before = at.checked_sub(1).map(|i| bytes[i]);
        let next = bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
        bytes[*at] == b'.'
            && before.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b')')
            && next.is_some_and(u8::is_ascii_uppercase)
    };
    (0..bytes.len()).rev().find(ends).map_or(0, |at| at + 1)
}

fn last(text: &str, len: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(len))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(text: &str) -> Vec<(&'static str, u64)> {
        told(text).iter().map(|told| (told.role.key(), told.printed.bytes.0)).collect()
    }

    const M: u64 = 1 << 20;
    const G: u64 = 1 << 30;

    #[test]
    fn words_behind_and_before_say_what_a_size_is_for() {
        assert_eq!(
            roles(
                "Tried to allocate 2.00 GiB (GPU 1; 4.00 GiB total capacity; 1.00 GiB already allocated; 3.00 MiB free; 5.00 MiB cached)"
            ),
            [("requested", 2 * G), ("capacity", 4 * G), ("allocated", G), ("free", 3 * M), ("cached", 5 * M)]
        );
        assert_eq!(
            roles(
                "Tried to allocate 8.00 MiB. GPU 0 has a total capacity of 4.00 GiB of which 3.00 MiB is free. Including non-PyTorch memory, this process has 4.00 GiB memory in use. Of the allocated memory 3.00 GiB is allocated by PyTorch, with 7.00 MiB allocated in private pools, and 6.00 MiB is reserved by PyTorch but unallocated."
            ),
            [
                ("requested", 8 * M),
                ("capacity", 4 * G),
                ("free", 3 * M),
                ("in_use", 4 * G),
                ("allocated", 3 * G),
                ("private_pools", 7 * M),
                ("unallocated", 6 * M)
            ]
        );
        assert_eq!(
            roles("(MPS allocated: 15.00 GB, other allocations: 2.00 GB, max allowed: 18.00 GB)"),
            [("allocated", 15 * G), ("other", 2 * G), ("limit", 18 * G)]
        );
        assert_eq!(
            roles("out of resource: shared memory, Required: 73728, Hardware limit: 65536"),
            [("requested", 73728), ("limit", 65536)]
        );
        assert_eq!(roles("Free memory/Total memory: 100/200"), [("free", 100), ("capacity", 200)]);
        assert_eq!(
            roles(
                "Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes, limit set to: 4,000,000,000 bytes)."
            ),
            [("requested", 25_600_000), ("allocated", 3_635_267_072), ("limit", 4_000_000_000)]
        );
        assert_eq!(
            roles(
                "Cannot allocate 1.00GB memory on GPU 0, 15.00GB memory has been allocated and available memory is only 97.00MB."
            ),
            [("requested", G), ("allocated", 15 * G), ("free", 97 * M)]
        );
        assert_eq!(
            roles("4.00 GiB KV cache is needed, which is larger than the available KV cache memory (1.00 GiB)"),
            [("requested", 4 * G), ("free", G)]
        );
        assert_eq!(roles("epoch 3 step 40 loss 2.11"), []);
    }
}
