//! How long each stage of an operation takes, and how much memory the program has at its end.

use std::time::{Duration, Instant};

use super::progress::Stage;

/// What a stage took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// The stage.
    pub stage: Stage,
    /// How long, all its turns together.
    pub time: Duration,
    /// Most bytes that the program had at the end of a turn; `None` where the system does not tell.
    pub memory: Option<u64>,
}

/// Turns shorter than this are not worth a look at the memory.
const WORTH: Duration = Duration::from_millis(1);

/// The stages of one operation.
#[derive(Debug, Default)]
pub struct Stages {
    current: Option<(Stage, Instant)>,
    spent: Vec<Spent>,
}

impl Stages {
    /// Ends the present stage and begins another one.
    pub fn begin(&mut self, stage: Stage) {
        let now = Instant::now();
        self.end(now);
        self.current = Some((stage, now));
    }

    /// What each stage took until now, in the order of [`Stage::ALL`].
    pub fn spent(&mut self) -> Vec<Spent> {
        let now = Instant::now();
        self.end(now);
        self.current = self.current.map(|(stage, _)| (stage, now));
        self.spent.sort_by_key(|spent| Stage::ALL.iter().position(|&stage| stage == spent.stage));
        self.spent.clone()
    }

    fn end(&mut self, now: Instant) {
        let Some((stage, began)) = self.current else { return };
        let time = now.saturating_duration_since(began);
        let memory = if time < WORTH { None } else { resident() };
        match self.spent.iter_mut().find(|spent| spent.stage == stage) {
            Some(spent) => {
                spent.time += time;
                spent.memory = spent.memory.max(memory);
            }
            None => self.spent.push(Spent { stage, time, memory }),
        }
    }
}

/// Bytes of memory that the program has at present.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_one_stage_are_added_up() {
        let mut stages = Stages::default();
        for stage in [Stage::Decoding, Stage::Reading, Stage::Decoding] {
            stages.begin(stage);
            std::thread::sleep(Duration::from_millis(2));
        }
        let spent = stages.spent();
        assert_eq!(spent.iter().map(|spent| spent.stage).collect::<Vec<_>>(), [Stage::Reading, Stage::Decoding]);
        assert!(spent[1].time >= Duration::from_millis(4), "{spent:?}");
    }
}
