//! Strings inside a line: HTML entities, JSON objects, Python's and Go's quoted strings, escaped terminal colours.

use serde_json::Value;

/// Tags that lay a text out; everything else in angle brackets is the text's own (`<module>`).
const TAGS: [&str; 20] = [
    "br", "span", "pre", "code", "p", "div", "b", "i", "font", "td", "tr", "a", "html", "body", "table", "tbody", "th",
    "li", "ul", "samp",
];

const ENTITIES: [(&str, &str); 8] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&nbsp;", " "),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&amp;", "&"),
];

/// A line without HTML; `None` where it has none.
pub fn without_html(line: &str) -> Option<String> {
    let has_entity =
        line.contains('&') && (ENTITIES.iter().any(|(entity, _)| line.contains(entity)) || line.contains("&#"));
    let has_tag = line.contains('<') && tag_at(line, line.find('<').unwrap_or(0)).is_some();
    if !has_entity && !has_tag && !line.match_indices('<').any(|(at, _)| tag_at(line, at).is_some()) {
        return None;
    }
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        if c == '<'
            && let Some((end, is_break)) = tag_at(line, at)
        {
            if is_break {
                out.push('\n');
            }
            at = end;
            continue;
        }
        if c == '&'
            && let Some((end, text)) = entity_at(line, at)
        {
            out.push_str(&text);
            at = end;
            continue;
        }
        out.push(c);
        at += c.len_utf8();
    }
    Some(out).filter(|out| out != line)
}

/// (end, whether it breaks the line) of a layout tag at a place.
fn tag_at(line: &str, at: usize) -> Option<(usize, bool)> {
    let rest = &line[at + 1..];
    let name_at = usize::from(rest.starts_with('/'));
    let name_len = rest[name_at..].bytes().take_while(u8::is_ascii_alphabetic).count();
    let name = rest[name_at..name_at + name_len].to_ascii_lowercase();
    if !TAGS.contains(&name.as_str()) {
        return None;
    }
    let after = &rest[name_at + name_len..];
    if !after.starts_with(['>', ' ', '/']) {
        return None;
    }
    let close = after.bytes().take(300).position(|b| b == b'>')?;
    let breaks = name == "br" || (name_at == 1 && matches!(name.as_str(), "p" | "div" | "tr"));
    Some((at + 1 + name_at + name_len + close + 1, breaks))
}

fn entity_at(line: &str, at: usize) -> Option<(usize, String)> {
    let rest = &line[at..];
    if let Some((entity, text)) = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)) {
        return Some((at + entity.len(), (*text).to_owned()));
    }
    let digits = rest.strip_prefix("&#")?;
    let end = digits.bytes().take(8).position(|b| b == b';')?;
    let code = match digits[..end].strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits[..end].parse().ok()?,
    };
    Some((at + 2 + end + 1, char::from_u32(code)?.to_string()))
}

/// Keys under which loggers keep the text of a record.
const TEXT_KEYS: [&str; 24] = [
    "log",
    "message",
    "msg",
    "text",
    "error",
    "err",
    "exception",
    "traceback",
    "stack",
    "stacktrace",
    "stack_trace",
    "exc_info",
    "textPayload",
    "body",
    "line",
    "output",
    "detail",
    "details",
    "reason",
    "stderr",
    "stdout",
    "evalue",
    "data",
    "_raw",
];
/// Keys that say which process wrote a record, with the word for it.
const PROCESS_KEYS: [(&str, &str); 8] = [
    ("rank", "rank "),
    ("local_rank", "rank "),
    ("pod_name", ""),
    ("pod", ""),
    ("container_name", ""),
    ("worker", ""),
    ("process", ""),
    ("pid", "pid "),
];

/// What a JSON record says, and which process said it.
pub struct Record {
    /// Its text.
    pub text: String,
    /// The process, where a key names it.
    pub process: Option<String>,
}

/// The record of a line that is, or ends with, a JSON object or array.
pub fn json_record(line: &str) -> Option<Record> {
    let start = line.find(['{', '['])?;
    let body = line[start..].trim_end();
    if body.len() < 8 || !body.ends_with(['}', ']', ',']) {
        return None;
    }
    let value: Value = serde_json::from_str(body.trim_end_matches(',')).ok()?;
    if !matches!(&value, Value::Object(_) | Value::Array(_)) {
        return None;
    }
    let mut texts = Vec::new();
    named_texts(&value, 0, &mut texts);
    if texts.is_empty() {
        all_texts(&value, 0, &mut texts);
        texts.retain(|text| text.len() > 24);
    }
    if texts.is_empty() {
        return None;
    }
    let text = texts.join("\n");
    Some(Record { text: text.trim_end_matches('\n').to_owned(), process: process(&value, 0) })
}

/// The text of a line that is one member of a JSON object, as pretty printers write them.
pub fn json_member(line: &str) -> Option<Record> {
    let member = line.trim().trim_end_matches(',');
    if !member.starts_with('"') || !member.ends_with('"') {
        return None;
    }
    let value: Value = serde_json::from_str(&format!("{{{member}}}")).ok()?;
    let mut texts = Vec::new();
    named_texts(&value, 0, &mut texts);
    let text = texts.pop()?;
    Some(Record { text: text.trim_end_matches('\n').to_owned(), process: None })
}

