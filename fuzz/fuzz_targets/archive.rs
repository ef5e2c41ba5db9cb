//! Lists arbitrary bytes as an archive and unpacks its members.
#![no_main]

use highwater::source::{ArchiveKind, Input, Progress, Tree};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = Input::from_bytes("fuzz", bytes.to_vec().into()) else { return };
    let progress = Progress::default();
    for kind in [ArchiveKind::Zip, ArchiveKind::Tar] {
        let Ok(tree) = Tree::archive(&input, kind, &progress) else { continue };
        for member in tree.members.iter().take(16) {
            assert!(!member.path.starts_with('/') && !member.path.split('/').any(|part| part == ".."));
            let _ = member.open(&progress).and_then(|input| input.load(&progress));
        }
    }
});
