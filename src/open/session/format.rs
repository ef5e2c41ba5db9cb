//! The contents of a session file. Keys may be added, never changed in meaning; unknown keys are ignored.

use serde::{Deserialize, Serialize};

/// Name of the schema.
pub const SCHEMA: &str = "highwater.session/1";

/// Everything that is saved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// [`SCHEMA`].
    pub schema: String,
    /// What is open.
    pub profiles: Vec<SavedProfile>,
    /// Which of the profiles is shown.
    #[serde(default)]
    pub shown: usize,
    /// Pairs of profiles that are compared: before, after. Further pairs with the file after of the first are its columns.
    #[serde(default)]
    pub comparisons: Vec<[usize; 2]>,
    /// Whether names are to be hidden when it is opened.
    #[serde(default)]
    pub names_hidden: bool,
}

/// A profile and the place in it. Texts are those of the command line's options of the same names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProfile {
    /// Its path, relative to the session file where it is below the same folder; in a packed session, its path there.
    pub path: String,
    /// Size in bytes of a file; 0 for a folder.
    #[serde(default)]
    pub bytes: u64,
    /// A text that was pasted, which is in no file; the path is only its name then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What its contents were when it was saved ([`super::content_hash`]); empty if unknown.
    #[serde(default)]
    pub hash: String,
    /// Program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// View.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Memory space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Selected buffer, by number or name, or tile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// Step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// First step of the range that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Last step of the range that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// Steps that the time axis shows: `1398-2458`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoom: Option<String>,
    /// What the treemap groups by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Program of the same folder or archive that it is compared with: what is before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Text to find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What a program may use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Pins with their notes: `step 120: a note`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<String>,
    /// Changes that are tried out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<String>,
    /// Named sets of changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<SavedSet>,
}

/// A named set of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSet {
    /// Its name.
    pub name: String,
    /// Its changes, as `--edit` writes them.
    pub edits: Vec<String>,
}

/// The steps that the time axis shows as words: `1398-2458`.
#[must_use]
pub fn zoom_words((from, to): (f64, f64)) -> String {
    let (from, to) = (from.max(0.0).floor() as u32, to.max(0.0).ceil() as u32);
    format!("{from}-{}", to.max(from + 1))
}

/// A range of steps from words: `1398-2458`.
///
/// # Errors
/// A sentence that says how a range is written.
pub fn parse_zoom(text: &str) -> Result<(u32, u32), String> {
    let ends = text.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    ends.filter(|(from, to)| from < to).ok_or_else(|| "write a range of steps as 1398-2458".to_owned())
}
