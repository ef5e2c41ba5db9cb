//! What the last frames cost, for the performance panel.

use std::collections::VecDeque;
use std::time::Instant;

/// Frames that are kept.
pub const FRAMES: usize = 280;

/// Costs of the last frames, and whether the panel is open.
#[derive(Default)]
pub struct Performance {
    /// Whether the panel is open.
    pub is_open: bool,
    /// Processor time of each frame in milliseconds, without tessellation and drawing; the oldest first.
    frames: VecDeque<f32>,
}

/// Median and maximum of the frames, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Median.
    pub median: f32,
    /// The longest.
    pub most: f32,
}

impl Performance {
    /// Adds a frame that has just been laid out.
    pub fn add(&mut self, began: Instant) {
        if self.frames.len() >= FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(began.elapsed().as_secs_f32() * 1e3);
    }

    /// The frames, the oldest first, in milliseconds.
    #[must_use]
    pub fn frames(&self) -> &VecDeque<f32> {
        &self.frames
    }

    /// What they cost; `None` before the first frame.
    #[must_use]
    pub fn cost(&self) -> Option<Cost> {
        let mut times: Vec<f32> = self.frames.iter().copied().collect();
        times.sort_by(f32::total_cmp);
        Some(Cost { median: *times.get(times.len() / 2)?, most: *times.last()? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_frames_count() {
        let mut performance = Performance::default();
        assert_eq!(performance.cost(), None);
        let began = Instant::now().checked_sub(Duration::from_millis(50)).unwrap_or_else(Instant::now);
        for _ in 0..FRAMES + 5 {
            performance.add(began);
        }
        assert_eq!(performance.frames.len(), FRAMES);
        assert!(performance.cost().is_some_and(|cost| cost.median >= 50.0 && cost.most >= cost.median));
    }
}
