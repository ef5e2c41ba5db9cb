//! Detects which kind of Poplar file an input is, by the keys in its first bytes.

use super::cbor::Cbor;
use super::json::Json;
use super::pull::{Feed, Pull, Token};
use crate::source::Input;

/// Kind of Poplar file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Graph profile, execution profile, both, or lowered variables.
    Profile,
    /// `debug.cbor`, also as JSON.
    Debug,
    /// `profile_info.json` of Graphcore's `gc_profile`.
    ProfileInfo,
    /// `tile_mapping.json`.
    TileMapping,
    /// `archive_info.json`.
    ArchiveInfo,
    /// `framework.json`, `app.json`: free form, told by their names too.
    Facts,
}

/// Whether the first bytes are those of a CBOR map.
pub fn is_cbor(head: &[u8]) -> bool {
    let head = head.strip_prefix(&[0xd9, 0xd9, 0xf7]).unwrap_or(head);
    matches!(head.first(), Some(0xa0..=0xbf))
}

/// Whether the first bytes are those of a JSON object.
fn is_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// The kind of an input; `None` if it is not a Poplar file.
pub fn kind(input: &Input) -> Option<Kind> {
    let head = input.head();
    if is_json(head) {
        return kind_of(&mut Json::new(Feed::of(head)), input.file_name());
    }
    if is_cbor(head) {
        return kind_of(&mut Cbor::new(Feed::of(head)), input.file_name());
    }
    None
}

/// Scans the head until a path of keys decides. The head is truncated, so an error counts as its end.
fn kind_of(pull: &mut dyn Pull, name: &str) -> Option<Kind> {
    let mut path: Vec<String> = Vec::new();
    let mut key = String::new();
    let mut roots: Vec<String> = Vec::new();
    while let Ok(token) = pull.next() {
        match token {
            Token::Key => {
                pull.text().clone_into(&mut key);
                let inside: Vec<&str> = path.iter().skip(1).map(String::as_str).filter(|key| !key.is_empty()).collect();
                let inside = match inside.as_slice() {
                    ["graphProfile" | "executionProfile", rest @ ..] => rest,
                    all => all,
                };
                if let Some(kind) = settles(inside, &key) {
                    return Some(kind);
                }
                if path.len() == 1 {
                    roots.push(key.clone());
                }
            }
            Token::BeginObject | Token::BeginArray => path.push(std::mem::take(&mut key)),
            Token::EndObject | Token::EndArray => {
                path.pop();
                key.clear();
            }
            Token::End => break,
            _ => key.clear(),
        }
    }
    let has = |wanted: &str| roots.iter().any(|root| root == wanted);
    let name = name.trim_end_matches(".gz");
    if name == "framework.json" || name == "app.json" {
        return Some(Kind::Facts);
    }
    // Keys of a graph profile whose first one is longer than the head.
    let first = roots.first().map(String::as_str);
    (has("graphProfile") || (first == Some("exchanges") && path.len() >= 3)).then_some(Kind::Profile)
}

/// Whether a key below a path of keys occurs in one kind of file alone.
fn settles(path: &[&str], key: &str) -> Option<Kind> {
    #[expect(clippy::match_like_matches_macro, reason = "a table, a row for each place")]
    let profile = match (path, key) {
        ([], "profilerMode" | "programTrace" | "targetMemoryInfo" | "equivalenceClassInterference") => true,
        ([], "allocationOrderByTile") => true,
        (["target"], "numTiles" | "tilesPerIPU" | "tilesPerIpu" | "bytesPerTile" | "numIPUs") => true,
        (["memory"], "byTile" | "byCategory" | "byVertexType" | "byComputeSet") => true,
        (["computeSets"], "vertexCounts" | "estimatedCyclesByTile" | "vertexTypes") => true,
        (["exchanges"], "codeBytesByTile" | "bytesSentByTile" | "bytesReceivedByTile" | "estimatedCyclesByTile") => {
            true
        }
        (["graph"], "numComputeSets" | "numVertices") => true,
        (["simulation"], "tileCycles") => true,
        _ => false,
    };
    if profile {
        return Some(Kind::Profile);
    }
    match (path, key) {
        ([], "gcprofile_version") => Some(Kind::ProfileInfo),
        ([], "max_tile_memory") => Some(Kind::ArchiveInfo),
        ([], "mappings") => Some(Kind::TileMapping),
        ([], "stringTable") | (["contexts"], "layer" | "location" | "attributes") => Some(Kind::Debug),
        _ => None,
    }
}
