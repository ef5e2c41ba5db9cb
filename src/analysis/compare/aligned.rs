//! Two programs on one axis: the steps of the later one, with those of the earlier one stretched between the places that
//! both have, such as the start of the backward pass.

use crate::analysis::phases::Phases;
use crate::analysis::scene::Scene;

/// A place that both programs have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The pass that starts there.
    pub name: String,
    /// Step before.
    pub before: u32,
    /// Step after.
    pub after: u32,
}

/// The axis of the later program, on which the earlier one is stretched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aligned {
    /// Places that both have, in order on both sides.
    pub marks: Vec<Mark>,
    /// Number of steps before and after.
    pub points: (u32, u32),
}

impl Aligned {
    /// Aligns two programs by the passes of a training step that both have; without any, from end to end.
    #[must_use]
    pub fn new(before: Scene<'_>, after: Scene<'_>) -> Self {
        let passes = |scene: Scene<'_>| Phases::new(scene.program, scene.analysis).passes;
        let there = passes(before);
        let shared = passes(after).into_iter().filter_map(|pass| {
            let other = there.iter().find(|other| other.name == pass.name)?;
            Some(Mark { name: pass.name, before: other.start, after: pass.start })
        });
        Self::of(shared, (before.map().points, after.map().points))
    }

    fn of(shared: impl Iterator<Item = Mark>, points: (u32, u32)) -> Self {
        let mut marks: Vec<Mark> = Vec::new();
        for mark in shared {
            let (was, is) = marks.last().map_or((0, 0), |last| (last.before, last.after));
            // Only what rises on both sides can be an axis.
            if mark.before > was && mark.after > is && mark.before < points.0 && mark.after < points.1 {
                marks.push(mark);
            }
        }
        Self { marks, points }
    }

    /// The position before that belongs to a position after.
    #[must_use]
    pub fn before_of(&self, after: f64) -> f64 {
        let places = || {
            let marks = self.marks.iter().map(|mark| (f64::from(mark.before), f64::from(mark.after)));
            marks.chain([(f64::from(self.points.0), f64::from(self.points.1))])
        };
        let (mut from, mut to) = ((0.0, 0.0), (f64::from(self.points.0), f64::from(self.points.1)));
        for place in places() {
            if after < place.1 {
                to = place;
                break;
            }
            from = place;
        }
        let length = to.1 - from.1;
        if length <= 0.0 {
            return to.0;
        }
        from.0 + (to.0 - from.0) * ((after - from.1) / length).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(name: &str, before: u32, after: u32) -> Mark {
        Mark { name: name.to_owned(), before, after }
    }

    #[test]
    fn between_two_marks_the_earlier_program_is_stretched() {
        let marks = [mark("forward", 0, 0), mark("backward", 100, 50), mark("optimizer", 200, 90)];
        let aligned = Aligned::of(marks.into_iter(), (300, 100));
        assert_eq!(aligned.marks.len(), 2, "the beginning is no mark");
        let all: Vec<f64> =
            [0.0, 25.0, 50.0, 70.0, 90.0, 95.0, 100.0].iter().map(|&at| aligned.before_of(at)).collect();
        assert_eq!(all, [0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0]);
    }

    #[test]
    fn a_mark_that_goes_back_is_left_out() {
        let marks = [mark("backward", 100, 50), mark("optimizer", 90, 70)];
        let aligned = Aligned::of(marks.into_iter(), (300, 100));
        assert_eq!(aligned.marks.len(), 1);
        assert_eq!(aligned.before_of(100.0), 300.0);
        assert_eq!(Aligned::of([].into_iter(), (0, 0)).before_of(3.0), 0.0);
    }
}
