//! Repeated layers, recognised from framework op names: `layer_3` of
//! `jit(step)/jvp(model)/layer_3/mlp/dot_general`, `group_0/block_2` of a network with blocks in groups.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::scope;

/// One of several similar layers of a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layer {
    /// `layer_3`, `group_0/block_2`.
    pub name: String,
    /// The name with `*` for each number: `layer_*`, `group_*/block_*`.
    pub pattern: String,
}

impl Layer {
    /// Its own name, without those of the layers around it: `block_2` of `group_0/block_2`.
    #[must_use]
    pub fn own_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

/// A numbered scope in an op name.
struct Numbered<'a> {
    /// Its index in the path.
    place: usize,
    /// Its name without the number: `layer_`.
    stem: &'a str,
    number: u64,
    /// Its name with the number: `layer_3`.
    name: &'a str,
}

/// Letters that tell the blocks of one number apart: `block2a`, `block2b`.
const LETTERS: u64 = 27;

/// The block in the name of one of its modules, as Keras numbers them: `conv2_block3` of `conv2_block3_1_conv`, `block2a`
/// of `block2a_expand_conv`.
fn block_of(part: &str) -> Option<(&str, u64, &str)> {
    // Most names have no letter like its first.
    let mut starts = memchr::memchr_iter(b'b', part.as_bytes());
    let at = starts.find(|&at| part[at..].starts_with("block"))? + "block".len();
    let begin = at + usize::from(part[at..].starts_with('_'));
    let digits = part[begin..].bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = part[begin..begin + digits].parse().ok()?;
    let after = &part[begin + digits..];
    let letter = after.bytes().next().filter(u8::is_ascii_lowercase).map(|letter| letter - b'a' + 1);
    let end = begin + digits + usize::from(letter.is_some());
    let is_whole_word = part[end..].starts_with('_') && part.len() > end + 1;
    let number = number.checked_mul(LETTERS)?.checked_add(u64::from(letter.unwrap_or(0)))?;
    is_whole_word.then(|| (&part[..begin], number, &part[..end]))
}

/// The layer in the name of one of its modules, where the number is in the middle: stem, number, name, and the rest of
/// `layer10_attention_q`.
fn in_the_middle(part: &str) -> Option<(&str, u64, &str, &str)> {
    let begin = part.find(|c: char| c.is_ascii_digit()).filter(|&at| at > 0)?;
    let end = begin + part[begin..].bytes().take_while(u8::is_ascii_digit).count();
    let rest = part[end..].strip_prefix('_').filter(|rest| !rest.is_empty())?;
    Some((&part[..begin], part[begin..end].parse().ok()?, &part[..end], rest))
}

/// The layer in the name of a scope that ends in a number, with or without a separator before it: stem, number and name.
fn at_the_end(part: &str) -> Option<(&str, u64, &str)> {
    let stem = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_product = part.contains("->") || part.contains(',') || part.contains('(');
    let number = part[stem.len()..].parse().ok().filter(|_| !stem.is_empty() && !is_product)?;
    Some((stem, number, part))
}

/// Stems of layers whose numbers end the names of their scopes without a separator, each with modules inside.
fn stems_at_the_end(names: &[&str]) -> BTreeSet<String> {
    let mut inside: BTreeMap<&str, BTreeMap<u64, BTreeSet<String>>> = BTreeMap::new();
    let mut with_modules: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        let parts = scope::path(name);
        for (place, part) in parts.iter().enumerate().take(parts.len().saturating_sub(1)) {
            let Some((stem, number, _)) = at_the_end(part) else { continue };
            add_child(inside.entry(stem).or_default().entry(number).or_default(), parts[place + 1]);
            if place + 2 < parts.len() && !CONTROL.contains(&parts[place + 1]) {
                with_modules.insert(stem);
            }
        }
    }
    inside.retain(|stem, modules| with_modules.contains(stem) && are_blocks(modules));
    inside.into_keys().map(str::to_owned).collect()
}

