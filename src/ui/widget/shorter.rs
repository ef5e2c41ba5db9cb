//! Ever shorter forms of a text, for where there is no room for the whole: a path loses its middle, so that its numbered
//! scopes and its last part stay, and so does a name; a shape loses its layout and its first dimensions; any other text
//! loses its end.

use super::telling::without_end;

/// Forms of a text from the longest on, for a line that shows `kept` characters of it; none for a text that loses its end.
pub fn forms_of(words: &str, kept: usize) -> Box<dyn Iterator<Item = String> + '_> {
    // What many rows have at their end tells none of them.
    if let Some(name) = without_end(words) {
        return Box::new(std::iter::once(name.to_owned()).chain(forms_of(name, kept)));
    }
    if let Some((name, count)) = counted(words).or_else(|| remarked(words))
        && (is_path(name) || is_name(name) || named(name).is_some())
    {
        let left = kept.saturating_sub(count.chars().count());
        return Box::new(forms_of(name, left).map(move |form| format!("{form}{count}")));
    }
    if let Some((element, dimensions, layout)) = shape(words) {
        let bare = (!layout.is_empty()).then(|| format!("{element}[{}]", dimensions.join(",")));
        let ends =
            (1..dimensions.len()).map(move |from| format!("{element}[\u{2026},{}]", dimensions[from..].join(",")));
        return Box::new(bare.into_iter().chain(ends));
    }
    if let Some((lead, name)) = named(words) {
        let first = lead.split(' ').next().unwrap_or_default();
        if name.starts_with('[') {
            return Box::new([lead.to_owned(), format!("{first} \u{2026}")].into_iter());
        }
        let path = without_shape(name);
        let led =
            [format!("{first} \u{2026}: {name}"), format!("{first} \u{2026}: {path}"), format!("\u{2026} {path}")];
        let rest = shorter(path).map(|path| format!("\u{2026} {}", path.trim_start_matches("\u{2026}/")));
        // Of several words the last ones, of one its end.
        let words = path.match_indices(' ').map(|(at, _)| format!("\u{2026}{}", &path[at..]));
        let end = path.rsplit(['/', ' ']).next().unwrap_or(path);
        return Box::new(led.into_iter().chain(rest).chain(words).chain(without_middle(end, end.chars().count())));
    }
    let path = without_shape(words);
    if path.len() < words.len() && !path.contains(", ") {
        let last = path.match_indices(' ').map(|(at, _)| format!("\u{2026}{}", &path[at..]));
        return Box::new(std::iter::once(path.to_owned()).chain(forms_of(path, kept)).chain(last));
    }
    if let Some((lead, path)) = argument(words) {
        return Box::new(shorter_argument(lead, path));
    }
    if is_path(words) {
        Box::new(shorter(words))
    } else if is_name(words) {
        Box::new(without_middle(words, kept))
    } else {
        Box::new(std::iter::empty())
    }
}

/// A name and the count behind it, with the space before: `layer_*/mul` and `  \u{d7}24`.
fn counted(words: &str) -> Option<(&str, &str)> {
    let (head, digits) = words.rsplit_once('\u{d7}')?;
    let name = head.trim_end();
    let is_count = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b',');
    let is_one = !name.contains(' ') || named(name).is_some();
    (is_count && name.len() < head.len() && is_one).then(|| words.split_at(name.len()))
}

/// A path and a remark behind it, with the comma before: `layer_*/mul` and `, written at 4844`.
fn remarked(words: &str) -> Option<(&str, &str)> {
    let (name, remark) = words.split_once(", ")?;
    let is_remark = remark.starts_with(char::is_alphabetic) && !remark.contains(['/', ',', ':']);
    (is_remark && is_path(name) && !name.contains(' ')).then(|| words.split_at(name.len()))
}

