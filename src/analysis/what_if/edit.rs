//! A change to a program and its textual form: `donate params`, `dim 2050 2048`, `batch 0.5`.

use std::fmt;
use std::str::FromStr;

use super::checkpoint::Checkpoint;
use crate::analysis::names::scope;
use crate::model::ElementType;

/// A change whose effect on memory can be predicted from the dump of the unchanged program.
///
/// Written and read as in `--edit`: `donate ARG[,ARG…]`, `dtype ARG[,ARG…] TYPE`, `compute TYPE`, `dim FROM TO`,
/// `unpad SIZE`, `batch FACTOR`, `micro N`, `micro loop`, `shard ARG[,ARG…] N`, `constrain N`, `remat SCOPE [N]`,
/// `chunk SCOPE N`, `blockwise SCOPE`, `drop BUFFER`, `free BUFFER POINT`.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Donates arguments; results of the same shape reuse their memory.
    Donate(Arguments),
    /// Changes the element type of arguments and of the results in their memory; `*` means every wide float.
    Dtype(Arguments, ElementType),
    /// Changes the element type of wide floats among the temporaries; arguments and results stay.
    Compute(ElementType),
    /// Changes every dimension of the first size, and its products with others, to the second.
    Dim(i64, i64),
    /// Merges a dimension of this size with its neighbours, so that it is not padded.
    Unpad(i64),
    /// Multiplies the batch per device by a factor.
    Batch(f64),
    /// Runs the step on this many micro-batches in turn and sums their gradients; [`IN_LOOP`] stands for those that there
    /// are, written out, in a loop of the program.
    Micro(u32),
    /// Shards arguments into this many parts, one per device.
    Shard(Arguments, u32),
    /// Shards temporaries that hold the global batch into this many parts.
    Constrain(u32),
    /// Recomputes in the backward pass what the scope's forward pass would keep.
    Remat(Checkpoint),
    /// Computes the scope in this many parts, one after the other, and recomputes it in the backward pass. The scope is
    /// a pattern for op names, or `logits` for buffers with the vocabulary as a dimension.
    Chunk(String, u32),
    /// Computes attention in the scope block by block, without materialising scores for all pairs of positions. The
    /// scope is a pattern for op names, or `*`.
    Blockwise(String),
    /// Removes a buffer, given by its number in the file.
    Drop(i64),
    /// Frees a buffer (by its number in the file) after a program point.
    Free(i64, u32),
}

/// In place of a number of micro-batches: those that are written out, in a loop.
pub const IN_LOOP: u32 = 1;

/// What is written for [`IN_LOOP`].
pub const LOOP: &str = "loop";

/// The scope of [`Edit::Chunk`] that means buffers with the vocabulary as a dimension.
pub const LOGITS: &str = "logits";

/// Entry arguments by a prefix of their JAX path: `params`, `opt_state[0]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments(pub Vec<String>);