/// Stems of layers whose numbers are in the middle of the names of their modules, several of which each layer has.
fn stems_in_the_middle(names: &[&str]) -> BTreeSet<String> {
    let mut inside: BTreeMap<&str, BTreeMap<u64, BTreeSet<String>>> = BTreeMap::new();
    for name in names {
        let parts = scope::path(name);
        let scopes = parts.split_last().map_or(&[][..], |row| row.1);
        for (stem, number, _, rest) in scopes.iter().filter_map(|part| in_the_middle(part)) {
            inside.entry(stem).or_default().entry(number).or_default().insert(rest.to_owned());
        }
    }
    inside.retain(|_, modules| are_blocks(modules));
    inside.into_keys().map(str::to_owned).collect()
}

/// Stems whose numbers are those of layers, and the numbers behind them those of modules of a layer: `edge` of `edge0_1`
/// and `edge11_2`. None where anything else has more numbers.
fn numbers_in_stems<'a>(outer: &BTreeMap<&'a str, BTreeSet<u64>>) -> BTreeMap<&'a str, BTreeSet<u64>> {
    let mut inside: BTreeMap<&'a str, BTreeSet<u64>> = BTreeMap::new();
    let mut most = 0;
    for (stem, numbers) in outer.iter().filter(|row| row.1.len() > 1) {
        match stem.strip_suffix('_').and_then(at_the_end) {
            Some((of, number, _)) => _ = inside.entry(of).or_default().insert(number),
            None => most = most.max(numbers.len()),
        }
    }
    inside.retain(|_, numbers| numbers.len() > LEAST_MODULES.max(most));
    inside
}

/// The numbered scopes of an op name, outermost first, but for einsum formulas.
fn numbered<'a>(parts: &[&'a str]) -> Vec<Numbered<'a>> {
    let Some((_, scopes)) = parts.split_last() else { return Vec::new() };
    scopes
        .iter()
        .enumerate()
        .filter_map(|(place, part)| {
            if let Some((stem, number, name)) = block_of(part) {
                return Some(Numbered { place, stem, number, name });
            }
            let (stem, number) = scope::numbered(part)?;
            let is_product = part.contains("->") || part.contains(',') || part.contains('(');
            let number = number.parse().ok()?;
            (!is_product && !stem.starts_with("branch_")).then_some(Numbered { place, stem, number, name: part })
        })
        .collect()
}

/// Whether a library numbers the modules of a stem by kind (`Dense_0`, `ResBlock_3`) where the program gives no names.
fn is_kind(stem: &str) -> bool {
    stem.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Scopes that are no modules.
pub const CONTROL: [&str; 7] = ["checkpoint", "rematted_computation", "remat", "while", "body", "cond", "closed_call"];

/// Fewest kinds of module in one that is numbered by kind and yet a block: an attention block has a norm and attention.
const LEAST_KINDS: usize = 2;

/// Whether a name may have a scope numbered by kind: some letter in it is a capital.
fn may_be_by_kind(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Stems of modules numbered by kind that are blocks, as they contain modules of several kinds themselves.
fn blocks_by_kind(names: &[&str]) -> BTreeSet<String> {
    let mut inside: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in names.iter().filter(|name| may_be_by_kind(name)) {
        let parts = scope::path(name);
        for found in numbered(&parts).iter().filter(|found| is_kind(found.stem)) {
            let child = parts.get(found.place + 1).filter(|_| found.place + 2 < parts.len());
            if let Some(child) = child.filter(|child| !scope::is_einsum(child) && !CONTROL.contains(child)) {
                inside.entry(found.stem.to_owned()).or_default().insert(scope::fold(child));
            }
        }
    }
    inside.retain(|_, children| children.len() >= LEAST_KINDS);
    inside.into_keys().collect()
}

/// Statistics of the numbered scopes with one stem inside one outer scope.
#[derive(Debug, Default)]
struct Inside {
    numbers: BTreeSet<u64>,
    /// Scopes and operations directly inside them, numbered ones by their stem.
    children: BTreeSet<String>,
}

/// The layers of one program: the outermost numbered scopes with at least two numbers, or the numbered scopes directly
/// inside them if those contain several modules each.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    stems: BTreeSet<String>,
    /// Names without a number of the first of several modules, as Haiku gives them, with the stem of the others: `mlp`
    /// and `mlp_` of `mlp_1`.
    firsts: BTreeMap<String, String>,
    /// Stems of modules numbered by kind that are blocks.
    blocks: BTreeSet<String>,
    /// Stems of an outer scope and of the scope inside it that is the layer.
    nested: BTreeSet<(String, String)>,
    /// Stems of layers that several modules have, such as two encoders.
    shared: BTreeSet<String>,
    /// Stems of layers whose numbers end names without a separator, where there are no others.
    ends: BTreeSet<String>,
    /// Stems of layers whose numbers are in the middle of names, where there are no others.
    middles: BTreeSet<String>,
    /// Those of one layer, where all of them have the same numbers: `edge` and `node` of `edge0_1` and `node0_1`.
    joined: Vec<String>,
}

/// Share of the modules of layers that those of two modules must have in common to be of one kind.
const ALIKE: f64 = 0.5;

/// The scope that a layer is in; of a method of a module, the module.
fn module<'a>(parts: &[&'a str], place: usize) -> &'a str {
    let scope = place.checked_sub(1).map_or("", |at| parts[at]);
    scope.split('.').next().unwrap_or(scope)
}

