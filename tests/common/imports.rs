//! The import graph of the files in `src/`: paths in `use` items, grouped imports and code, resolved to files.

use std::collections::{BTreeMap, BTreeSet};

/// A file: its path below `src/`, and its text.
pub type Sources = BTreeMap<String, String>;

/// An import: line number, and absolute path in the crate.
pub type Import = (usize, Vec<String>);

/// Module of a file: `ui/view/mod.rs` is `ui::view`.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" || path == "main" {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// Code without comments, string literals and unit tests, line by line.
fn code_of(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut test_module = false;
    for line in text.lines() {
        // Imports of unit tests do not count.
        test_module |= line.starts_with("#[cfg(test)]");
        if test_module {
            lines.push(String::new());
            test_module = line != "}";
            continue;
        }
        let mut code = String::new();
        let mut in_text = false;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if in_text => drop(chars.next()),
                '"' => in_text = !in_text,
                '/' if !in_text && chars.peek() == Some(&'/') => break,
                _ if in_text => {}
                _ => code.push(c),
            }
        }
        lines.push(code);
    }
    lines
}

/// Expands a grouped import: `a::{b, c::{d, e}}` is `a::b`, `a::c::d`, `a::c::e`.
fn expanded(path: &str) -> Vec<String> {
    let Some((head, rest)) = path.split_once('{') else {
        let path = path.split(" as ").next().unwrap_or(path).trim();
        return vec![path.trim_end_matches("::self").trim_end_matches("::*").to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(|part| expanded(&format!("{}{part}", head.trim()))).collect()
}

/// Resolves a path written in a module to an absolute path; `None` for paths outside the crate.
fn absolute(path: &str, module: &[String], children: &BTreeSet<String>) -> Option<Vec<String>> {
    let mut words = path.split("::").map(str::trim).peekable();
    let mut base = module.to_vec();
    match *words.peek()? {
        "crate" => {
            words.next();
            base.clear();
        }
        "self" => drop(words.next()),
        "super" => {
            while words.peek() == Some(&"super") {
                words.next();
                base.pop();
            }
        }
        first if children.contains(first) => {}
        _ => return None,
    }
    base.extend(words.map(str::to_owned));
    Some(base)
}

/// Everything that a file imports or refers to by path.
pub fn imports_of(file: &str, sources: &Sources) -> Vec<Import> {
    let module = module_of(file);
    let Some(text) = sources.get(file) else { return Vec::new() };
    let lines = code_of(text);
    // Child modules can be named without `self::`.
    let children: BTreeSet<String> = (sources.keys().map(|file| module_of(file)))
        .filter(|other| other.len() == module.len() + 1 && other.starts_with(&module))
        .filter_map(|other| other.last().cloned())
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim();
        let statement = line.strip_prefix("pub ").unwrap_or(line);
        let statement = statement.split_once(") ").filter(|(head, _)| head.starts_with('(')).map_or(statement, |s| s.1);
        let statement = if line.starts_with("pub(") { line.split_once(") ").map_or(line, |s| s.1) } else { statement };
        if let Some(first) = statement.strip_prefix("use ") {
            let (begin, mut whole) = (at, first.to_owned());
            while !whole.contains(';') && at + 1 < lines.len() {
                at += 1;
                whole.push_str(lines[at].trim());
            }
            let whole = whole.split(';').next().unwrap_or_default();
            let paths = expanded(whole).into_iter().filter_map(|path| absolute(&path, &module, &children));
            found.extend(paths.map(|path| (begin + 1, path)));
        } else {
            found.extend(paths_in(line).filter_map(|path| Some((at + 1, absolute(path, &module, &children)?))));
        }
        at += 1;
    }
    found
}

/// Paths with `::` in a line of code.
fn paths_in(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    words.map(|word| word.trim_matches(':')).filter(|word| word.contains("::"))
}

/// The file that an absolute path refers to: that of its deepest module. A re-exported item counts for the file that
/// declares it.
fn file_of(path: &[String], sources: &Sources, depth: usize) -> Option<String> {
    for end in (1..=path.len()).rev() {
        let stem = path[..end].join("/");
        for file in [format!("{stem}.rs"), format!("{stem}/mod.rs")] {
            if !sources.contains_key(&file) {
                continue;
            }
            if let Some(item) = path.get(end).filter(|_| depth < 4) {
                let passed = imports_of(&file, sources).into_iter().map(|(_, path)| path);
                let mut passed = passed.filter(|passed| passed.last() == Some(item) && passed[..] != path[..=end]);
                if is_passed_on(&sources[&file], item)
                    && let Some(file) = passed.find_map(|passed| file_of(&passed, sources, depth + 1))
                {
                    return Some(file);
                }
            }
            return Some(file);
        }
    }
    None
}

fn is_passed_on(text: &str, item: &str) -> bool {
    let statements = text.split(';').map(str::trim);
    let mut passed = statements.filter_map(|s| s.rsplit_once("pub use ").or_else(|| s.rsplit_once("pub(super) use ")));
    passed.any(|(_, s)| s.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == item))
}

/// For each file, the other files it imports, with the first line that does so.
pub fn graph(sources: &Sources) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut graph = BTreeMap::new();
    for file in sources.keys() {
        let mut to = BTreeMap::new();
        for (line, path) in imports_of(file, sources) {
            if let Some(target) = file_of(&path, sources, 0).filter(|target| target != file) {
                to.entry(target).or_insert(line);
            }
        }
        graph.insert(file.clone(), to);
    }
    graph
}

/// Import cycles of more than `most` files: strongly connected components (Tarjan).
pub fn circles(graph: &BTreeMap<String, BTreeMap<String, usize>>, most: usize) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(file) = open.pop() {
            for next in graph.get(&file).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|file| (file, reach(file))).collect();
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for (file, to) in &reached {
        if done.contains(*file) || !to.contains(*file) {
            continue;
        }
        let circle: Vec<String> = to.iter().filter(|other| reached[other].contains(*file)).cloned().collect();
        done.extend(circle.iter().cloned());
        if circle.len() > most {
            found.push(circle);
        }
    }
    found
}