/// Why a text is not an [`Edit`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The first word names no edit.
    #[error(
        "Unknown change `{0}`. Known: donate, dtype, compute, dim, unpad, batch, micro, shard, constrain, remat, chunk, blockwise, drop, free"
    )]
    Unknown(String),
    /// The words after it do not have the expected form.
    #[error("Write it as `{0}`")]
    Form(&'static str),
    /// A value is invalid.
    #[error("`{0}` is not {1}")]
    Value(String, &'static str),
}

impl Arguments {
    /// Every argument.
    #[must_use]
    pub fn all() -> Self {
        Self(vec!["*".to_owned()])
    }

    /// Whether this means every argument.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.iter().any(|path| path == "*")
    }

    /// Whether this includes an argument with this path.
    #[must_use]
    pub fn include(&self, path: &str) -> bool {
        self.is_all() || self.0.iter().any(|start| !start.is_empty() && path.starts_with(start.as_str()))
    }

    /// Whether this names an argument with this path by one of its keys: `items` names `params['items']['table']`.
    #[must_use]
    pub fn name_by_key(&self, path: &str) -> bool {
        let mut keys = path.split(['[', ']', '.', '\'', '"']).filter(|key| !key.is_empty()).skip(1);
        keys.any(|key| self.0.iter().any(|name| name == key))
    }

    /// The paths in words: up to three in full, more by their first names with a count,
    /// `params[…] ×12, opt_state[…] ×24`.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.0.len() <= 3 {
            return self.0.join(", ");
        }
        let mut groups: Vec<(String, usize)> = Vec::new();
        for path in &self.0 {
            let name = scope::folded(path);
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => groups.push((name, 1)),
            }
        }
        let shown: Vec<String> = groups
            .iter()
            .take(4)
            .map(|(name, count)| if *count > 1 { format!("{name} \u{d7}{count}") } else { name.clone() })
            .collect();
        let left: usize = groups.iter().skip(4).map(|(_, count)| count).sum();
        let more = if left > 0 { format!(" and {left} more") } else { String::new() };
        format!("{}{more}", shown.join(", "))
    }

    /// Splits at commas outside brackets and quotes.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = vec![String::new()];
        let (mut depth, mut quote) = (0u32, None);
        for c in text.chars() {
            match (c, quote) {
                (c, Some(q)) if c == q => quote = None,
                ('\'' | '"', None) => quote = Some(c),
                ('[' | '(', None) => depth += 1,
                (']' | ')', None) => depth = depth.saturating_sub(1),
                (',', None) if depth == 0 => {
                    parts.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = parts.last_mut() {
                last.push(c);
            }
        }
        let parts: Vec<String> = parts.into_iter().map(|p| p.trim().to_owned()).collect();
        (!parts.iter().any(String::is_empty)).then_some(Self(parts))
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Donate(arguments) => write!(f, "donate {arguments}"),
            Self::Dtype(arguments, ty) => write!(f, "dtype {arguments} {}", ty.name()),
            Self::Compute(ty) => write!(f, "compute {}", ty.name()),
            Self::Dim(from, to) => write!(f, "dim {from} {to}"),
            Self::Unpad(size) => write!(f, "unpad {size}"),
            Self::Batch(factor) => write!(f, "batch {factor}"),
            Self::Micro(IN_LOOP) => write!(f, "micro {LOOP}"),
            Self::Micro(parts) => write!(f, "micro {parts}"),
            Self::Shard(arguments, parts) => write!(f, "shard {arguments} {parts}"),
            Self::Constrain(parts) => write!(f, "constrain {parts}"),
            Self::Remat(scope) => write!(f, "remat {scope}"),
            Self::Chunk(scope, parts) => write!(f, "chunk {scope} {parts}"),
            Self::Blockwise(scope) => write!(f, "blockwise {scope}"),
            Self::Drop(buffer) => write!(f, "drop {buffer}"),
            Self::Free(buffer, point) => write!(f, "free {buffer} {point}"),
        }
    }
}

impl Edit {
    /// Whether another change is the same one with another strength, such as twice as many micro-batches, so that only one
    /// of them can be meant.
    #[must_use]
    pub fn is_another_strength_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Micro(_), Self::Micro(_))
            | (Self::Batch(_), Self::Batch(_))
            | (Self::Compute(_), Self::Compute(_)) => true,
            (Self::Remat(scope), Self::Remat(of)) => scope.is_around_same(of),
            (Self::Chunk(scope, _), Self::Chunk(of, _)) => scope == of,
            (Self::Dtype(arguments, _), Self::Dtype(of, _)) | (Self::Shard(arguments, _), Self::Shard(of, _)) => {
                arguments == of
            }
            (Self::Dim(from, _), Self::Dim(of, _)) => from == of,
            _ => false,
        }
    }

    /// The change with other names for what it names.
    #[must_use]
    pub fn renamed(&self, name: impl Fn(&str) -> String) -> Self {
        let renamed = |of: &Arguments| Arguments(of.0.iter().map(|path| name(path)).collect());
        let arguments = |of: &Arguments| if of.is_all() { of.clone() } else { renamed(of) };
        let scope = |of: &String| if of == LOGITS { of.clone() } else { name(of) };
        match self {
            Self::Donate(of) => Self::Donate(arguments(of)),
            Self::Dtype(of, ty) => Self::Dtype(arguments(of), *ty),
            Self::Shard(of, parts) => Self::Shard(arguments(of), *parts),
            Self::Remat(of) => Self::Remat(of.renamed(&name)),
            Self::Chunk(of, parts) => Self::Chunk(scope(of), *parts),
            Self::Blockwise(of) => Self::Blockwise(scope(of)),
            other => other.clone(),
        }
    }

    /// The change in words: `Shard table 4 ways`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Donate(arguments) if arguments.is_all() => "Donate all arguments".to_owned(),
            Self::Donate(arguments) => format!("Donate {}", arguments.in_words()),
            Self::Dtype(arguments, ty) if arguments.is_all() => format!("Everything in {}", ty.name()),
            Self::Dtype(arguments, ty) => format!("{} in {}", arguments.in_words(), ty.name()),
            Self::Compute(ty) => format!("Compute in {}", ty.name()),
            Self::Dim(from, to) => format!("Dimension {from} to {to}"),
            Self::Unpad(size) => format!("Merge the dimension of size {size} with its neighbour"),
            Self::Batch(factor) if (*factor - 0.5).abs() < 1e-6 => "Half the batch".to_owned(),
            Self::Batch(factor) if *factor < 1.0 && (1.0 / factor).fract().abs() < 1e-6 => {
                format!("1/{:.0} of the batch", 1.0 / factor)
            }
            Self::Batch(factor) => format!("Batch times {factor}"),
            Self::Micro(IN_LOOP) => "Micro-batches in a loop".to_owned(),
            Self::Micro(parts) => format!("{parts} micro-batches"),
            Self::Shard(arguments, parts) => format!("Shard {} {parts} ways", arguments.in_words()),
            Self::Constrain(parts) => format!("Shard activations {parts} ways"),
            Self::Remat(scope) => scope.in_words(),
            Self::Chunk(scope, parts) => format!("Compute {scope} in {parts} parts"),
            Self::Blockwise(scope) if scope == "*" => "Attention in blocks".to_owned(),
            Self::Blockwise(scope) => format!("Attention of {scope} in blocks"),
            Self::Drop(buffer) => format!("Without buffer {buffer}"),
            Self::Free(buffer, point) => format!("Buffer {buffer} freed after step {point}"),
        }
    }
}