/// Whether two modules have several layers each, of one kind: not one module under two names.
fn are_twins(modules: &BTreeMap<&str, Inside>) -> bool {
    let several: Vec<&Inside> = modules.values().filter(|inside| inside.numbers.len() > 1).collect();
    several.len() > 1
        && several.windows(2).all(|pair| {
            let common = pair[0].children.intersection(&pair[1].children).count();
            common as f64 >= ALIKE * pair[0].children.len().max(pair[1].children.len()) as f64 && common > 1
        })
}

/// Whether scopes that are nothing but a number are layers: most have modules in common with the one before, unlike the
/// parts of a model in sequence (`0` the embedding, `1` the blocks, `2` the norm).
fn are_alike(places: &BTreeMap<u64, BTreeSet<String>>) -> bool {
    let pairs = || places.values().zip(places.values().skip(1));
    let alike = pairs().filter(|(one, next)| {
        let common = one.intersection(next).count();
        common > 0 && common as f64 >= ALIKE * one.len().max(next.len()) as f64
    });
    alike.count() * 2 >= pairs().count()
}

/// What the op names of a program, or of a part of it, show of its numbered scopes.
#[derive(Debug, Default)]
struct Scopes<'a> {
    /// Numbers of each stem.
    outer: BTreeMap<&'a str, BTreeSet<u64>>,
    /// Scopes as they are.
    plain: BTreeSet<&'a str>,
    /// What is in the outermost numbered scopes, by stem and the scope that they are in.
    modules: BTreeMap<&'a str, BTreeMap<&'a str, Inside>>,
    /// What is in the outermost scopes that are nothing but a number, by that.
    places: BTreeMap<u64, BTreeSet<String>>,
    /// The modules of numbered scopes directly inside those, by both stems and the number of the outer one, then by their
    /// own number.
    inner: BTreeMap<(&'a str, u64, &'a str), BTreeMap<u64, BTreeSet<String>>>,
}

/// Names looked at as one piece of work.
const PART: usize = 4096;

impl<'a> Scopes<'a> {
    fn add(&mut self, name: &'a str, layers: &Layers) {
        let parts = scope::path(name);
        let found = layers.numbered(&parts);
        self.plain.extend(parts.split_last().map_or(&[][..], |row| row.1).iter().filter(|part| !part.contains('(')));
        for layer in &found {
            self.outer.entry(layer.stem).or_default().insert(layer.number);
        }
        if let [first, ..] = &found[..]
            && let Some(child) = parts.get(first.place + 1)
        {
            let inside = self.modules.entry(first.stem).or_default().entry(module(&parts, first.place)).or_default();
            inside.numbers.insert(first.number);
            // Parts of a layer that are numbered alone say nothing of its kind: what is in them does.
            match parts.get(first.place + 2).filter(|_| scope::numbered(child).is_some()) {
                Some(part) => add_child(&mut inside.children, &format!("{}/{part}", scope::fold(child))),
                None => add_child(&mut inside.children, child),
            }
            if first.stem.is_empty() {
                self.places.entry(first.number).or_default().insert(scope::fold(child));
            }
        }
        if let [first, second, ..] = &found[..]
            && second.place == first.place + 1
        {
            let inside = self.inner.entry((first.stem, first.number, second.stem)).or_default();
            let modules = inside.entry(second.number).or_default();
            if let Some(child) = parts.get(second.place + 1).filter(|_| second.place + 2 < parts.len()) {
                add_child(modules, child);
            }
        }
    }