fn named_texts(value: &Value, depth: usize, out: &mut Vec<String>) {
    match value {
        Value::Object(map) if depth < 8 => {
            for (key, value) in map {
                match value {
                    Value::String(text) if TEXT_KEYS.contains(&key.as_str()) => out.push(text.clone()),
                    Value::Array(rows) if TEXT_KEYS.contains(&key.as_str()) && rows.iter().all(Value::is_string) => {
                        out.extend(rows.iter().filter_map(Value::as_str).map(ToOwned::to_owned));
                    }
                    other => named_texts(other, depth + 1, out),
                }
            }
        }
        Value::Array(rows) if depth < 8 => rows.iter().for_each(|row| named_texts(row, depth + 1, out)),
        _ => {}
    }
}

fn all_texts(value: &Value, depth: usize, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Object(map) if depth < 8 => map.values().for_each(|value| all_texts(value, depth + 1, out)),
        Value::Array(rows) if depth < 8 => rows.iter().for_each(|row| all_texts(row, depth + 1, out)),
        _ => {}
    }
}

fn process(value: &Value, depth: usize) -> Option<String> {
    let map = value.as_object()?;
    for (key, word) in PROCESS_KEYS {
        match map.get(key) {
            Some(Value::String(name)) if !name.is_empty() => return Some(format!("{word}{name}")),
            Some(Value::Number(number)) => return Some(format!("{word}{number}")),
            _ => {}
        }
    }
    if depth < 4 { map.values().find_map(|value| process(value, depth + 1)) } else { None }
}

/// A line that holds a message as a quoted string, with the escapes of one level undone: `\n`, `\"`, `\u001b`, `\x1b`.
/// `None` where it has no such string.
pub fn unescaped(line: &str) -> Option<String> {
    let breaks = line.matches("\\n").count();
    let is_quoted_row = {
        let row = line.trim().trim_end_matches(',');
        row.len() > 2 && row.starts_with('"') && row.ends_with('"') && line.contains('\\')
    };
    // Paths of Windows and escapes within a quoted name (`op_name="a\nb"`) stay as they are.
    let is_string = is_quoted_row
        || breaks >= 2
        || (breaks == 1 && super::super::triggers::any(line.split("\\n").next().unwrap_or("")))
        || ["\\u001b[", "\\x1b[", "\\033[", "\\e[", "\\u003c", "\\\"", "\\'"]
            .iter()
            .any(|escape| line.contains(escape));
    if !is_string || line.trim_start().starts_with("Operator:") {
        return None;
    }
    let body = if is_quoted_row { line.trim().trim_end_matches(',').trim_matches('"') } else { line };
    let mut out = String::with_capacity(body.len());
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => {}
            Some('e') => out.push('\u{1b}'),
            Some(kind @ ('u' | 'x')) => {
                let count = if kind == 'u' { 4 } else { 2 };
                let digits: String = chars.clone().take(count).collect();
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).filter(|_| digits.len() == count) {
                    Some(c) => {
                        out.push(c);
                        chars.nth(count - 1);
                    }
                    None => out.extend(['\\', kind]),
                }
            }
            Some('0') => {
                let digits: String = chars.clone().take(2).collect();
                if digits == "33" {
                    out.push('\u{1b}');
                    chars.nth(1);
                } else {
                    out.push_str("\\0");
                }
            }
            Some(other @ ('\\' | '"' | '\'' | '/')) => out.push(other),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    // What closed the string stands behind the last line of the message.
    let end = out.trim_end_matches(['"', '\'', '}', ']', ')', ',']).len();
    if breaks > 0 && line[..line.find("\\n").unwrap_or(0)].contains(['"', '\'']) {
        out.truncate(end);
    }
    Some(out).filter(|out| out != line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_goes_and_the_text_stays() {
        let html = "<pre>File &lt;module&gt;<br/>a &amp;&#32;b &#x41;</pre>";
        assert_eq!(without_html(html).as_deref(), Some("File <module>\na & b A"));
        assert_eq!(without_html("in <module> a < b & c"), None);
    }

    #[test]
    fn records_give_their_text_and_process() {
        let record = json_record(r#"{"level":"error","ts":1.5,"msg":"a\nb","rank":3}"#).expect("a record");
        assert_eq!((record.text.as_str(), record.process.as_deref()), ("a\nb", Some("rank 3")));
        let nested = json_record(r#"Jan host app: {"k": {"pod_name": "w-1"}, "log": "x y z\n"}"#).expect("a record");
        assert_eq!((nested.text.as_str(), nested.process.as_deref()), ("x y z", Some("w-1")));
        assert!(json_record("f32[1]{0}").is_none());
        assert!(json_record("[rank0]: a").is_none());
    }

    #[test]
    fn strings_are_unescaped_and_paths_are_not() {
        let escaped = r#"RESOURCE_EXHAUSTED: x\n  op_name=\"jit(f)\\n\" \'a\'\n"#;
        assert_eq!(unescaped(escaped).as_deref(), Some("RESOURCE_EXHAUSTED: x\n  op_name=\"jit(f)\\n\" 'a'\n"));
        assert_eq!(unescaped(r#"Operator: op_name="a\n b\n c""#), None);
        assert_eq!(unescaped(r"E C:\tf_jenkins\home\new\cuda_driver.cc:924] failed"), None);
        assert_eq!(
            unescaped(r#"   "\u001b[0;31mError\u001b[0m: x","#).as_deref(),
            Some("\u{1b}[0;31mError\u{1b}[0m: x")
        );
    }
}