fn number<T: FromStr>(text: &str, what: &'static str, holds: impl Fn(&T) -> bool) -> Result<T, EditError> {
    text.parse().ok().filter(holds).ok_or_else(|| EditError::Value(text.to_owned(), what))
}

/// An element type by XLA's name or by NumPy's (`bfloat16`, `float32`, `int8`).
fn element_type(text: &str) -> Result<ElementType, EditError> {
    let lower = text.to_ascii_lowercase();
    let name = match lower.as_str() {
        "bfloat16" => "bf16",
        "float16" | "half" => "f16",
        "float32" | "float" => "f32",
        "float64" | "double" => "f64",
        "int8" => "s8",
        "int16" => "s16",
        "int32" => "s32",
        "int64" => "s64",
        "uint8" => "u8",
        "float8_e4m3fn" | "fp8" => "f8e4m3fn",
        "float8_e5m2" => "f8e5m2",
        other => other,
    };
    ElementType::from_name(name)
        .filter(|ty| ty.is_array())
        .ok_or_else(|| EditError::Value(text.to_owned(), "an element type"))
}

/// The text without quotes around its first word, as they are written for a shell: `'layer_*' 8`.
fn unquoted(text: &str) -> String {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '\'' | '"')) else { return text.to_owned() };
    match text[1..].split_once(quote) {
        Some((word, rest)) if rest.is_empty() || rest.starts_with(char::is_whitespace) => format!("{word}{rest}"),
        _ => text.to_owned(),
    }
}

