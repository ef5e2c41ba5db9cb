//! Documents as Markdown, for an issue, a chat or a pull request.

use std::fmt::Write as _;

use super::block::{Block, Document, Item, Table};
use super::line::{Line, Weight};

/// Writes a document; pictures are left out.
#[must_use]
pub fn write(document: &Document) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        match block {
            Block::Heading(level, line) => {
                let _ = writeln!(out, "{} {}\n", "#".repeat(usize::from(*level)), text(line));
            }
            Block::Answer(line, _) => {
                let _ = writeln!(out, "**{}**\n", text(line));
            }
            Block::Paragraph(line) => {
                let _ = writeln!(out, "{}\n", text(line));
            }
            Block::Note(line) => {
                let _ = writeln!(out, "> {}\n", text(line));
            }
            Block::Table(table) => write_table(&mut out, table),
            Block::List(items) => write_list(&mut out, items),
            Block::Code(text) => {
                let _ = writeln!(out, "```text\n{}\n```\n", text.trim_end_matches('\n').replace("```", "'''"));
            }
            Block::Picture(_) => {}
        }
    }
    out
}

fn write_table(out: &mut String, table: &Table) {
    let row = |cells: &mut dyn Iterator<Item = String>| {
        let cells = cells.map(|cell| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") });
        format!("|{}\n", cells.collect::<String>())
    };
    out.push_str(&row(&mut table.columns.iter().map(|column| escape(&column.title))));
    let rule = |is_number: bool| if is_number { "---:|" } else { "---|" };
    out.push('|');
    out.extend(table.columns.iter().map(|column| rule(column.is_number)));
    out.push('\n');
    for cells in &table.rows {
        out.push_str(&row(&mut cells.iter().map(text)));
    }
    out.push('\n');
}

fn write_list(out: &mut String, items: &[Item]) {
    for item in items {
        let indent = "  ".repeat(item.level);
        let mark = item.number.map_or_else(|| "*".to_owned(), |number| format!("{number}."));
        for (i, line) in item.lines.iter().enumerate() {
            // Two blanks at the end of a line break it.
            let end = if i + 1 < item.lines.len() { "  " } else { "" };
            let start = if i == 0 { format!("{mark} ") } else { "  ".to_owned() };
            let _ = writeln!(out, "{indent}{start}{}{end}", text(line));
        }
    }
    out.push('\n');
}

/// A line with its emphasis.
fn text(line: &Line) -> String {
    let mark = |weight: Weight| match weight {
        Weight::Plain => "",
        Weight::Strong => "**",
        Weight::Emphasis => "*",
    };
    let (mut out, mut open) = (String::new(), Weight::Plain);
    for span in line.spans() {
        if span.weight != open {
            out.push_str(mark(open));
            out.push_str(mark(span.weight));
            open = span.weight;
        }
        out.push_str(&if span.is_code { code(&span.text) } else { escape(&span.text) });
    }
    out.push_str(mark(open));
    out
}

/// Escapes text; an underscore inside a word and a bracket that is not a link need no escape.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let is_link = text.contains("](");
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let inside = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        if "\\|*`<".contains(c) || (c == '_' && !inside) || (c == '[' && is_link) {
            out.push('\\');
        }
        out.push(if c == '\n' || c == '\r' { ' ' } else { c });
        before = c;
    }
    out
}

/// A name as code, safe in a table cell: bars are escaped, backquotes and line breaks replaced.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|").replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("jit_train_step p[1]['w']"), "jit_train_step p[1]['w']");
        assert_eq!(escape("_x_ *y* a|b\nc"), "\\_x\\_ \\*y\\* a\\|b c");
        assert_eq!(escape("[x](y)"), "\\[x](y)");
        assert_eq!(code("a|b`c"), "`a\\|b'c`");
    }

    #[test]
    fn backquotes_mark_code_inside_emphasis() {
        assert_eq!(text(&Line::strong("Donate `x*`: less").then(" at the peak")), "**Donate `x*`: less** at the peak");
        assert_eq!(text(&Line::marked("one ` alone")), "one \\` alone");
    }
}
