//! When the window showed what a person waits for: said on standard error with `--stats`, each once its frame has been
//! drawn.

use std::time::Instant;

/// What is shown in a frame that has been laid out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reached {
    /// A file is open, with its verdict.
    pub verdict: bool,
    /// Its memory over time is drawn.
    pub picture: bool,
    /// The advisor's findings are shown.
    pub advice: bool,
    /// Nothing is worked out any more.
    pub is_whole: bool,
}

/// Times of what was shown first, and of what is said next.
#[derive(Debug)]
pub struct Milestones {
    /// When the window was asked for.
    started: Instant,
    /// When a file was opened last.
    opened: Option<Instant>,
    /// Frames laid out since.
    frames: usize,
    /// Names of the milestones of the open file that were reached.
    reached: Vec<&'static str>,
    /// Those of the last frame, which is not on the screen before the next one begins, and what they are counted from.
    laid_out: Vec<(&'static str, Instant)>,
}

impl Default for Milestones {
    fn default() -> Self {
        let started = Instant::now();
        Self { started, opened: None, frames: 0, reached: Vec::new(), laid_out: Vec::new() }
    }
}

impl Milestones {
    /// A file is opened: by a click, a drop or a command.
    pub fn open(&mut self) {
        (self.opened, self.frames) = (Some(Instant::now()), 0);
        self.reached.retain(|name| *name == FIRST);
    }

    /// A frame begins, so the last one has been drawn: lines to say.
    pub fn begin(&mut self) -> Vec<String> {
        let frames = self.frames;
        let line = |(name, since): (&str, Instant)| {
            format!("{name:20}{:>9.1} ms  frame {frames}", since.elapsed().as_secs_f64() * 1e3)
        };
        self.laid_out.drain(..).map(line).collect()
    }

    /// A frame has been laid out; whether it shows something for the first time, so that another one is to follow.
    pub fn end(&mut self, now: Reached) -> bool {
        self.frames += 1;
        self.reach(FIRST, true, self.started);
        if let Some(opened) = self.opened {
            self.reach("verdict", now.verdict, opened);
            self.reach("picture", now.picture, opened);
            self.reach("advice", now.advice, opened);
            self.reach("all", now.is_whole && now.verdict, opened);
        }
        !self.laid_out.is_empty()
    }

    fn reach(&mut self, name: &'static str, is_shown: bool, since: Instant) {
        if is_shown && !self.reached.contains(&name) {
            self.reached.push(name);
            self.laid_out.push((name, since));
        }
    }
}

/// Name of the first frame.
const FIRST: &str = "first frame";

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the lines.
    fn names(lines: &[String]) -> Vec<&str> {
        lines.iter().filter_map(|line| line.split("  ").next()).map(str::trim).collect()
    }

    #[test]
    fn each_is_said_once_and_after_its_frame() {
        let mut milestones = Milestones::default();
        assert!(milestones.begin().is_empty(), "nothing was drawn yet");
        assert!(milestones.end(Reached::default()), "the first frame");
        assert_eq!(names(&milestones.begin()), ["first frame"]);
        assert!(!milestones.end(Reached { is_whole: true, ..Reached::default() }), "no file is open");
        milestones.open();
        assert!(milestones.end(Reached { verdict: true, ..Reached::default() }));
        assert_eq!(names(&milestones.begin()), ["verdict"]);
        let all = Reached { verdict: true, picture: true, advice: true, is_whole: true };
        assert!(milestones.end(all));
        assert_eq!(names(&milestones.begin()), ["picture", "advice", "all"]);
        assert!(!milestones.end(all) && milestones.begin().is_empty());
        milestones.open();
        assert!(milestones.end(all), "another file");
        assert_eq!(names(&milestones.begin()), ["verdict", "picture", "advice", "all"]);
    }
}