/// The element type, dimensions and layout of a shape: `bf16`, `4,8` and `{1,0:T(8,128)}`. Its last dimensions say how it
/// is padded.
fn shape(words: &str) -> Option<(&str, Vec<&str>, &str)> {
    let (element, rest) = words.split_once('[')?;
    let (dimensions, layout) = rest.split_once(']')?;
    let is_element = element == "pred"
        || element.starts_with(|c: char| c.is_ascii_lowercase())
            && element.contains(|c: char| c.is_ascii_digit())
            && element.chars().all(|c| c.is_ascii_alphanumeric());
    let dimensions: Vec<&str> = dimensions.split(',').collect();
    let are_numbers = dimensions.iter().all(|of| !of.is_empty() && of.bytes().all(|byte| byte.is_ascii_digit()));
    let is_layout = layout.is_empty() || layout.starts_with('{') && layout.ends_with('}');
    (is_element && are_numbers && is_layout && dimensions.len() > 1).then_some((element, dimensions, layout))
}

/// What leads to the path of an argument, and that path: `copy of ` and `state['model']['w']`.
fn argument(words: &str) -> Option<(&str, &str)> {
    let at = if words.starts_with(COPY_OF) { COPY_OF.len() } else { 0 };
    let (lead, path) = words.split_at(at);
    let root = path.find('[').map(|end| &path[..end])?;
    let is_word = !root.is_empty() && root.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    (is_word && !path.contains([' ', ',', '{', '\u{2026}'])).then_some((lead, path))
}

const COPY_OF: &str = "copy of ";

/// The path of an argument with ever less of its middle: numbered parts and the last one go last.
fn shorter_argument<'a>(lead: &'a str, path: &'a str) -> impl Iterator<Item = String> + 'a {
    let begins: Vec<usize> = path.match_indices(['[', '.']).map(|(at, _)| at).collect();
    let ends = begins.iter().skip(1).copied().chain([path.len()]);
    let parts: Vec<&str> = begins.iter().zip(ends).map(|(&begin, end)| &path[begin..end]).collect();
    let root = begins.first().map_or(path, |&begin| &path[..begin]);
    let last = parts.len().saturating_sub(1);
    let is_numbered = |part: &str| part.trim_end_matches([']', '\'', '"']).ends_with(|c: char| c.is_ascii_digit());
    let plain = (0..last).filter(|&at| !is_numbered(parts[at]));
    let order: Vec<usize> = plain.chain((0..last).filter(|&at| is_numbered(parts[at]))).collect();
    let joined = move |gone: usize| {
        let gone = &order[..gone];
        let mut out = String::new();
        for (at, part) in parts.iter().enumerate() {
            if !gone.contains(&at) {
                out.push_str(part);
            } else if !out.ends_with('\u{2026}') {
                out.push('\u{2026}');
            }
        }
        out
    };
    let forms: Vec<String> = (0..=last).map(joined).collect();
    let whole = (1..=last).map({
        let forms = forms.clone();
        move |gone| format!("{lead}{root}{}", forms[gone])
    });
    // Then without what leads to it, then without its root.
    let unled = (0..=last).filter(move |_| !lead.is_empty()).map({
        let forms = forms.clone();
        move |gone| format!("\u{2026}{root}{}", forms[gone])
    });
    let rootless = (0..=last).map(move |gone| format!("\u{2026}{}", forms[gone].trim_start_matches('\u{2026}')));
    whole.chain(unled).chain(rootless)
}

/// How texts begin that lead to the name of a buffer.
const LEADS: [&str; 2] = ["saved by ", "gradients of "];

/// What leads to a name, and the name that tells it from others: `saved by the scan for 32 layers` and `mlp/wi_1, [4,8]`.
fn named(words: &str) -> Option<(&str, &str)> {
    let (lead, name) = words.split_once(": ")?;
    let path = without_shape(name);
    // A shape at the end says that it is a name, even if it is one of several words: `the input of each layer, [4,8]`.
    // So does what leads to it, where it is one that buffers have: `saved by the scan for 32 layers: the input of each layer`.
    let is_led = LEADS.iter().any(|begin| lead.starts_with(begin));
    let is_one = is_led || path.len() < name.len() || !path.contains([' ', ',']);
    (lead.contains(' ') && is_one && path.starts_with(char::is_alphabetic)).then_some((lead, name))
}

