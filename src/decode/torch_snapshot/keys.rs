//! The texts that a snapshot is made of, interned first, so that each has a fixed number.

use crate::model::Strings;

macro_rules! keys {
    ($($name:ident $text:literal),* $(,)?) => {
        #[expect(clippy::upper_case_acronyms, non_camel_case_types, reason = "a helper that only counts")]
        #[repr(u32)]
        enum Number { _EMPTY, $($name),* }
        $(
            #[doc = concat!("`", $text, "`.")]
            pub const $name: u32 = Number::$name as u32;
        )*
        const TEXTS: &[&str] = &[$($text),*];
    };
}

keys! {
    ACTION "action", ADDR "addr", SIZE "size", STREAM "stream", FRAMES "frames", TIME_US "time_us",
    DEVICE_FREE "device_free", POOL_ID "pool_id", USER_METADATA "user_metadata",
    ALLOC "alloc", FREE_REQUESTED "free_requested", FREE_COMPLETED "free_completed",
    SEGMENT_ALLOC "segment_alloc", SEGMENT_FREE "segment_free", SEGMENT_MAP "segment_map",
    SEGMENT_UNMAP "segment_unmap", OOM "oom", SNAPSHOT "snapshot", ANNOTATE "annotate",
    NAME "name", FILENAME "filename", LINE "line",
    DEVICE "device", ADDRESS "address", TOTAL_SIZE "total_size", REQUESTED_SIZE "requested_size",
    SEGMENT_TYPE "segment_type", SEGMENT_POOL_ID "segment_pool_id", IS_EXPANDABLE "is_expandable",
    BLOCKS "blocks", SMALL "small",
    STATE "state", HISTORY "history", REAL_SIZE "real_size", ACTIVE_ALLOCATED "active_allocated",
    ACTIVE_PENDING_FREE "active_pending_free", ACTIVE_AWAITING_FREE "active_awaiting_free",
    STAGE "stage", START "START", END "END",
    SEGMENTS "segments", DEVICE_TRACES "device_traces", ALLOCATOR_SETTINGS "allocator_settings",
    MAX_SPLIT_SIZE "max_split_size", GARBAGE_COLLECTION_THRESHOLD "garbage_collection_threshold",
    EXPANDABLE_SEGMENTS "expandable_segments", ROUNDUP_POWER2_DIVISIONS "roundup_power2_divisions",
}

/// The interned texts, in the order of the numbers.
pub fn interned() -> Strings {
    let mut strings = Strings::default();
    for text in TEXTS {
        strings.intern(text);
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StringId;

    #[test]
    fn numbers_and_texts_agree() {
        let strings = interned();
        assert_eq!(strings.get(StringId(ACTION)), "action");
        assert_eq!(strings.get(StringId(ROUNDUP_POWER2_DIVISIONS)), "roundup_power2_divisions");
        assert_eq!(strings.len(), ROUNDUP_POWER2_DIVISIONS as usize + 1);
    }
}
