//! Parses and prints tile selections: `3, 17-20, ipu 2, over`.

use std::fmt::Write as _;

use crate::model::TileMemory;

/// Parses a tile selection into ascending, distinct tiles. Items are separated by commas: a tile, an inclusive range, an
/// IPU (`ipu 2`), `over` for tiles over the limit, or `all`.
///
/// # Errors
/// A sentence for the user if an item is invalid or a tile does not exist.
pub fn parse_tiles(memory: &TileMemory, over: &[u32], text: &str) -> Result<Vec<u32>, String> {
    let count = memory.tile_count() as u64;
    let mut tiles: Vec<u32> = Vec::new();
    for part in text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
        let lower = part.to_lowercase();
        let range = if lower == "over" {
            tiles.extend_from_slice(over);
            continue;
        } else if lower == "all" {
            0..count
        } else if let Some(ipu) = lower.strip_prefix("ipu") {
            let per = u64::from(memory.target.tiles_per_ipu);
            let number = ipu.trim().parse::<u64>().ok().filter(|&ipu| ipu < u64::from(memory.target.ipus));
            let Some(ipu) = number else { return Err(format!("there is no IPU '{}'", ipu.trim())) };
            ipu * per..(ipu + 1) * per
        } else {
            let (from, to) = lower.split_once(['-', '\u{2013}']).unwrap_or((&lower, &lower));
            let number = |text: &str| text.trim().trim_start_matches("tile").trim().parse::<u64>().ok();
            let (Some(from), Some(to)) = (number(from), number(to)) else {
                return Err(format!("'{part}' is not a tile: write 3, 17-20, ipu 0 or over"));
            };
            from.min(to)..from.max(to).saturating_add(1)
        };
        if range.end > count {
            return Err(format!("there is no tile {}", range.end - 1));
        }
        tiles.extend(range.map(|tile| tile as u32));
    }
    tiles.sort_unstable();
    tiles.dedup();
    Ok(tiles)
}

/// Prints tiles in the notation of [`parse_tiles`], truncated after `most` items.
#[must_use]
pub fn tiles_text(tiles: &[u32], most: usize) -> String {
    let mut sorted = tiles.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut words = String::new();
    let mut parts = 0;
    let mut at = 0;
    while at < sorted.len() {
        let run = (at..sorted.len()).take_while(|&i| sorted[i] - sorted[at] == (i - at) as u32).count();
        let (from, to) = (sorted[at], sorted[at + run - 1]);
        let gap = if parts == 0 { "" } else { ", " };
        if parts == most {
            words.push_str(", \u{2026}");
            break;
        }
        let _ = if run > 1 { write!(words, "{gap}{from}-{to}") } else { write!(words, "{gap}{from}") };
        parts += 1;
        at += run;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TileTarget;

    fn memory() -> TileMemory {
        TileMemory {
            target: TileTarget { ipus: 2, tiles_per_ipu: 10, ..TileTarget::default() },
            ..TileMemory::default()
        }
    }

    #[test]
    fn tiles_ranges_ipus_and_what_is_over() {
        let read = |text: &str| parse_tiles(&memory(), &[4, 19], text);
        assert_eq!(read("3, 7-5,3"), Ok(vec![3, 5, 6, 7]));
        assert_eq!(read("IPU 1"), Ok((10..20).collect()));
        assert_eq!(read("over, tile 0"), Ok(vec![0, 4, 19]));
        assert_eq!(read(" , "), Ok(vec![]));
        assert!(read("20").is_err() && read("ipu 2").is_err() && read("x").is_err() && read("1-99999999999").is_err());
        assert!(read("18446744073709551615").is_err());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let tiles = vec![1, 2, 3, 9, 12, 13];
        assert_eq!(tiles_text(&tiles, 9), "1-3, 9, 12-13");
        assert_eq!(parse_tiles(&memory(), &[], &tiles_text(&tiles, 9)), Ok(tiles.clone()));
        assert_eq!(tiles_text(&tiles, 2), "1-3, 9, \u{2026}");
    }
}