    /// What two parts of a program show together.
    fn with(mut self, other: Self) -> Self {
        self.plain.extend(other.plain);
        for (stem, numbers) in other.outer {
            self.outer.entry(stem).or_default().extend(numbers);
        }
        for (stem, modules) in other.modules {
            let own = self.modules.entry(stem).or_default();
            for (module, inside) in modules {
                own.entry(module).or_default().join(inside);
            }
        }
        for (number, children) in other.places {
            self.places.entry(number).or_default().extend(children);
        }
        for (key, inside) in other.inner {
            let own = self.inner.entry(key).or_default();
            for (number, mut modules) in inside {
                own.entry(number).or_default().append(&mut modules);
            }
        }
        self
    }
}

/// Adds a scope, numbered ones by their stem.
fn add_child(children: &mut BTreeSet<String>, child: &str) {
    let folded = scope::fold(child);
    if !children.contains(&folded) {
        children.insert(folded);
    }
}

/// Whether numbered scopes are blocks: several with several modules, most of which they have in common (the first may
/// have a shortcut besides), unlike the parts of one layer (`layer_0` its attention, `layer_1` its feed-forward network).
fn are_blocks(inside: &BTreeMap<u64, BTreeSet<String>>) -> bool {
    let modules: BTreeSet<&String> = inside.values().flatten().collect();
    let mut pairs = inside.values().zip(inside.values().skip(1)).peekable();
    let share = |(one, next): (&BTreeSet<String>, &BTreeSet<String>)| {
        one.intersection(next).count() as f64 / one.len().min(next.len()).max(1) as f64
    };
    modules.len() >= LEAST_MODULES && pairs.peek().is_some() && pairs.all(|pair| share(pair) > ALIKE)
}

impl Inside {
    fn join(&mut self, mut other: Self) {
        self.numbers.append(&mut other.numbers);
        self.children.append(&mut other.children);
    }
}

/// How many layers there are for each of the blocks in one of them, from which on these are parts of a layer that has other
/// modules too, such as the two feed-forward networks around the attention of a Conformer.
const MANY: usize = 4;

/// Whether a layer has modules beside those of a stem; `scopes` are all that are no operations, folded.
fn has_others(modules: &BTreeMap<&str, Inside>, stem: &str, scopes: &BTreeSet<String>) -> bool {
    let children = modules.values().flat_map(|inside| &inside.children);
    let mut names = children.map(|child| child.split('/').next().unwrap_or_default());
    names.any(|name| name.strip_suffix('*') != Some(stem) && scopes.contains(name))
}

/// Fewest modules in a block; a numbered scope with fewer is an operation of a layer.
const LEAST_MODULES: usize = 3;

