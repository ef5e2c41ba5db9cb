//! Which programs of two dumps are the same, by name.

/// A program of a dump, as it is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramName {
    /// Folder in the dump; empty for the dump itself.
    pub group: String,
    /// Name of the module.
    pub name: String,
}

/// Programs of two lists, as places in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProgramPairs {
    /// Programs on both sides.
    pub pairs: Vec<(usize, usize)>,
    /// Only in the first list.
    pub only_before: Vec<usize>,
    /// Only in the second.
    pub only_after: Vec<usize>,
}

/// What must be equal in two programs of a pair: folder and name.
type Key = fn(&ProgramName) -> (&str, &str);

/// Pairs programs with equal folders and names, then with equal names, then those equal but for the number that XLA adds
/// (`jit_step.12`); several of one name in their order. The only program of one side is that of the other, whatever its name.
#[must_use]
pub fn pair_programs(before: &[ProgramName], after: &[ProgramName]) -> ProgramPairs {
    let mut found = ProgramPairs {
        pairs: Vec::new(),
        only_before: (0..before.len()).collect(),
        only_after: (0..after.len()).collect(),
    };
    let keys: [Key; 3] = [|one| (&one.group, &one.name), |one| ("", &one.name), |one| ("", unnumbered(&one.name))];
    for key in keys {
        found.only_before.retain(|&place| {
            let same = found.only_after.iter().position(|&other| key(&after[other]) == key(&before[place]));
            if let Some(at) = same {
                found.pairs.push((place, found.only_after.remove(at)));
            }
            same.is_none()
        });
    }
    if let ([place], [other]) = (&found.only_before[..], &found.only_after[..])
        && before.len() == 1
        && after.len() == 1
    {
        found.pairs.push((*place, *other));
        found.only_before.clear();
        found.only_after.clear();
    }
    found.pairs.sort_unstable();
    found
}

fn unnumbered(name: &str) -> &str {
    let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match head.strip_suffix(['.', '_']) {
        Some(head) if !head.is_empty() => head,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(before: &[&str], after: &[&str]) -> (Vec<(usize, usize)>, usize, usize) {
        let owned = |names: &[&str]| -> Vec<ProgramName> {
            let split = |name: &str| match name.split_once('/') {
                Some((group, name)) => ProgramName { group: group.to_owned(), name: name.to_owned() },
                None => ProgramName { group: String::new(), name: name.to_owned() },
            };
            names.iter().map(|name| split(name)).collect()
        };
        let found = pair_programs(&owned(before), &owned(after));
        (found.pairs, found.only_before.len(), found.only_after.len())
    }

    #[test]
    fn names_pair_programs() {
        assert_eq!(pairs(&["a", "b"], &["b", "a"]), (vec![(0, 1), (1, 0)], 0, 0));
        assert_eq!(pairs(&["step.3", "b"], &["step.7", "c"]), (vec![(0, 0)], 1, 1));
        assert_eq!(pairs(&["x/a", "y/a"], &["y/a", "x/a"]), (vec![(0, 1), (1, 0)], 0, 0));
        assert_eq!(pairs(&["x/a"], &["z/b", "z/a"]), (vec![(0, 1)], 0, 1));
        assert_eq!(pairs(&["a"], &["z"]), (vec![(0, 0)], 0, 0));
        assert_eq!(pairs(&["a", "a"], &["a"]), (vec![(0, 0)], 1, 0));
        assert_eq!(pairs(&["a", "b"], &["z"]), (vec![], 2, 1));
    }
}