/// A name without the shape at its end: `mlp/wi_1` of `mlp/wi_1, [4,8]`.
fn without_shape(name: &str) -> &str {
    name.rsplit_once(", [").filter(|(_, shape)| shape.ends_with(']')).map_or(name, |(path, _)| path)
}

/// Units that a number needs to mean anything.
const UNITS: [&str; 10] = ["B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", "%"];

/// Where a number begins that a text truncated after `kept` characters would show in part or without its unit: in bytes.
pub fn before_number(words: &str, kept: usize) -> Option<usize> {
    let end = words.char_indices().nth(kept).map_or(words.len(), |(at, _)| at);
    let mut number: Option<usize> = None;
    let mut at = 0;
    for token in words.split_inclusive(char::is_whitespace) {
        let bare = token.trim_end().trim_end_matches([',', ';', '.', ':', ')', ']']);
        let last = at + bare.len();
        let begin = number.take();
        if begin.is_some_and(|begin| begin < end) && UNITS.contains(&bare) && end < last {
            return begin;
        }
        let digits = bare.trim_start_matches(['(', '[', '+', '\u{2212}', '\u{d7}']);
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '%' | '/'));
        if is_number {
            if at < end && end < last {
                return Some(at);
            }
            number = Some(at);
        }
        at += token.len();
    }
    None
}

/// Whether a text is a path of scopes or folders rather than a sentence; a count may stand behind it.
fn is_path(words: &str) -> bool {
    let Some(slash) = words.rfind('/') else { return false };
    match words.find(' ') {
        None => true,
        Some(space) => space > slash && words[space..].trim_start().starts_with('\u{d7}'),
    }
}

/// Whether a text is the name of a file, a folder or an operation: its end tells it from its neighbours.
fn is_name(words: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    // A number has no letters.
    let begins = words.starts_with(char::is_alphanumeric) && words.contains(char::is_alphabetic);
    begins && words.contains(['_', '-', '.']) && words.chars().all(is_part)
}

/// A name with ever less of its middle, from `most` characters on down.
fn without_middle(words: &str, most: usize) -> impl Iterator<Item = String> + '_ {
    let letters: Vec<char> = words.chars().collect();
    (SHORTEST..=most.min(letters.len().saturating_sub(1))).rev().map(move |kept| {
        let head = kept / 2;
        let tail = letters.len() - (kept - head);
        letters[..head].iter().chain(&['\u{2026}']).chain(&letters[tail..]).collect()
    })
}

/// Characters that a name keeps at least.
const SHORTEST: usize = 6;

/// The number of one of several scopes with the word before it, of a scope of more words: `\u{2026}layer_7` of
/// `attention_encoder_layer_7`.
pub(super) fn word_and_number(part: &str) -> Option<String> {
    let head = part.trim_end_matches(|c: char| c.is_ascii_digit());
    if head.len() == part.len() || !head.ends_with(['_', '-', '.']) {
        return None;
    }
    let (from, _) = part.rmatch_indices(['_', '-', '.']).nth(1)?;
    Some(format!("\u{2026}{}", &part[from + 1..]))
}

