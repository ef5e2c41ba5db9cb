//! Compares the wire-format walker with prost on arbitrary bytes: it must accept whatever prost accepts.
#![no_main]

use highwater::decode::wire::Reader;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;

fn walk(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes, 0);
    loop {
        match reader.tag() {
            Ok(None) => return reader.position() == bytes.len(),
            Ok(Some(tag)) => {
                // Reading any field as numbers or as a message may fail but must not panic.
                let _ = reader.clone().numbers(tag, |_| {});
                let _ = reader.clone().message().map(|mut inner| while let Ok(Some(tag)) = inner.tag() {
                    if inner.skip(tag).is_err() {
                        break;
                    }
                });
                if reader.skip(tag).is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    // A message type without fields skips every field.
    let theirs = <()>::decode(bytes).is_ok();
    let ours = walk(bytes);
    assert!(ours || !theirs, "the walker rejects a message that prost accepts");
});
