//! Terminal output: lines wrapped to its width, sparse colour, progress of slow operations. Pipes and files get none of
//! it.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::{Style, Term};
use highwater::export::report::Format;
use highwater::export::wrapped::wrap;
use highwater::source::{Progress, Stage};

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
    fn colour_is_for_answers_and_only_where_it_is_wanted() {
        let text = "gpt  (TPU v4)\n  Does not fit: 1.00 GiB over\n    peak  3 GiB\n";
        assert_eq!(dress(text, None, false), text);
        let colored = dress(text, None, true);
        assert!(colored.contains("\u{1b}[31m") && colored.contains("    peak  3 GiB\n"), "{colored:?}");
    }
}
