//! Terminal output: lines wrapped to its width, sparse colour, progress of slow operations. Pipes and files get none of
//! it.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::{Style, Term};
use highwater::export::report::Format;
use highwater::source::{Progress, Stage};
use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WrapAlgorithm};

/// Narrowest width to wrap to, in columns.
const NARROWEST: usize = 40;

/// Delay before progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Interval between updates of the progress line.
const EVERY: Duration = Duration::from_millis(150);

/// Prints a report wrapped to `width` columns, or else to the terminal's width if there is one.
pub fn print(text: &str, width: Option<usize>) {
    let term = Term::stdout();
    let own = std::io::stdout().is_terminal().then(|| usize::from(term.size().1));
    let is_colored = own.is_some() && console::colors_enabled() && std::env::var_os("NO_COLOR").is_none();
    print_plain(&dress(text, width.or(own), is_colored));
}

/// Prints a report in its format: text as [`print`] does, JSON and Markdown as they are.
pub fn print_as(format: Format, text: &str, width: Option<usize>) {
    if format == Format::Text { print(text, width) } else { print_plain(text) }
}

/// Prints a text on standard output as it is.
pub fn print_plain(text: &str) {
    // A reader that closes the pipe early (`| head`) is not an error.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a report on standard error, beside what standard output holds.
pub fn print_beside(text: &str) {
    let term = Term::stderr();
    let own = std::io::stderr().is_terminal().then(|| usize::from(term.size().1));
    let is_colored = own.is_some() && console::colors_enabled_stderr() && std::env::var_os("NO_COLOR").is_none();
    // Nobody may be reading any more.
    let _ = std::io::stderr().write_all(dress(text, own, is_colored).as_bytes());
}

/// Prints an error on standard error, replacing any line of progress.
pub fn complain(words: &str) {
    clear();
    eprintln!("{words}");
}

fn clear() {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K");
    }
}

/// A text with its lines wrapped and coloured.
fn dress(text: &str, width: Option<usize>, is_colored: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let style = if is_colored { style_of(line) } else { None };
        let wrapped = match width {
            Some(width) => wrap(line, width.max(NARROWEST)),
            None => vec![line.to_owned()],
        };
        for part in wrapped {
            match &style {
                Some(style) => {
                    let indent = part.len() - part.trim_start().len();
                    out.push_str(&part[..indent]);
                    out.push_str(&style.apply_to(&part[indent..]).to_string());
                }
                None => out.push_str(&part),
            }
            out.push('\n');
        }
    }
    out
}

/// The colour of a line: a verdict, a heading at the margin, or a remark.
fn style_of(line: &str) -> Option<Style> {
    let words = line.trim_start();
    let style = Style::new().force_styling(true);
    if words.starts_with("Does not fit") {
        Some(style.red().bold())
    } else if words.starts_with("Fits: ") {
        Some(style.green().bold())
    } else if words.starts_with("note: ") || words.starts_with("caution: ") {
        Some(style.dim())
    } else if !line.is_empty() && !line.starts_with(' ') {
        Some(style.bold())
    } else {
        None
    }
}

/// Wraps a line to `width`; further lines are aligned with its last column, or slightly indented.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let (indent, words) = line.split_at(line.len() - line.trim_start().len());
    let column = line.rfind("  ").map_or(0, |at| textwrap::core::display_width(&line[..at + 2]));
    let hanging = if column > indent.len() && column < width * 3 / 5 { column } else { indent.len() + 4 };
    let hanging = " ".repeat(hanging.min(width / 2));
    let options = Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(&hanging)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_separator(WordSeparator::Custom(parts))
        .break_words(true);
    textwrap::wrap(words, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// Splits a line where it may break: after spaces, and after the slashes of a path.
fn parts(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let mut rest = line;
    Box::new(std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut before = '\0';
        let end = rest.char_indices().find_map(|(at, c)| {
            let is_break = c != ' ' && (before == ' ' || (before == '/' && c != '/'));
            before = c;
            is_break.then_some(at)
        });
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(Word::from(part))
    }))
}

/// Shows progress on a terminal, from [`PATIENCE`] on, until it is dropped.
pub struct Meter {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Meter {
    /// Shows the progress of reading the input called `name`.
    pub fn watch(progress: &Arc<Progress>, name: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = channel();
        let (progress, name, begun) = (Arc::clone(progress), name.to_owned(), Instant::now());
        let thread = std::thread::spawn(move || {
            let mut is_shown = false;
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if begun.elapsed() >= PATIENCE {
                    is_shown = true;
                    let width = usize::from(Term::stderr().size().1).max(NARROWEST);
                    let line = format!("{}: {name}", stage(&progress));
                    let line: String = line.chars().take(width - 1).collect();
                    eprint!("\r\x1b[2K{line}");
                }
            }
            if is_shown {
                clear();
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn stage(progress: &Progress) -> String {
    let stage = progress.stage();
    let share = progress.fraction();
    if share > 0.0 && stage != Stage::Analysing {
        format!("{}, {:.0} %", stage.text(), share * 100.0)
    } else {
        stage.text().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_stands_under_its_last_column() {
        let line = "    peak                25.9 GiB      27,843,912,704 B  at step 3,644 of 5,849, fusion.12";
        let wrapped = wrap(line, 80);
        assert!(wrapped.iter().all(|part| textwrap::core::display_width(part) <= 80), "{wrapped:?}");
        assert_eq!(wrapped.len(), 2);
        assert!(wrapped[1].starts_with(&" ".repeat(8)), "{wrapped:?}");
        let joined: Vec<&str> = wrapped.iter().flat_map(|part| part.split_whitespace()).collect();
        assert_eq!(joined, line.split_whitespace().collect::<Vec<_>>(), "nothing is lost");
    }

    #[test]
    fn a_path_breaks_behind_its_slashes_and_a_word_that_is_too_long_anywhere() {
        let path = "jit(train_step)/transpose(jvp(layer_14))/attn/bthk,bshk->bhts/dot_general";
        let wrapped = wrap(path, 40);
        assert!(wrapped[0].ends_with('/'), "{wrapped:?}");
        assert_eq!(wrapped.concat().replace(' ', ""), path);
        let wrapped = wrap(&"x".repeat(100), 40);
        assert!(wrapped.iter().all(|part| part.len() <= 40) && wrapped.len() >= 3, "{wrapped:?}");
    }

    #[test]
    fn colour_is_for_answers_and_only_where_it_is_wanted() {
        let text = "gpt  (TPU v4)\n  Does not fit: 1.00 GiB over\n    peak  3 GiB\n";
        assert_eq!(dress(text, None, false), text);
        let colored = dress(text, None, true);
        assert!(colored.contains("\u{1b}[31m") && colored.contains("    peak  3 GiB\n"), "{colored:?}");
    }
}
