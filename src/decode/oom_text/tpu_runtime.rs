//! What the TPU runtime says when a buffer or a program finds no room (E0100, E0101).

use super::found::Found;
use super::listing;
use super::pattern::patterns;
use crate::model::{FailureKind, FailureValue};

patterns! {
    ALLOCATE = r"Attempting to allocate <S>\. That was not possible\. There are <S> free\.?";
    LARGEST = r"Due to fragmentation, the largest contiguous region of free memory is <S>";
    DEVICE = r"\((\d+x\d+x\d+_\w+)\)";
    REPLICA = r"replica <N> and";
    PARTITION = r"and partition <N> of";
    COULD_NOT = r"Could not allocate <N> bytes in memory (\d+x\d+x\d+_\w+); <N> bytes allocatable, <N> bytes available";
    RESERVE = r"(?:Error loading program '([^'\n]*)': )?Attempting to reserve <S> at the bottom of memory\. That was not possible\.(?: There are <S> free, <S> reserved, and <S> reservable)?";
}

/// How far behind the sentence its device and replica may stand.
const TAIL: usize = 700;

/// Every message of the runtime in a text.
pub fn find(text: &str, found: &mut Vec<Found>) {
    for captures in ALLOCATE.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuRuntimeAlloc, &captures);
        new.size("requested", &captures, 1).size("free", &captures, 2);
        found.push(new);
    }
    for captures in COULD_NOT.captures_iter(text) {
        let mut new = Found::new(FailureKind::TpuRuntimeAlloc, &captures);
        new.bytes("requested", &captures, 1).text("device", &captures, 2);
        new.bytes("largest_free", &captures, 3).bytes("free", &captures, 4);
        found.push(new);
    }
    for captures in RESERVE.captures_iter(text) {
        let is_load = captures.get(1).is_some();
        let mut new =
            Found::new(if is_load { FailureKind::TpuRuntimeLoad } else { FailureKind::TpuRuntimeReserve }, &captures);
        new.text("program", &captures, 1).size("requested", &captures, 2).size("free", &captures, 3);
        new.size("reserved_now", &captures, 4).size("reservable", &captures, 5);
        found.push(new);
    }
}

/// Reads what follows the sentence, up to the next message.
pub fn details(found: &mut Found, section: &str, is_cut: bool) {
    let tail = super::head::head_of(section, TAIL);
    match found.failure.kind {
        FailureKind::TpuRuntimeAlloc => {
            found.size_in("largest_free", &LARGEST, tail);
            if let Some(device) = DEVICE.captures(tail) {
                found.text("device", &device, 1);
            }
            found.count_in("replica", &REPLICA, tail).count_in("partition", &PARTITION, tail);
        }
        FailureKind::TpuRuntimeLoad => {
            found.count_in("replica", &REPLICA, tail).count_in("partition", &PARTITION, tail);
        }
        FailureKind::TpuRuntimeReserve => listing::read(found, section, is_cut),
        _ => return,
    }
    // Enough is free, only not in one piece.
    let (requested, free) = (found.failure.bytes("requested"), found.failure.bytes("free"));
    let largest = found.failure.bytes("largest_free");
    if let (Some(requested), Some(free), Some(largest)) = (requested, free, largest)
        && largest < requested
        && requested <= free
    {
        found.put("fragmented", Some(FailureValue::Flag(true)));
    }
}
