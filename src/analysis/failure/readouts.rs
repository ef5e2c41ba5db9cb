//! The sizes of a message in groups: what was asked for, what there was, what held it. Equal sizes stand once.

use crate::model::{Failure, FailureValue, PrintedSize};

/// A size of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readout {
    /// Its name: `needed`, `heap allocations`.
    pub name: String,
    /// The size.
    pub size: PrintedSize,
    /// Other names under which the message has the same size.
    pub also: Vec<String>,
    /// Whether it is a capacity, which is written as its maker writes it.
    pub is_capacity: bool,
}

impl Readout {
    /// The size in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.is_capacity { crate::model::UnitSystem::Binary.capacity(self.size.bytes) } else { self.size.in_words() }
    }
}

/// The part that sizes have in a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// What was asked for, and by how much that was too much.
    Asked,
    /// The capacity, and what was free of it.
    There,
    /// What held the memory.
    Held,
}

impl Role {
    /// All roles, in order.
    pub const ALL: [Self; 3] = [Self::Asked, Self::There, Self::Held];

    /// The title of the group.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Asked => "Asked for",
            Self::There => "What there was",
            Self::Held => "What held it",
        }
    }

    fn of(key: &str) -> Self {
        match key {
            "used" | "requested" | "exact_request" | "rounded" | "tensorcore" | "sparsecore" | "size"
            | "requirement" | "exceeded" | "missing" => Self::Asked,
            "capacity" | "limit" | "pool_limit" | "pool" | "region" | "free" | "total_free" | "largest_free"
            | "largest_free_block" | "reservable" | "central_gap" | "largest_same_end" | "largest_any_end" => {
                Self::There
            }
            _ => Self::Held,
        }
    }
}

/// The name of a key in words.
fn name(key: &str) -> String {
    match key {
        "used" => "needed".to_owned(),
        "exceeded" => "too much".to_owned(),
        "missing" => "missing as printed".to_owned(),
        "top_reserved" => "reserved at the top".to_owned(),
        _ => key.replace('_', " "),
    }
}

/// The sizes of a message in groups, none of them empty. A size that is named several times is in the first of its
/// groups; what held nothing is left out.
#[must_use]
pub fn readouts(failure: &Failure) -> Vec<(Role, Vec<Readout>)> {
    let mut all: Vec<(Role, Readout)> = Vec::new();
    for role in Role::ALL {
        for (key, value) in &failure.fields {
            let FailureValue::Size(size) = value else { continue };
            if Role::of(key) != role || (role == Role::Held && size.bytes.0 == 0) {
                continue;
            }
            let equal = all.iter_mut().find(|(_, other)| other.size.bytes == size.bytes && size.bytes.0 > 0);
            if let Some((_, other)) = equal {
                other.also.push(name(key));
                continue;
            }
            let is_capacity = matches!(*key, "capacity" | "limit" | "pool_limit");
            all.push((role, Readout { name: name(key), size: size.clone(), also: Vec::new(), is_capacity }));
        }
    }
    let group = |role| all.iter().filter(|(of, _)| *of == role).map(|(_, readout)| readout.clone()).collect::<Vec<_>>();
    Role::ALL.into_iter().map(|role| (role, group(role))).filter(|(_, group)| !group.is_empty()).collect()
}