/// A path with ever less of its middle: numbered parts and the last one go last.
fn shorter(words: &str) -> impl Iterator<Item = String> + '_ {
    let parts: Vec<&str> = words.split('/').collect();
    let last = parts.len() - 1;
    let is_numbered = |part: &str| {
        let head = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '*');
        head.len() < part.len() && (head.is_empty() || head.ends_with(['_', '-', '.']))
    };
    // A folded number, `layer_*`, tells nothing alone.
    let tells_number = parts[..last].iter().any(|part| is_numbered(part) && !part.ends_with('*'));
    // What is left out first: plain parts from the front, then numbered ones.
    let mut order: Vec<usize> = (0..last).filter(|&at| !is_numbered(parts[at])).collect();
    let plain = order.len();
    order.extend((0..last).filter(|&at| is_numbered(parts[at])));
    // Without a number, the scope tells most: it loses its end before it goes.
    let scope: Vec<char> = parts.get(last.wrapping_sub(1)).map(|part| part.chars().collect()).unwrap_or_default();
    let lengths = [14, 10, 7].into_iter().filter(|&length| plain == last && length + 1 < scope.len());
    let scopes: Vec<String> = lengths
        .map(|length| format!("{}\u{2026}/{}", scope[..length].iter().collect::<String>(), parts[last]))
        .collect();
    // A long scope's number with the word before it; without a number that tells, the scopes next to the last part.
    let numbered = parts[..last].iter().rfind(|part| is_numbered(part)).filter(|_| tells_number);
    let short_number = numbered.and_then(|part| word_and_number(part));
    let last_part = parts[last];
    let short_numbers: Vec<String> = short_number
        .into_iter()
        .flat_map(|scope| [format!("{scope}/\u{2026}/{last_part}"), format!("{scope}/\u{2026}")])
        .collect();
    let behind_number = parts[..last].iter().rposition(|part| is_numbered(part)).map_or(last, |at| at + 1);
    let tails = (behind_number..last).filter(|_| !tells_number);
    let tails: Vec<String> = tails.map(|from| format!("\u{2026}/{}", parts[from..].join("/"))).collect();
    let left_out = move |count: usize| {
        let gone = &order[..count];
        let mut out = String::new();
        let mut in_gap = false;
        for (at, part) in parts.iter().enumerate() {
            if gone.contains(&at) {
                in_gap = true;
                continue;
            }
            if in_gap {
                out.push_str(if out.is_empty() { "\u{2026}/" } else { "/\u{2026}/" });
            } else if !out.is_empty() {
                out.push('/');
            }
            in_gap = false;
            out.push_str(part);
        }
        out
    };
    let has_number = plain < last;
    // The last part gives way before the number that tells equal layers apart does.
    let squeezed = {
        let shortest = left_out(plain);
        let (head, tail) = shortest.rsplit_once('/').unwrap_or(("", &shortest));
        let head = head.trim_end_matches("/\u{2026}");
        let letters: Vec<char> = tail.chars().collect();
        let lengths =
            [24, 18, 13, 9, 7].into_iter().filter(|_| has_number).filter(|&length| length + 1 < letters.len());
        let squeezed: Vec<String> = lengths
            .filter(|_| !head.is_empty())
            .map(|length| format!("{head}/\u{2026}{}", letters[letters.len() - length..].iter().collect::<String>()))
            .collect();
        squeezed
    };
    // Where there is no room for both, the number alone.
    let numbers =
        left_out(plain).rsplit_once('/').map(|(head, _)| format!("{}/\u{2026}", head.trim_end_matches("/\u{2026}")));
    let rest = left_out.clone();
    let all = last;
    let numbers = numbers.into_iter().filter(move |words| tells_number && words.len() > '\u{2026}'.len_utf8() + 1);
    let (most, bare) = if has_number { (plain, None) } else { (plain.saturating_sub(1), Some(plain)) };
    (1..=most)
        .map(left_out.clone())
        .chain(scopes)
        .chain(bare.into_iter().map(left_out))
        .chain(squeezed)
        .chain(numbers)
        .chain(short_numbers)
        .chain(tails)
        .chain((plain + 1..=all).map(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_behind_a_colon_stays() {
        let label = "saved by the scan for 32 layers: mlp/wi_1, [4,4096,14336]";
        assert_eq!(named(label), Some(("saved by the scan for 32 layers", "mlp/wi_1, [4,4096,14336]")));
        assert_eq!(named("Attention scores take 24.5 GiB: block by block 23.1 GiB less"), None, "a sentence");
        assert_eq!(named("embed: dot_general"), None, "short before the colon");
        let words = "saved by the scan for 32 layers: the input of each layer, [4,4096,4096]";
        assert_eq!(named(words).map(|(_, name)| without_shape(name)), Some("the input of each layer"));
        let forms: Vec<String> = forms_of("saved by the scan for 32 layers: the input of each layer", 12).collect();
        assert!(
            forms.contains(&"\u{2026} each layer".to_owned()) && forms.iter().all(|form| form.ends_with("er")),
            "{forms:?}"
        );
        let forms: Vec<String> = forms_of(label, 12).collect();
        assert!(forms[3..].iter().all(|form| form.ends_with('1')), "{forms:?}");
    }

    #[test]
    fn a_number_is_shown_whole_or_not_at_all() {
        let words = "peak 25.9 GiB of 15.75 GiB, 98.0\u{2009}% used";
        let shown = |kept: usize| before_number(words, kept).map_or(kept, |at| words[..at].chars().count());
        assert_eq!((shown(3), shown(5), shown(13)), (3, 5, 13), "between numbers");
        assert_eq!((shown(6), shown(8), shown(9), shown(10), shown(12)), (5, 5, 5, 5, 5), "in 25.9 GiB");
        assert_eq!((shown(18), shown(25), shown(26), shown(27)), (17, 17, 26, 27), "in 15.75 GiB");
        assert_eq!((shown(30), shown(32), shown(33), shown(34)), (28, 28, 28, 34), "in 98.0 %");
        assert_eq!(before_number("fusion.123", 8), None, "a name is no number");
        assert_eq!(before_number("1.08 GiB", 5), Some(0));
    }

    #[test]
    fn a_name_keeps_its_end() {
        let name = "mt_llama3_8b_v5e16_full_b2";
        assert!(
            is_name(name)
                && !is_name("f32[4,16]")
                && !is_name("2 files")
                && is_name("08_error.txt")
                && !is_name("15.75")
                && !is_name("Activation")
        );
        let forms: Vec<String> = without_middle(name, 12).collect();
        assert_eq!(forms[0], "mt_lla\u{2026}ull_b2");
        assert_eq!(forms.last().map(String::as_str), Some("mt_\u{2026}_b2"));
    }

    #[test]
    fn a_path_keeps_its_number_and_its_end() {
        let forms: Vec<String> = shorter("model/layer_14/attn/bthk,bshk->bhts/dot_general").collect();
        assert_eq!(forms[0], "\u{2026}/layer_14/attn/bthk,bshk->bhts/dot_general");
        assert_eq!(forms[1], "\u{2026}/layer_14/\u{2026}/bthk,bshk->bhts/dot_general");
        assert_eq!(forms[2], "\u{2026}/layer_14/\u{2026}/dot_general");
        assert!(forms[3..forms.len() - 1].iter().all(|form| form.contains("layer_14")), "{forms:?}");
        assert_eq!(forms.last().map(String::as_str), Some("\u{2026}/dot_general"));
        assert_eq!(shorter("attn/dot_general").collect::<Vec<_>>(), ["\u{2026}/dot_general"]);
        let forms: Vec<String> = shorter("model/vision.encoder/dot_general").collect();
        let wanted = ["\u{2026}/vision.encoder/", "vision.enc\u{2026}/", "vision.\u{2026}/", "\u{2026}/"];
        assert!(forms.iter().zip(wanted).all(|(form, scope)| *form == format!("{scope}dot_general")), "{forms:?}");
        assert_eq!(forms.len(), wanted.len());
        assert!(
            is_path("layer_*/attn/mul  \u{d7}24")
                && !is_path("48 of 96 MiB/s")
                && !is_path("1/4 of the batch")
                && !is_path("fusion.12")
        );
    }

    #[test]
    fn a_long_scope_leaves_its_number_or_the_scopes_behind_it() {
        let path =
            |number: &str| format!("backbone/disentangled_attention_encoder_layer_{number}/attention/softmax/sub");
        let of = |number: &str, most: usize| {
            let path = path(number);
            shorter(&path).find(|form| form.chars().count() <= most).unwrap_or_default()
        };
        assert_eq!(of("7", 20), "\u{2026}layer_7/\u{2026}/sub");
        assert_eq!(of("7", 12), "\u{2026}layer_7/\u{2026}");
        assert_eq!(of("*", 30), "\u{2026}/attention/softmax/sub", "a folded number tells nothing");
        assert_eq!(of("*", 20), "\u{2026}/softmax/sub");
        assert_eq!(of("*", 8), "\u{2026}/sub");
    }

    #[test]
    fn a_shape_behind_a_name_goes_first() {
        let forms: Vec<String> = forms_of("self_attention/query, [4,4096,32,128]", 12).collect();
        assert_eq!(forms[0], "self_attention/query");
        assert!(forms.iter().all(|form| form.ends_with("query")), "{forms:?}");
        let forms: Vec<String> = forms_of("the input of each layer, [4,4096]", 12).collect();
        assert_eq!(forms[..2], ["the input of each layer", "\u{2026} input of each layer"]);
    }

    #[test]
    fn a_count_stays_behind_what_is_shortened() {
        let forms: Vec<String> = forms_of("llama/layer_*/feedforward/mul  \u{d7}22", 20).collect();
        assert_eq!(forms[0], "\u{2026}/layer_*/feedforward/mul  \u{d7}22");
        assert!(forms.iter().all(|form| form.ends_with("mul  \u{d7}22")), "{forms:?}");
        let forms: Vec<String> = forms_of("attention_scores_of_all \u{d7}1,024", 16).collect();
        assert!(!forms.is_empty() && forms.iter().all(|form| form.ends_with("l \u{d7}1,024")), "{forms:?}");
        let forms: Vec<String> = forms_of("step/forward/mul, written at 4844", 20).collect();
        assert_eq!(forms, ["\u{2026}/forward/mul, written at 4844", "\u{2026}/mul, written at 4844"]);
        assert_eq!(remarked("1/4 of the batch, the rest"), None, "a sentence");
        assert_eq!(counted("3 of 4 \u{d7}5"), None, "a sentence");
    }

    #[test]
    fn a_shape_keeps_its_last_dimensions() {
        let forms: Vec<String> = forms_of("f32[1,4,1920,1024,2]{4,3,2,1,0:T(8,128)}", 12).collect();
        assert_eq!(forms[..2], ["f32[1,4,1920,1024,2]", "f32[\u{2026},4,1920,1024,2]"]);
        assert_eq!(forms.last().map(String::as_str), Some("f32[\u{2026},2]"));
        assert_eq!(shape("state[0]"), None, "an argument");
        assert_eq!(shape("f32[16]"), None, "nothing to leave out");
    }

    #[test]
    fn an_argument_keeps_its_root_its_number_and_its_end() {
        let of = |words: &str| forms_of(words, 10).collect::<Vec<_>>();
        let forms = of("state['model']['layers_3']['mlp']['wi_0']['kernel']");
        assert_eq!(forms[0], "state\u{2026}['layers_3']['mlp']['wi_0']['kernel']");
        assert_eq!(forms[1], "state\u{2026}['layers_3']\u{2026}['wi_0']['kernel']");
        assert_eq!(forms.last().map(String::as_str), Some("\u{2026}['kernel']"));
        let forms = of("copy of kv_caches[11]");
        assert_eq!(forms, ["\u{2026}kv_caches[11]", "\u{2026}[11]"]);
        assert!(of("state[\u{2026}], weight").is_empty(), "a name of several words");
    }
}
