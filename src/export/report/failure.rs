//! Out-of-memory messages in the report: every key as printed with its bytes, and the explanation the window shows.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::advisor::remedies::{Remedies, remedies};
use crate::analysis::failure::{Explanation, Readout, explain};
use crate::export::document::{Document, Item, Line, Table};
use crate::model::{
    Bytes, Failure, FailureKind, FailureValue, ListedAllocation, PrintedSize, Profile, Shape, ShapeNode, UnitSystem,
    counted, error_page, thousands,
};

/// A failure: its JSON, and its lines in the other formats.
#[derive(Debug, Serialize)]
pub struct FailureReport {
    /// JSON keys and values, documented in `report.md`.
    #[serde(flatten)]
    pub keys: Map<String, Value>,
    /// Lines for text and Markdown.
    #[serde(skip)]
    lines: Lines,
}

/// What text and Markdown print.
#[derive(Debug, Default)]
struct Lines {
    title: String,
    place: String,
    message: String,
    sentences: Vec<String>,
    sizes: Vec<(&'static str, Vec<Readout>)>,
    parts: Vec<(&'static str, String)>,
    rows: Vec<String>,
    map: Option<String>,
    bins: Vec<String>,
    advice: Vec<(String, String)>,
    next: Vec<(String, Option<String>)>,
}

/// Describes a failure, with `top` rows in the lists of the text formats and of the chunks.
pub fn report(failure: &Failure, profile: &Profile, top: usize) -> FailureReport {
    let explanation = explain(failure, profile.shows_buffers());
    let remedies = remedies(failure, profile);
    let top = if top == 0 { usize::MAX } else { top };
    let mut lines = lines(failure, &explanation, &remedies, top);
    if !profile.programs.is_empty() {
        // A program that was read has findings of its own, which are worked out.
        lines.advice.clear();
    }
    FailureReport { keys: keys(failure, &explanation, &remedies, top), lines }
}

fn put_size(map: &mut Map<String, Value>, key: &str, size: Option<&PrintedSize>) {
    map.insert(key.to_owned(), size.and_then(|size| size.text.clone()).map_or(Value::Null, Value::String));
    map.insert(format!("{key}_bytes"), size.map_or(Value::Null, |size| size.bytes.0.into()));
}

fn put(map: &mut Map<String, Value>, key: &str, value: &FailureValue) {
    match value {
        FailureValue::Size(size) => put_size(map, key, Some(size)),
        FailureValue::Count(count) => {
            map.insert(key.to_owned(), (*count).into());
        }
        FailureValue::Text(text) => {
            map.insert(key.to_owned(), text.clone().into());
        }
        FailureValue::Flag(flag) => {
            map.insert(key.to_owned(), (*flag).into());
        }
    }
}

fn keys(failure: &Failure, explanation: &Explanation, remedies: &Remedies, top: usize) -> Map<String, Value> {
    let mut map = Map::new();
    for key in failure.kind.keys() {
        map.insert((*key).to_owned(), Value::Null);
    }
    for (key, value) in &failure.fields {
        put(&mut map, key, value);
    }
    map.insert("kind".to_owned(), failure.kind.name().into());
    map.insert("kind_title".to_owned(), failure.kind.title().into());
    map.insert("is_error".to_owned(), failure.is_error.into());
    map.insert("message".to_owned(), failure.message.clone().into());
    map.insert("source".to_owned(), failure.source.clone().into());
    map.insert("offset".to_owned(), failure.offset.into());
    map.insert("line".to_owned(), failure.line.into());
    map.insert("process".to_owned(), failure.process.clone().into());
    map.insert("error_code".to_owned(), failure.error_code.clone().into());
    map.insert("error_code_printed".to_owned(), failure.error_code_printed.into());
    map.insert("error_page".to_owned(), failure.error_code.as_deref().and_then(error_page).into());
    map.insert("paths".to_owned(), failure.paths.clone().into());
    map.insert("truncated".to_owned(), failure.truncated.into());
    map.insert("count".to_owned(), (failure.repeats + 1).into());
    let (last_offset, last_line) = failure.last_place.unwrap_or((failure.offset, failure.line));
    map.insert("last_offset".to_owned(), last_offset.into());
    map.insert("last_line".to_owned(), last_line.into());
    map.insert("processes".to_owned(), failure.processes.clone().into());
    for key in ["op", "program"] {
        map.entry(key).or_insert(Value::Null);
    }
    let list = |rows: Vec<Value>| (!rows.is_empty()).then_some(Value::Array(rows));
    let is_kernel = failure.kind == FailureKind::TpuVmemListing;
    let rows = |described: bool| {
        let rows = failure.allocations.iter().filter(|entry| entry.is_described() == described);
        rows.map(|entry| allocation(entry, is_kernel)).collect::<Vec<Value>>()
    };
    let (described, cut) = (rows(true), rows(false));
    let buffers = failure.peak_buffers.iter().map(peak_buffer).collect();
    let bins = failure.bins.iter().map(|b| json!({ "bin": b.bin, "chunks": b.chunks, "in_use": b.in_use })).collect();
    let chunks =
        failure.chunks.iter().take(top).map(
            |c| json!({ "address": c.address, "bytes": c.size.0, "in_use": c.in_use, "annotation": c.annotation }),
        );
    let sizes = failure.chunk_sizes.iter().map(|(count, bytes)| json!({ "count": count, "bytes": bytes.0 })).collect();
    let parts = failure
        .program_parts
        .iter()
        .map(|(name, size)| json!({ "name": name, "size": size.text, "size_bytes": size.bytes.0 }));
    let usage =
        failure.usage_rows.iter().map(|(size, op)| json!({ "size": size.text, "size_bytes": size.bytes.0, "op": op }));
    let warnings = failure
        .warnings
        .iter()
        .map(|w| json!({ "target_bytes": w.target.0, "reached_bytes": w.reached.0, "from_bytes": w.from.0 }));
    for (key, rows) in [
        ("allocations", list(described)),
        ("cut_allocations", list(cut)),
        ("buffers", list(buffers)),
        ("bins", list(bins)),
        ("chunks", list(chunks.collect())),
        ("chunk_sizes", list(sizes)),
        ("program_parts", list(parts.collect())),
        ("usage", list(usage.collect())),
        ("warnings", list(warnings.collect())),
    ] {
        if let Some(rows) = rows {
            map.insert(key.to_owned(), rows);
        }
    }
    if !failure.chunks.is_empty() {
        map.insert("chunk_count".to_owned(), failure.chunks.len().into());
    }
    if !failure.statistics.is_empty() {
        let mut statistics = Map::new();
        for (key, value) in &failure.statistics {
            put(&mut statistics, key, value);
        }
        map.insert("statistics".to_owned(), Value::Object(statistics));
    }
    map.insert("explanation".to_owned(), explained(explanation, remedies));
    map
}

fn explained(explanation: &Explanation, remedies: &Remedies) -> Value {
    json!({
        "title": explanation.title,
        "sentences": explanation.sentences,
        "cause": explanation.cause.name(),
        "memory": explanation.memory,
        "needed_bytes": explanation.needed.map(|b| b.0),
        "capacity_bytes": explanation.capacity.map(|b| b.0),
        "over_by_bytes": explanation.over_by.map(|b| b.0),
        "limit_at_bytes": explanation.limit_at.map(|b| b.0),
        "sizes": explanation.readouts.iter().map(|(role, sizes)| json!({
            "role": role.title(),
            "sizes": sizes.iter().map(|s| json!({ "name": s.name, "also": s.also, "bytes": s.size.bytes.0, "words": s.in_words() })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "parts": explanation.parts.iter().map(|p| json!({ "name": p.name, "bytes": p.bytes.0 })).collect::<Vec<_>>(),
        "groups": explanation.groups.iter().map(|g| json!({
            "count": g.count, "bytes": g.bytes.0, "shape": g.shape, "name": g.name, "op_name": g.op_name, "first": g.first,
        })).collect::<Vec<_>>(),
        "not_listed_bytes": explanation.not_listed.map(|b| b.0),
        "advice": remedies.change.iter().map(|a| json!({
            "text": a.text, "changes_results": a.changes_results.name(), "gain": a.gain, "sign": a.sign, "reference": a.reference,
        })).collect::<Vec<_>>(),
        "next": remedies.learn.iter().map(|n| json!({ "text": n.text, "command": n.command, "open": n.open })).collect::<Vec<_>>(),
    })
}

/// The root of the shape if it is an array; a tuple has neither dimensions nor layout.
fn array(shape: Option<&Shape>) -> Option<&ShapeNode> {
    shape.map(Shape::root).filter(|node| !node.is_tuple())
}

fn dimensions(node: Option<&ShapeNode>) -> Value {
    node.map_or(Value::Null, |node| node.dimensions.clone().into())
}

fn allocation(entry: &ListedAllocation, is_kernel: bool) -> Value {
    let node = array(entry.shape.as_ref());
    let layout = node.and_then(|node| node.layout.as_ref());
    let mut map = Map::new();
    map.insert("number".to_owned(), entry.number.into());
    put_size(&mut map, "size", entry.size.as_ref());
    put_size(&mut map, "unpadded", entry.unpadded.as_ref());
    put_size(&mut map, "padding", entry.padding.as_ref());
    map.insert("expansion".to_owned(), entry.expansion.into());
    map.insert("shape".to_owned(), entry.shape_text.clone().into());
    map.insert("dtype".to_owned(), node.map_or(Value::Null, |node| node.element_type.name().into()));
    map.insert("dims".to_owned(), dimensions(node));
    map.insert("layout".to_owned(), layout.map_or(Value::Null, |layout| layout.minor_to_major.clone().into()));
    map.insert("tile".to_owned(), layout.and_then(|l| l.tiles.first()).map_or(Value::Null, |tile| tile.clone().into()));
    map.insert("tiles".to_owned(), layout.map_or(Value::Null, |layout| layout.tiles.clone().into()));
    // `op_name` is set only if it is the plain unescaped name, as programs that read HBM listings expect; `operator`
    // holds the whole line.
    let plain =
        (is_kernel || entry.op_type.is_none()) && entry.op_name.as_ref().is_some_and(|name| !name.contains('\\'));
    map.insert("op_name".to_owned(), entry.op_name.clone().filter(|_| plain).into());
    let (file, line) =
        entry.source.clone().map_or((None, None), |(file, line)| (Some(file), (line > 0).then_some(line)));
    map.insert(
        "operator".to_owned(),
        if entry.op_name.is_none() && entry.op_type.is_none() && file.is_none() {
            Value::Null
        } else {
            json!({ "op_type": entry.op_type, "op_name": entry.op_name, "source_file": file, "source_line": line })
        },
    );
    map.insert(
        "source".to_owned(),
        file.map_or(Value::Null, |file| match line {
            Some(line) => format!("{file}:{line}").into(),
            None => file.into(),
        }),
    );
    map.insert("label".to_owned(), entry.label.clone().into());
    map.insert("label_head".to_owned(), entry.label_head.clone().into());
    map.insert("allocation_type".to_owned(), entry.allocation_type.clone().into());
    if let Some(tag) = &entry.tag {
        map.insert("tag".to_owned(), tag.clone().into());
    }
    Value::Object(map)
}

fn peak_buffer(buffer: &crate::model::PeakBuffer) -> Value {
    let node = array(buffer.shape.as_ref());
    let mut map = Map::new();
    map.insert("number".to_owned(), buffer.number.into());
    put_size(&mut map, "size", buffer.size.as_ref());
    map.insert("shape".to_owned(), buffer.shape_text.clone().into());
    map.insert("dtype".to_owned(), node.map_or(Value::Null, |node| node.element_type.name().into()));
    map.insert("dims".to_owned(), dimensions(node));
    // The line with the shape tells parameters from other buffers.
    let is_known = buffer.entry_parameter || buffer.shape.is_some();
    map.insert("entry_parameter".to_owned(), is_known.then_some(buffer.entry_parameter).into());
    map.insert("label".to_owned(), buffer.label.clone().into());
    map.insert("op_name".to_owned(), buffer.op_name.clone().into());
    let source = buffer.source.as_ref().map(|(file, line)| format!("{file}:{line}"));
    map.insert("source".to_owned(), source.into());
    Value::Object(map)
}

fn lines(failure: &Failure, explanation: &Explanation, remedies: &Remedies, top: usize) -> Lines {
    let code = failure.error_code.as_deref().map(|code| format!("{code}, ")).unwrap_or_default();
    let process = failure.process.as_deref().map(|p| format!(", {p}")).unwrap_or_default();
    let again = match (failure.repeats, failure.last_place) {
        (0, _) => String::new(),
        (1, Some((_, line))) => format!(", again in line {line}"),
        (times, Some((_, line))) => format!(", {} times up to line {line}", thousands(times + 1)),
        (times, None) => format!(", {} times", thousands(times + 1)),
    };
    let others = match failure.processes.len() {
        0 | 1 => String::new(),
        count => format!(", by {count} processes"),
    };
    let mut rows: Vec<String> = explanation
        .groups
        .iter()
        .take(top)
        .map(|group| {
            let times = if group.count > 1 { format!("{} × ", group.count) } else { String::new() };
            let shape = group.shape.as_deref().unwrap_or("");
            let op = group.op_name.as_deref().filter(|op| *op != group.name).unwrap_or("");
            format!("{times}{}  {}  {shape}  {op}", group.bytes.short(), group.name).trim_end().to_owned()
        })
        .collect();
    if explanation.groups.len() > top {
        rows.push(format!("and {} more rows", explanation.groups.len() - top));
    }
    if let Some(rest) = explanation.not_listed {
        rows.push(format!("{}  not listed", rest.short()));
    }
    if let Some(nodes) = failure.count("remaining_nodes") {
        rows.push(format!("{nodes} more nodes"));
    }
    Lines {
        title: explanation.title.clone(),
        place: format!("{} ({code}line {}{process}{again}{others})", failure.kind.title(), failure.line),
        message: failure.message.clone(),
        sentences: explanation.sentences.clone(),
        sizes: explanation.readouts.iter().map(|(role, sizes)| (role.title(), sizes.clone())).collect(),
        parts: match explanation.parts.as_slice() {
            // The sizes say it.
            [one] if explanation.readouts.iter().flat_map(|group| &group.1).any(|r| r.size.bytes == one.bytes) => {
                Vec::new()
            }
            parts => {
                let words = |bytes| explanation.words_of(bytes, UnitSystem::Binary);
                parts.iter().map(|part| (part.name, words(part.bytes))).collect()
            }
        },
        rows,
        map: failure.text("map").map(ToOwned::to_owned),
        bins: failure
            .bins
            .iter()
            .filter(|bin| bin.chunks > 0)
            .map(|bin| {
                format!(
                    "{}: {}, {} in use",
                    Bytes(bin.bin).short(),
                    counted(bin.chunks, "chunk"),
                    thousands(bin.in_use)
                )
            })
            .collect(),
        advice: remedies
            .change
            .iter()
            .map(|advice| {
                let results = advice.changes_results.words();
                let gain = if advice.gain.is_empty() { String::new() } else { format!("; gain: {}", advice.gain) };
                let sign = if advice.sign.is_empty() { String::new() } else { format!("; when: {}", advice.sign) };
                (advice.text.clone(), format!("{results}{gain}{sign}"))
            })
            .collect(),
        next: remedies.learn.iter().map(|next| (next.text.clone(), next.command.clone())).collect(),
    }
}

/// The other names of a size, after it; empty if it has none.
fn others(readout: &Readout) -> String {
    if readout.also.is_empty() { String::new() } else { format!(" = {}", readout.also.join(" = ")) }
}

impl FailureReport {
    /// Writes a failure as text.
    pub fn write_text(&self, out: &mut String) {
        let lines = &self.lines;
        let _ = writeln!(out, "{}: {}", if self.is_error() { "failure" } else { "warning" }, lines.title);
        let _ = writeln!(out, "  {}", lines.place);
        for sentence in &lines.sentences {
            let _ = writeln!(out, "  {sentence}.");
        }
        for (title, sizes) in &lines.sizes {
            let _ = writeln!(out, "  {}:", title.to_lowercase());
            for size in sizes {
                let (words, evidence) = (size.in_words(), size.size.evidence());
                let _ = writeln!(out, "    {:<24} {words:>10}  {evidence}{}", size.name, others(size));
            }
        }
        let sections: [(&str, &Vec<String>); 2] = [("listed", &lines.rows), ("bins", &lines.bins)];
        if !lines.parts.is_empty() {
            let _ = writeln!(out, "  by part:");
            for (name, words) in &lines.parts {
                let _ = writeln!(out, "    {name:<24} {words:>10}");
            }
        }
        for (head, rows) in sections {
            if !rows.is_empty() {
                let _ = writeln!(out, "  {head}:");
                for row in rows {
                    let _ = writeln!(out, "    {row}");
                }
            }
        }
        if let Some(map) = &lines.map {
            let _ = writeln!(out, "  map (* used, x wasted, _ free):\n    {map}");
        }
        if !lines.advice.is_empty() {
            let _ = writeln!(out, "  what to change:");
            for (text, terms) in &lines.advice {
                let _ = writeln!(out, "    - {text} ({terms})");
            }
        }
        if !lines.next.is_empty() {
            let _ = writeln!(out, "  what to do next:");
            for (text, command) in &lines.next {
                let _ = writeln!(out, "    - {text}");
                if let Some(command) = command {
                    let _ = writeln!(out, "        {command}");
                }
            }
        }
        let _ = writeln!(out, "  as printed: {}", lines.message);
    }

    /// Adds a failure to a document.
    pub fn document(&self, out: &mut Document) {
        let lines = &self.lines;
        out.heading(3, &lines.title);
        out.paragraph(&lines.place);
        if !lines.sentences.is_empty() {
            out.paragraph(lines.sentences.iter().map(|sentence| format!("{sentence}.")).collect::<Vec<_>>().join(" "));
        }
        let mut table = Table::new(["", "", ">size", ">printed"]);
        for (title, sizes) in &lines.sizes {
            for readout in sizes {
                let name = format!("{}{}", readout.name, others(readout));
                let size = Line::from(readout.in_words()).sorted_by(readout.size.bytes.0.into());
                table.row([(*title).into(), name.into(), size, readout.size.evidence().into()]);
            }
        }
        out.table(table);
        if !lines.parts.is_empty() {
            let parts: Vec<String> = lines.parts.iter().map(|(name, words)| format!("{name} {words}")).collect();
            out.paragraph(format!("By part: {}.", parts.join(", ")));
        }
        for (head, rows) in [("Listed:", &lines.rows), ("Bins:", &lines.bins)] {
            if !rows.is_empty() {
                out.paragraph(head);
                out.code(rows.join("\n"));
            }
        }
        if let Some(map) = &lines.map {
            out.paragraph(Line::marked("Map (`*` used, `x` wasted, `_` free):"));
            out.code(map.as_str());
        }
        if !lines.advice.is_empty() {
            out.paragraph("What to change:");
            let item = |(text, terms): &(String, String)| Item::new(0, Line::marked(text).then(format!(" ({terms})")));
            out.list(lines.advice.iter().map(item).collect());
        }
        if !lines.next.is_empty() {
            out.paragraph("What to do next:");
            let item = |(text, command): &(String, Option<String>)| {
                let line = Line::marked(text);
                Item::new(0, command.iter().fold(line, |line, command| line.then(": ").then_code(command)))
            };
            out.list(lines.next.iter().map(item).collect());
        }
        out.code(lines.message.as_str());
    }

    fn is_error(&self) -> bool {
        self.keys.get("is_error") != Some(&Value::Bool(false))
    }
}
