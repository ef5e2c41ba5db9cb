//! What a checkpoint is put around, and its textual form: `layer_*`, `* 3`, `scan`, `scan/mlp/*`.

use std::fmt;

use super::edit::EditError;
use super::segments::EVERY;
use crate::analysis::names::pattern::matches;

/// The scope that means the body of the loops over layers.
const SCAN: &str = "scan";

/// How a scope begins that means a part of that body.
const IN_SCAN: &str = "scan/";

/// What [`super::Edit::Remat`] computes again in the backward pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checkpoint {
    /// Layers by a pattern for their names, where `*` matches any text; with a number, only that many first ones.
    Layers(String, Option<u32>),
    /// The body of the loops over layers.
    Scan,
    /// The part of that body that makes what the loops save under names of a pattern.
    ScanPart(String),
}

impl Checkpoint {
    /// Every layer, those of loops too.
    #[must_use]
    pub fn every_layer() -> Self {
        Self::layers(EVERY)
    }

    /// All layers whose names match a pattern.
    #[must_use]
    pub fn layers(pattern: &str) -> Self {
        Self::Layers(pattern.to_owned(), None)
    }

    /// Whether this is around whole layers of loops, too.
    #[must_use]
    pub fn may_be_scan(&self) -> bool {
        match self {
            Self::Layers(pattern, _) => matches(pattern, SCAN),
            Self::Scan => true,
            Self::ScanPart(_) => false,
        }
    }

    /// The pattern for layers that are in no loop.
    #[must_use]
    pub fn pattern(&self) -> Option<&str> {
        match self {
            Self::Layers(pattern, _) => Some(pattern),
            Self::Scan | Self::ScanPart(_) => None,
        }
    }

    /// Whether two are around the same, in however many layers.
    #[must_use]
    pub fn is_around_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Layers(pattern, _), Self::Layers(of, _)) => pattern == of,
            _ => self == other,
        }
    }

    /// The checkpoint with other names for what it names.
    #[must_use]
    pub fn renamed(&self, name: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Layers(pattern, layers) => Self::Layers(name(pattern), *layers),
            Self::Scan => Self::Scan,
            Self::ScanPart(pattern) => Self::ScanPart(name(pattern)),
        }
    }

    /// In words: `Checkpoint every layer`.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Scan => "Checkpoint the body of the scan".to_owned(),
            Self::ScanPart(pattern) => format!("Checkpoint {} in the scan", part_name(pattern)),
            Self::Layers(pattern, layers) => match (pattern.as_str(), layers) {
                (EVERY, None) => "Checkpoint every layer".to_owned(),
                (EVERY, Some(1)) => "Checkpoint the first layer".to_owned(),
                (EVERY, Some(layers)) => format!("Checkpoint the first {layers} layers"),
                (pattern, None) => format!("Checkpoint {pattern}"),
                (pattern, Some(1)) => format!("Checkpoint the first of {pattern}"),
                (pattern, Some(layers)) => format!("Checkpoint the first {layers} of {pattern}"),
            },
        }
    }

    /// Reads what follows the word `remat`.
    ///
    /// # Errors
    /// [`EditError::Form`] for nothing, and for a number of layers of a scan, which are checkpointed together.
    pub(super) fn read(text: &str) -> Result<Self, EditError> {
        let numbered = text.rsplit_once(char::is_whitespace).and_then(|(scope, layers)| {
            Some((scope.trim_end(), layers.parse::<u32>().ok().filter(|&layers| layers > 0)?))
        });
        let (scope, layers) = numbered.map_or((text, None), |(scope, layers)| (scope, Some(layers)));
        match (scope.strip_prefix(IN_SCAN), layers) {
            _ if scope.is_empty() => Err(EditError::Form("remat SCOPE [N]")),
            (Some(_), Some(_)) => Err(EditError::Form("remat scan/PATTERN")),
            (Some(part), None) => Ok(Self::ScanPart(part.to_owned())),
            (None, Some(_)) if scope == SCAN => Err(EditError::Form("remat scan")),
            (None, None) if scope == SCAN => Ok(Self::Scan),
            (None, layers) => Ok(Self::Layers(scope.to_owned(), layers)),
        }
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layers(pattern, None) => f.write_str(pattern),
            Self::Layers(pattern, Some(layers)) => write!(f, "{pattern} {layers}"),
            Self::Scan => f.write_str(SCAN),
            Self::ScanPart(pattern) => write!(f, "{IN_SCAN}{pattern}"),
        }
    }
}

/// What a part of the layers of a loop is called, by the pattern for what the loop saves of it: `mlp` for `*mlp*`.
#[must_use]
pub fn part_name(pattern: &str) -> &str {
    pattern.trim_matches(['*', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_written_as_they_are_read() {
        for text in ["scan", "scan/mlp/*", "layer_*", "* 3", "en coder 2", "scanned_layers"] {
            assert_eq!(Checkpoint::read(text).map(|scope| scope.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(Checkpoint::read("scan"), Ok(Checkpoint::Scan));
        assert_eq!(Checkpoint::read("scan/mlp/*"), Ok(Checkpoint::ScanPart("mlp/*".to_owned())));
        assert_eq!(Checkpoint::read("* 3"), Ok(Checkpoint::Layers("*".to_owned(), Some(3))));
    }

    #[test]
    fn layers_of_a_scan_are_checkpointed_together() {
        for (text, form) in [("", "remat SCOPE [N]"), ("scan 3", "remat scan"), ("scan/mlp 3", "remat scan/PATTERN")] {
            assert_eq!(Checkpoint::read(text), Err(EditError::Form(form)));
        }
    }
}
