//! Every kind has a way on, and no remedy is said twice.

use super::*;

#[test]
fn every_kind_has_a_way_on() {
    for &kind in FailureKind::ALL {
        let failure = Failure { kind, is_error: true, ..Failure::default() };
        let found = remedies(&failure, &Profile::default());
        assert!(!found.change.is_empty() || !found.learn.is_empty(), "{}", kind.name());
        for (i, remedy) in found.change.iter().enumerate() {
            assert!(found.change[..i].iter().all(|other| other.text != remedy.text), "{}", remedy.text);
        }
    }
}