impl Layers {
    /// Finds the layers from a program's op names.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.collect();
        let mut layers = Self { blocks: blocks_by_kind(&names), ..Self::default() };
        let of_part = |names: &[&'a str]| {
            let mut scopes = Scopes::default();
            for name in names {
                scopes.add(name, &layers);
            }
            scopes
        };
        let parts: Vec<Scopes<'a>> = names.par_chunks(PART).map(of_part).collect();
        let Scopes { mut outer, plain, modules, places, inner } =
            parts.into_iter().fold(Scopes::default(), Scopes::with);
        if !are_alike(&places) {
            outer.remove("");
        }
        let bare = |(stem, numbers): (&&str, &BTreeSet<u64>)| {
            let bare = stem.strip_suffix('_').filter(|bare| plain.contains(bare))?;
            (numbers.first() == Some(&1)).then(|| (bare.to_owned(), (*stem).to_owned()))
        };
        layers.firsts = outer.iter().filter_map(bare).collect();
        let is_first = |stem: &str| layers.firsts.values().any(|other| other == stem);
        let several = outer.iter().filter(|(stem, numbers)| numbers.len() > 1 || is_first(stem));
        layers.stems = several.map(|row| (*row.0).to_owned()).collect();
        let scopes = OnceCell::new();
        let scopes = || scopes.get_or_init(|| plain.iter().map(|name| scope::fold(name)).collect());
        let is_of_many = |first: &str, second: &str, blocks: usize| {
            outer.get(first).is_some_and(|numbers| numbers.len() >= MANY * blocks)
                && modules.get(first).is_some_and(|modules| has_others(modules, second, scopes()))
        };
        layers.nested = inner
            .into_iter()
            .filter(|((first, ..), inside)| layers.stems.contains(*first) && are_blocks(inside))
            .filter(|((first, _, second), inside)| !is_of_many(first, second, inside.len()))
            .map(|((first, _, second), _)| (first.to_owned(), second.to_owned()))
            .collect();
        layers.shared = modules.into_iter().filter(|row| are_twins(&row.1)).map(|row| row.0.to_owned()).collect();
        let in_stems = numbers_in_stems(&outer);
        if !in_stems.is_empty() {
            let mut middles = stems_in_the_middle(&names);
            middles.retain(|stem| in_stems.contains_key(stem.as_str()));
            if !middles.is_empty() {
                let numbers: BTreeSet<&BTreeSet<u64>> =
                    middles.iter().filter_map(|stem| in_stems.get(&stem[..])).collect();
                let joined = if numbers.len() == 1 { middles.iter().cloned().collect() } else { Vec::new() };
                return Self { stems: middles.clone(), middles, joined, ..Self::default() };
            }
        }
        if layers.stems.is_empty() {
            layers.ends = stems_at_the_end(&names);
            if layers.ends.is_empty() {
                layers.middles = stems_in_the_middle(&names);
            }
            layers.stems = layers.ends.union(&layers.middles).cloned().collect();
        }
        layers
    }

    /// The numbered scopes of an op name, outermost first, but for modules within a layer that a library numbers by kind
    /// (`Dense_0`).
    fn numbered<'a>(&self, parts: &[&'a str]) -> Vec<Numbered<'a>> {
        if !self.ends.is_empty() || !self.middles.is_empty() {
            let scopes = parts.split_last().map_or(&[][..], |row| row.1);
            let layer = |(place, part): (usize, &&'a str)| {
                let at_the_end = at_the_end(part).filter(|found| self.ends.contains(found.0));
                let in_the_middle = || {
                    in_the_middle(part)
                        .filter(|found| self.middles.contains(found.0))
                        .map(|found| (found.0, found.1, found.2))
                };
                let (stem, number, name) = at_the_end.or_else(in_the_middle)?;
                Some(Numbered { place, stem, number, name })
            };
            return scopes.iter().enumerate().filter_map(layer).collect();
        }
        let mut found = numbered(parts);
        found.retain(|layer| !is_kind(layer.stem) || self.blocks.contains(layer.stem));
        found
    }

    /// As [`Self::numbered`], with the first of several modules where it has no number.
    fn with_firsts<'a>(&'a self, parts: &[&'a str]) -> Vec<Numbered<'a>> {
        let mut found = self.numbered(parts);
        if let Some((_, scopes)) = parts.split_last().filter(|_| !self.firsts.is_empty()) {
            for (place, name) in scopes.iter().enumerate() {
                if let Some(stem) = self.firsts.get(*name) {
                    found.push(Numbered { place, stem, number: 0, name });
                }
            }
            found.sort_by_key(|layer| layer.place);
        }
        found
    }

    /// Whether the names show no repeated layers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stems.is_empty()
    }

    /// The layer an operation belongs to.
    #[must_use]
    pub fn of(&self, op_name: &str) -> Option<Layer> {
        let parts = scope::path(op_name);
        let found = self.with_firsts(&parts);
        let at = found.iter().position(|layer| self.stems.contains(layer.stem))?;
        let first = &found[at];
        if self.joined.len() > 1 {
            let of_each =
                |part: &dyn Fn(&str) -> String| self.joined.iter().map(|stem| part(stem)).collect::<Vec<_>>().join("+");
            return Some(Layer {
                name: of_each(&|stem| format!("{stem}{}", first.number)),
                pattern: of_each(&|stem| format!("{stem}*")),
            });
        }
        let has_first = self.firsts.values().any(|stem| stem == first.stem);
        let stem = if has_first { first.stem.trim_end_matches('_') } else { first.stem };
        let (mut name, mut pattern) = (first.name.to_owned(), format!("{stem}*"));
        if self.shared.contains(first.stem) {
            name = format!("{}/{name}", module(&parts, first.place));
            pattern = format!("*/{pattern}");
        }
        let second = found.get(at + 1).filter(|second| {
            second.place == first.place + 1 && self.nested.contains(&(first.stem.to_owned(), second.stem.to_owned()))
        });
        Some(match second {
            Some(second) => {
                Layer { name: format!("{name}/{}", second.name), pattern: format!("{pattern}/{}*", second.stem) }
            }
            None => Layer { name, pattern },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_the_outermost_scopes_that_repeat() {
        let names = [
            "jit(s)/jvp(jit(__call__))/Gemma2_2B/Gemma2_2B._apply_attention/layer_0/mlp/Einsum_0/...F,NFH->...NH/dot_general",
            "jit(s)/jvp(jit(__call__))/Gemma2_2B/Gemma2_2B._apply_attention/layer_1/mlp/Einsum_0/...F,NFH->...NH/dot_general",
            "jit(s)/jvp(res_net50)/head_0/dot_general",
        ];
        let layers = Layers::new(names.into_iter());
        let of = |name| layers.of(name).map(|layer| (layer.name, layer.pattern));
        let layer = |name: &str| Some((name.to_owned(), "layer_*".to_owned()));
        assert_eq!(of(names[1]), layer("layer_1"));
        assert_eq!(of(names[2]), None);
        assert_eq!(of("jit(s)/transpose(jvp(layer_12))/attn/dot_general"), layer("layer_12"));
        assert_eq!(of("jit(s)/jvp()/while/body/eval_jaxpr/dot_general"), None);
    }

    #[test]
    fn a_number_needs_no_separator_after_a_word_for_a_layer() {
        let names = ["jit(s)/jvp(image)/block0/conv1/dot_general", "jit(s)/jvp(image)/block11/conv2/dot_general"];
        let layers = Layers::new(names.into_iter());
        let of = |name| layers.of(name).map(|layer| (layer.name, layer.pattern));
        assert_eq!(of(names[1]), Some(("block11".to_owned(), "block*".to_owned())));
        assert_eq!(of("jit(s)/jvp(image)/conv1/dot_general"), None);
    }

    #[test]
    fn a_number_in_the_middle_of_names_tells_layers_of_several_modules() {
        let modules = ["q", "attention_out", "mlp_in", "norm"];
        let name =
            |stem: &str, number: u64, module: &str| format!("jit(update)/jvp({stem}{number}_{module})/dot_general");
        let names: Vec<String> =
            (0..3).flat_map(|number| modules.iter().map(move |module| name("layer", number, module))).collect();
        let of = |names: &[String]| Layers::new(names.iter().map(String::as_str)).of(&names[0]).map(|layer| layer.name);
        assert_eq!(of(&names), Some("layer0".to_owned()));
        let unseparated: Vec<String> = ["dense_0/dot_general", "norm_0/mul", "exp"]
            .iter()
            .flat_map(|module| (0..4).map(move |number| format!("jit(step)/jvp(Flow)/level0_step{number}/{module}")))
            .collect();
        assert_eq!(of(&unseparated), Some("level0_step0".to_owned()));
        // Steps of normalising that have nothing in common are none.
        let others = [name("l", 1, "norm"), name("l", 2, "distance"), name("l", 2, "loss")];
        assert_eq!(of(&others), None);
    }

    #[test]
    fn modules_numbered_within_numbered_layers_are_no_layers() {
        let module = |kind: &str, layer: usize| {
            ["1", "2", "n"].map(|module| format!("jit(update)/transpose(jvp({kind}{layer}_{module}))/mul"))
        };
        let mut names: Vec<String> =
            (0..6).flat_map(|layer| [module("edge", layer), module("node", layer)]).flatten().collect();
        names.extend(["1", "2"].map(|module| format!("jit(update)/jvp(in_edges_{module})/mul")));
        let layers = Layers::new(names.iter().map(String::as_str));
        let of = |name: &str| layers.of(name).map(|layer| (layer.name, layer.pattern));
        assert_eq!(of(&names[0]), Some(("edge0+node0".to_owned(), "edge*+node*".to_owned())));
        assert_eq!(of(&names[34]), Some(("edge5+node5".to_owned(), "edge*+node*".to_owned())));
        assert_eq!(of(&names[36]), None);
        // Networks of two parts, in more layers than there are such parts.
        names.extend((0..9).map(|layer| format!("jit(update)/jvp(block_{layer})/mul")));
        let layers = Layers::new(names.iter().map(String::as_str));
        assert_eq!(layers.of("jit(update)/jvp(block_3)/mul").map(|layer| layer.name), Some("block_3".to_owned()));
    }

    #[test]
    fn numbers_alone_are_layers_if_they_have_modules_in_common() {
        let of = |names: &[&str]| Layers::new(names.iter().copied()).of(names[0]).map(|layer| layer.name);
        let layers =
            ["jit(s)/jvp(0)/attn/dot_general", "jit(s)/jvp(1)/attn/dot_general", "jit(s)/jvp(1)/mlp/dot_general"];
        assert_eq!(of(&layers), Some("0".to_owned()));
        let parts =
            ["jit(s)/jvp(0)/embed/gather", "jit(s)/jvp(1)/closed_call/0/dot_general", "jit(s)/jvp(2)/dot_general"];
        assert_eq!(of(&parts), None);
    }

    #[test]
    fn blocks_are_read_from_the_names_of_their_modules() {
        for (part, expected) in [
            ("conv2_block3_1_conv", Some(("conv2_block", "conv2_block3"))),
            ("block2a_expand_conv", Some(("block", "block2a"))),
            ("block_12_project", Some(("block_", "block_12"))),
            ("block_3", None),
            ("blockwise_attention", None),
            ("conv1_conv", None),
        ] {
            assert_eq!(block_of(part).map(|found| (found.0, found.2)), expected, "{part}");
        }
    }

    #[test]
    fn a_module_numbered_by_kind_is_a_block_if_it_contains_modules() {
        let mut names = Vec::new();
        for block in 0..3 {
            for module in ["Conv_0", "GroupNorm_1"] {
                names.push(format!("jit(s)/jvp(UNet)/ResBlock_{block}/{module}/mul"));
            }
            names.push(format!("jit(s)/jvp(UNet)/Conv_{block}/conv_general_dilated"));
        }
        let layers = Layers::new(names.iter().map(String::as_str));
        let of = |name| layers.of(name).map(|layer| (layer.name, layer.pattern));
        assert_eq!(of(&names[4]), Some(("ResBlock_1".to_owned(), "ResBlock_*".to_owned())));
        assert_eq!(of("jit(s)/transpose(jvp(UNet))/Conv_1/conv_general_dilated"), None);
    }

    #[test]
    fn the_first_of_several_modules_may_have_no_number() {
        let names: Vec<String> = ["mlp", "mlp_1", "mlp_2"].map(|mlp| format!("jit(s)/jvp({mlp})/dot_general")).into();
        let layers = Layers::new(names.iter().map(String::as_str));
        let of = |name| layers.of(name).map(|layer| (layer.name, layer.pattern));
        assert_eq!(of(&names[0]), Some(("mlp".to_owned(), "mlp*".to_owned())));
        assert_eq!(of(&names[2]), Some(("mlp_2".to_owned(), "mlp*".to_owned())));
        assert_eq!(of("jit(s)/jvp(embed)/gather"), None);
    }

    #[test]
    fn layers_of_two_encoders_are_told_apart() {
        let mut names = Vec::new();
        for encoder in ["text", "image"] {
            for block in 0..2 {
                for module in ["attention", "mlp", "norm"] {
                    names.push(format!("jit(s)/jvp(Clip)/{encoder}/block_{block}/{module}/mul"));
                }
            }
        }
        let layers = Layers::new(names.iter().map(String::as_str));
        let of = |name| layers.of(name).map(|layer| (layer.name, layer.pattern));
        assert_eq!(of(&names[0]), Some(("text/block_0".to_owned(), "*/block_*".to_owned())));
        assert_eq!(
            of("jit(s)/transpose(jvp(Clip))/image/block_1/mlp/mul").map(|layer| layer.0),
            Some("image/block_1".to_owned())
        );
    }

    #[test]
    fn parts_of_a_layer_that_are_numbered_are_no_layers() {
        let mut names = Vec::new();
        for block in 0..3 {
            for (part, modules) in
                [["SelfAttention", "layer_norm"], ["DenseReluDense", "layer_norm"]].iter().enumerate()
            {
                for module in modules {
                    names.push(format!("jit(s)/jvp(T5)/encoder/block_{block}/layer_{part}/{module}/mul"));
                }
            }
        }
        let layers = Layers::new(names.iter().map(String::as_str));
        let found = layers.of(&names[2]).map(|layer| (layer.name, layer.pattern));
        assert_eq!(found, Some(("block_0".to_owned(), "block_*".to_owned())));
        // A decoder with layers of the same kind.
        let decoder: Vec<String> = names.iter().map(|name| name.replace("encoder", "decoder")).collect();
        let both = Layers::new(names.iter().chain(&decoder).map(String::as_str));
        let found = both.of(&decoder[2]).map(|layer| (layer.name, layer.pattern));
        assert_eq!(found, Some(("decoder/block_0".to_owned(), "*/block_*".to_owned())));
    }

    #[test]
    fn two_networks_around_the_attention_of_many_layers_are_no_layers() {
        let names = |layers: usize, parts: &[&str]| -> Vec<String> {
            let of_layer = |layer: usize| {
                let module = move |part: &str| {
                    ["up", "down", "norm"]
                        .map(|module| format!("jit(s)/jvp(Conformer)/layer_{layer}/{part}/{module}/dot_general"))
                };
                parts.iter().flat_map(move |part| module(part)).collect::<Vec<_>>()
            };
            (0..layers).flat_map(of_layer).collect()
        };
        let first =
            |names: &[String]| Layers::new(names.iter().map(String::as_str)).of(&names[0]).map(|layer| layer.pattern);
        let conformer = names(8, &["HalfStep_0", "Attention_0", "HalfStep_1"]);
        assert_eq!(first(&conformer), Some("layer_*".to_owned()));
        let alone = names(8, &["HalfStep_0", "HalfStep_1"]);
        assert_eq!(first(&alone), Some("layer_*/HalfStep_*".to_owned()), "nothing else is in them");
        let few = names(4, &["HalfStep_0", "Attention_0", "HalfStep_1"]);
        assert_eq!(first(&few), Some("layer_*/HalfStep_*".to_owned()), "as the levels of a U-Net");
    }

    #[test]
    fn blocks_in_groups_are_the_layers() {
        let mut names = Vec::new();
        for group in 0..2 {
            for block in 0..3 {
                for module in ["conv_0", "norm_0", "relu"] {
                    names.push(format!("jit(s)/jvp(net)/group_{group}/block_{block}/{module}/mul"));
                }
            }
            for dense in 0..2 {
                names.push(format!("jit(s)/jvp(net)/layer_{group}/dense_{dense}/dot_general"));
            }
        }
        let layers = Layers::new(names.iter().map(String::as_str));
        let of = |name| layers.of(name).map(|layer| (layer.name, layer.pattern));
        let layer = |name: &str, pattern: &str| Some((name.to_owned(), pattern.to_owned()));
        assert_eq!(of(&names[0]), layer("group_0/block_0", "group_*/block_*"));
        assert_eq!(of("jit(s)/jvp(net)/layer_1/dense_1/dot_general"), layer("layer_1", "layer_*"));
    }
}
