//! Documents as one HTML page: no other file, no network, light or dark as the reader has it, tables sorted by a click.

use std::fmt::Write as _;

use super::block::{Block, Document, Item, Table, Tone};
use super::line::{Line, Weight};
use crate::export::palette;

/// The page's style, below the colours.
const STYLE: &str = include_str!("page.css");

/// Sorts a table when a column's title is clicked.
const SCRIPT: &str = include_str!("page.js");

/// Writes a document as a page of its own.
#[must_use]
pub fn write(document: &Document, title: &str) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(title),
        palette::css()
    );
    for block in &document.blocks {
        write_block(&mut out, block);
    }
    let _ = write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

fn write_block(out: &mut String, block: &Block) {
    let _ = match block {
        Block::Heading(level, line) => {
            // Markdown leaves the first level to the issue that it is pasted into.
            let level = level.saturating_sub(1).max(1);
            writeln!(out, "<h{level}>{}</h{level}>", text(line))
        }
        Block::Answer(line, tone) => {
            let class = match tone {
                Tone::Fits => "answer fits",
                Tone::Over => "answer over",
                Tone::Neutral => "answer",
            };
            writeln!(out, "<p class=\"{class}\">{}</p>", text(line))
        }
        Block::Paragraph(line) => writeln!(out, "<p>{}</p>", text(line)),
        Block::Note(line) => writeln!(out, "<p class=\"note\">{}</p>", text(line)),
        Block::Code(text) => writeln!(out, "<pre>{}</pre>", escape(text)),
        Block::Picture(svg) => writeln!(out, "<figure>{svg}</figure>"),
        Block::Table(table) => {
            write_table(out, table);
            Ok(())
        }
        Block::List(items) => {
            write_list(out, items);
            Ok(())
        }
    };
}

fn write_table(out: &mut String, table: &Table) {
    out.push_str("<div class=\"wide\"><table>");
    if !table.caption.is_empty() {
        let _ = write!(out, "<caption>{}</caption>", escape(&table.caption));
    }
    let class = |is_number: bool| if is_number { " class=\"n\"" } else { "" };
    out.push_str("<thead><tr>");
    for column in &table.columns {
        let title = escape(&column.title);
        let title = if title.is_empty() { title } else { format!("<button type=\"button\">{title}</button>") };
        let _ = write!(out, "<th scope=\"col\"{}>{title}</th>", class(column.is_number));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (cell, column) in row.iter().zip(&table.columns) {
            let key = cell.key().map(|key| format!(" data-key=\"{key}\"")).unwrap_or_default();
            let _ = write!(out, "<td{}{key}>{}</td>", class(column.is_number), text(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn write_list(out: &mut String, items: &[Item]) {
    let tag = |item: &Item| if item.number.is_some() { "ol" } else { "ul" };
    let mut open: Vec<&str> = Vec::new();
    for item in items {
        // A level is opened inside the item above it, so that levels left out cannot unbalance the page.
        let level = item.level.min(open.len());
        if level < open.len() {
            for tag in open.drain(level + 1..).rev() {
                let _ = write!(out, "</li></{tag}>");
            }
            out.push_str("</li>\n");
        } else {
            let tag = tag(item);
            let _ = writeln!(out, "<{tag}>");
            open.push(tag);
        }
        let lines: Vec<String> = item.lines.iter().map(text).collect();
        let _ = write!(out, "<li>{}", lines.join("<br>"));
    }
    for tag in open.into_iter().rev() {
        let _ = writeln!(out, "</li></{tag}>");
    }
}

/// A line with its emphasis.
fn text(line: &Line) -> String {
    let part = |span: &super::line::Span| {
        let text = escape(&span.text);
        let text = if span.is_code { format!("<code>{text}</code>") } else { text };
        match span.weight {
            Weight::Plain => text,
            Weight::Strong => format!("<strong>{text}</strong>"),
            Weight::Emphasis => format!("<em>{text}</em>"),
        }
    };
    line.spans().iter().map(part).collect()
}

/// Escapes text for HTML and SVG; control characters, and those that turn the direction of text, become a sign.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        let name = "</title><script src=\"http://x\">'\u{202e}\0";
        let mut document = Document::default();
        document.heading(1, Line::code(name));
        let page = write(&document, name);
        let escaped = "&lt;/title&gt;&lt;script src=&quot;http://x&quot;&gt;&#39;\u{fffd}\u{fffd}";
        assert_eq!(page.matches(escaped).count(), 2, "{page}");
        assert_eq!(page.matches("<script").count(), 1);
    }

    #[test]
    fn levels_of_a_list_are_closed() {
        let item = |level| Item::new(level, format!("level {level}"));
        let mut out = String::new();
        write_list(&mut out, &[item(0), item(1), item(5), item(1), item(0)]);
        assert_eq!(out.matches("<ul>").count(), out.matches("</ul>").count(), "{out}");
        assert_eq!(out.matches("<li>").count(), 5);
        assert_eq!(out.matches("</li>").count(), 5, "{out}");
    }
}
