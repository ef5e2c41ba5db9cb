//! Name patterns such as `layer_*`.

/// Whether a name matches a pattern, where `*` matches any text.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return name.is_empty() };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The pattern of a name: `*` in place of every number.
#[must_use]
pub fn of(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '0'..='9' if pattern.ends_with('*') => {}
            '0'..='9' => pattern.push('*'),
            c => pattern.push(c),
        }
    }
    pattern
}

/// The pattern of names that are alike: `*` in place of the numbers in which they differ. Of names that are not alike, that
/// of the first.
#[must_use]
pub fn of_all(names: &[&str]) -> String {
    let Some((first, others)) = names.split_first() else { return String::new() };
    let others: Vec<Vec<&str>> = others.iter().map(|name| numbers(name)).collect();
    let mut pattern = String::with_capacity(first.len());
    let mut rest = *first;
    for (place, number) in numbers(first).into_iter().enumerate() {
        let at = rest.find(number).unwrap_or(0);
        pattern.push_str(&rest[..at]);
        let is_same = others.iter().all(|other| other.get(place) == Some(&number));
        pattern.push_str(if is_same { number } else { "*" });
        rest = &rest[at + number.len()..];
    }
    pattern.push_str(rest);
    pattern
}

/// The numbers in a name, in order.
fn numbers(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_layers_are_one() {
        assert_eq!(of("layer_12: add"), of("layer_3: add"));
        assert_eq!(of("layer_12/mlp_2"), "layer_*/mlp_*");
    }

    #[test]
    fn numbers_that_all_names_have_stay() {
        assert_eq!(of_all(&["jit(a2c_step)/layer_1/mul", "jit(a2c_step)/layer_12/mul"]), "jit(a2c_step)/layer_*/mul");
        assert_eq!(of_all(&["layer_1/mul_1", "layer_1/mul_1"]), "layer_1/mul_1");
        assert_eq!(of_all(&["conv1_1", "conv1_12", "conv2_1"]), "conv*_*");
        assert_eq!(of_all(&[]), "");
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, expected) in [
            ("layer_*", "layer_12", true),
            ("layer_1", "layer_12", false),
            ("*", "", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("*_0", "block_0", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
