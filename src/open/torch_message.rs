//! Which snapshot of PyTorch's allocator an out-of-memory message of PyTorch is about.

use crate::model::{Bytes, CachingAction, CachingSnapshot, Failure, FailureKind, Profile};

/// A printed size stands for what is rounded to it: two digits after the point.
const PRINTED: f64 = 0.005;

/// Whether the messages of `text` are about a failed request of the snapshot in `profile`.
#[must_use]
pub fn tells_of_snapshot(profile: &Profile, text: &Profile) -> bool {
    let Some(snapshot) = &profile.caching else { return false };
    text.caching.is_none() && text.failures.iter().any(|failure| has_event(snapshot, failure))
}

/// Whether a failed request of the snapshot asked for what a message says, on the device that it names.
fn has_event(snapshot: &CachingSnapshot, failure: &Failure) -> bool {
    let is_torch = matches!(
        failure.kind,
        FailureKind::TorchCuda | FailureKind::TorchCudaLimit | FailureKind::TorchHip | FailureKind::TorchXpu
    );
    let (true, Some(requested)) = (is_torch, failure.bytes("requested")) else { return false };
    let gpu = failure.count("gpu");
    let devices = snapshot.devices.iter().filter(|device| gpu.is_none_or(|gpu| gpu == i64::from(device.index)));
    let events = &snapshot.events;
    devices.flat_map(|device| device.events.clone()).any(|event| {
        let action = events.action.get(event).copied();
        let size = events.size.get(event).copied();
        action == Some(CachingAction::OutOfMemory) && size.is_some_and(|size| is_printed_as(size, requested))
    })
}

/// Whether a request, which the event has rounded up to 512 bytes, was printed as a size.
fn is_printed_as(event: u64, printed: Bytes) -> bool {
    let unit = 1u64 << (printed.0.max(1).ilog2() / 10 * 10).min(40);
    event.abs_diff(printed.0) as f64 <= unit as f64 * PRINTED + 512.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_by_its_printed_size() {
        assert!(is_printed_as(256 << 20, Bytes(256 << 20)));
        // 1.23 GiB.
        let printed = Bytes((1.23 * (1u64 << 30) as f64) as u64);
        assert!(is_printed_as(printed.0 + 5_000_000, printed));
        assert!(!is_printed_as(printed.0 + 12_000_000, printed));
        // 20 bytes are rounded up to a block.
        assert!(is_printed_as(512, Bytes(20)));
        assert!(!is_printed_as(2048, Bytes(20)));
    }
}