impl FromStr for Edit {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        let text = text.trim();
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = unquoted(rest.trim());
        let rest = rest.as_str();
        // Arguments may contain blanks (`params['a b']`), so the value follows the last one.
        let with_last = |form| rest.rsplit_once(char::is_whitespace).ok_or(EditError::Form(form));
        let arguments = |text: &str, form| Arguments::parse(text).ok_or(EditError::Form(form));
        match verb {
            "donate" => Ok(Self::Donate(arguments(rest, "donate ARG[,ARG…]")?)),
            "dtype" => {
                let form = "dtype ARG[,ARG…] TYPE";
                let (names, ty) = with_last(form)?;
                Ok(Self::Dtype(arguments(names, form)?, element_type(ty)?))
            }
            "compute" => Ok(Self::Compute(element_type(rest)?)),
            "dim" => {
                let (from, to) = with_last("dim FROM TO")?;
                let size = |text: &str| number(text.trim(), "a dimension", |&d: &i64| d > 0);
                Ok(Self::Dim(size(from)?, size(to)?))
            }
            "unpad" => Ok(Self::Unpad(number(rest, "a dimension", |&d: &i64| d > 0)?)),
            "batch" => Ok(Self::Batch(number(rest, "a factor above 0", |f: &f64| f.is_finite() && *f > 0.0)?)),
            "micro" if rest == LOOP => Ok(Self::Micro(IN_LOOP)),
            "micro" => Ok(Self::Micro(number(rest, "a number of parts", |&n: &u32| n > 1)?)),
            "shard" => {
                let form = "shard ARG[,ARG…] N";
                let (names, parts) = with_last(form)?;
                Ok(Self::Shard(arguments(names, form)?, number(parts, "a number of parts", |&n: &u32| n > 0)?))
            }
            "constrain" => Ok(Self::Constrain(number(rest, "a number of parts", |&n: &u32| n > 0)?)),
            "remat" => Ok(Self::Remat(Checkpoint::read(rest)?)),
            "chunk" => {
                let (scope, parts) = with_last("chunk SCOPE N")?;
                Ok(Self::Chunk(scope.trim().to_owned(), number(parts, "a number of parts", |&n: &u32| n > 0)?))
            }
            "blockwise" if !rest.is_empty() => Ok(Self::Blockwise(rest.to_owned())),
            "blockwise" => Err(EditError::Form("blockwise SCOPE")),
            "drop" => Ok(Self::Drop(number(rest, "a buffer's number", |_| true)?)),
            "free" => {
                let (buffer, point) = with_last("free BUFFER POINT")?;
                Ok(Self::Free(
                    number(buffer.trim(), "a buffer's number", |_| true)?,
                    number(point, "a program point", |_| true)?,
                ))
            }
            _ => Err(EditError::Unknown(verb.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_of_a_shell_are_left_out() {
        for (written, meant) in
            [("dtype '*' bf16", "dtype * bf16"), ("remat \"layer_*\" 8", "remat layer_* 8"), ("donate 'x'", "donate x")]
        {
            assert_eq!(written.parse::<Edit>().ok(), meant.parse::<Edit>().ok(), "{written}");
        }
    }

    #[test]
    fn every_form_is_read_as_it_is_written() {
        for text in [
            "donate params,opt_state[0]",
            "donate *",
            "dtype cache['k'] f8e4m3fn",
            "dtype * bf16",
            "compute bf16",
            "dim 2050 2048",
            "unpad 3",
            "batch 0.5",
            "shard params['a b'],x 4",
            "constrain 4",
            "micro 4",
            "micro loop",
            "remat layer_*",
            "remat layer_* 8",
            "chunk logits 8",
            "blockwise *",
            "drop 17",
            "free 17 200",
        ] {
            assert_eq!(text.parse::<Edit>().map(|e| e.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(
            "dtype params bfloat16".parse(),
            Ok(Edit::Dtype(Arguments(vec!["params".into()]), ElementType::BF16))
        );
        let quoted = "donate p['a,b'],q[0, 1]".parse();
        assert_eq!(quoted, Ok(Edit::Donate(Arguments(vec!["p['a,b']".into(), "q[0, 1]".into()]))));
    }

    #[test]
    fn what_is_no_edit_says_why() {
        for text in [
            "",
            "halve",
            "donate",
            "donate a,,b",
            "dtype params",
            "dtype params tuple",
            "dim 4",
            "dim 0 4",
            "unpad",
            "unpad 0",
            "batch 0",
            "batch nan",
            "shard x 0",
            "micro 1",
            "remat",
            "chunk logits",
            "chunk logits 0",
            "blockwise",
            "drop x",
            "free 3",
            "constrain",
        ] {
            assert!(text.parse::<Edit>().is_err(), "{text}");
        }
        let error = "halve everything".parse::<Edit>().map_err(|e| e.to_string());
        assert!(error.is_err_and(|text| text.contains("Unknown change `halve`")));
    }

    #[test]
    fn many_arguments_are_said_by_their_first_names() {
        let paths = ["p['a']", "p['b']", "opt[0].mu['a']", "opt[0].nu['a']", "step"];
        let arguments = Arguments(paths.map(str::to_owned).to_vec());
        assert_eq!(arguments.in_words(), "p[\u{2026}] \u{d7}2, opt[\u{2026}] \u{d7}2, step");
        assert_eq!(Edit::Batch(1.0 / 16.0).in_words(), "1/16 of the batch");
    }

    #[test]
    fn arguments_are_named_by_the_beginning_of_their_path() {
        let arguments = Arguments(vec!["opt_state[0]".into()]);
        assert!(arguments.include("opt_state[0]['embed']"));
        assert!(!arguments.include("opt_state[1]['embed']"));
        assert!(Arguments::all().include("x"));
        let items = Arguments(vec!["items".to_owned()]);
        assert!(items.name_by_key("params['items']['table']") && items.name_by_key("state.mu.items"));
        assert!(!items.name_by_key("params['items_of']") && !items.name_by_key("items"));
    }

    proptest! {
        #[test]
        fn nothing_makes_the_parser_panic(text in "\\PC{0,60}") {
            let _ = text.parse::<Edit>();
        }
    }
}
