//! Keys and values that lie beside each other, as each layer's in a cache do.

use crate::model::{FastMap, FastSet};

/// What keys are called, with what values are called beside them.
const NAMES: [(&str, &str); 3] = [("key", "value"), ("keys", "values"), ("k", "v")];

/// A layer's path, the dimensions of its keys and values, and which of [`NAMES`] they have.
type Layer<'a> = (&'a str, &'a [i64], usize);

/// The last step of a path, without brackets and quotes, and what is before it.
fn last_step(path: &str) -> Option<(&str, &str)> {
    let at = path.rfind(['[', '.'])?;
    let (before, step) = path.split_at(at);
    Some((before, step.trim_matches(['[', ']', '.', '\'', '"'])))
}

/// The numbers of the arrays, given with their paths and dimensions, that lie beside one of the same dimensions whose name
/// makes them keys or values.
pub(super) fn pairs<'a>(arrays: impl Iterator<Item = (i64, &'a str, &'a [i64])>) -> FastSet<i64> {
    let mut halves: FastMap<Layer<'a>, [Option<i64>; 2]> = FastMap::default();
    for (number, path, dimensions) in arrays {
        let Some((before, step)) = last_step(path) else { continue };
        let found = NAMES.iter().enumerate().find_map(|(row, &(key, value))| match step {
            _ if step == key => Some((row, 0)),
            _ if step == value => Some((row, 1)),
            _ => None,
        });
        if let Some((row, half)) = found {
            halves.entry((before, dimensions, row)).or_default()[half] = Some(number);
        }
    }
    let whole = halves.into_values().filter(|halves| halves.iter().all(Option::is_some));
    whole.flatten().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_of_one_layer_and_of_equal_dimensions_are_a_pair() {
        let (cache, other): (&[i64], &[i64]) = (&[5, 2, 8192, 64], &[5, 2, 1, 64]);
        let of = |rows: &[(&str, &[i64])]| -> Vec<i64> {
            let mut found: Vec<i64> =
                pairs((0i64..).zip(rows).map(|(number, row)| (number, row.0, row.1))).into_iter().collect();
            found.sort_unstable();
            found
        };
        assert_eq!(of(&[("rows[0]['key']", cache), ("rows[0]['value']", cache), ("rows[1]['key']", cache)]), [0, 1]);
        assert_eq!(of(&[("state.k", cache), ("state.v", cache)]), [0, 1]);
        assert!(of(&[("rows[0]['key']", cache), ("rows[0]['value']", other)]).is_empty());
        assert!(of(&[("rows[0]['key']", cache), ("rows[1]['value']", cache)]).is_empty());
        assert!(of(&[("state['v']", cache), ("k", cache)]).is_empty(), "what is above its own layer");
    }
}
