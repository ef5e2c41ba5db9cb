//! Changes of one program that were worked out: rules and the plan try many of them more than once.

use std::sync::{Arc, Mutex, PoisonError};

use crate::analysis::what_if::{Depth, Edit, Memory, Prediction, Trial};
use crate::model::{Bytes, Program};

/// What is known of changes.
#[derive(Debug, Default)]
pub struct Tried {
    /// Predictions, without their blocks.
    predictions: Mutex<Vec<(Depth, Arc<Prediction>)>>,
    /// The fewest bytes after changes of which nothing else was asked for.
    least: Mutex<Vec<(Vec<Edit>, Bytes)>>,
}

impl Tried {
    /// The first prediction that a test accepts.
    fn find(&self, accept: impl Fn(Depth, &Prediction) -> bool) -> Option<Arc<Prediction>> {
        let known = self.predictions.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(depth, prediction)| accept(*depth, prediction)).map(|known| Arc::clone(&known.1))
    }

    fn of(&self, edits: &[Edit], depth: Depth) -> Option<Arc<Prediction>> {
        self.find(|known, prediction| known == depth && prediction.edits == edits)
    }

    /// A prediction of the same changes to any depth: what it says of live bytes and of packing in program order holds.
    fn like(&self, edits: &[Edit]) -> Option<Arc<Prediction>> {
        self.find(|_, prediction| prediction.edits == edits)
    }

    fn predict(&self, trial: &Trial<'_>, edits: &[Edit], depth: Depth) -> Arc<Prediction> {
        let online = self.like(edits).map(|known| known.packed_online);
        let prediction = Arc::new(trial.outlook(depth, online).without_blocks());
        self.predictions.lock().unwrap_or_else(PoisonError::into_inner).push((depth, Arc::clone(&prediction)));
        prediction
    }

    /// What changes come to, worked out once.
    pub fn prediction(&self, memory: &Memory, program: &Program, edits: &[Edit], depth: Depth) -> Arc<Prediction> {
        let known = self.of(edits, depth);
        known.unwrap_or_else(|| self.predict(&Trial::new(memory, program, edits), edits, depth))
    }

    /// As [`Self::prediction`], of changes that have been applied.
    pub fn prediction_of(&self, trial: &Trial<'_>, depth: Depth) -> Arc<Prediction> {
        self.of(trial.edits(), depth).unwrap_or_else(|| self.predict(trial, trial.edits(), depth))
    }

    /// As [`Self::prediction`]; `None` where more than `most` bytes are live at once, which takes no packing to tell.
    pub fn prediction_within(
        &self,
        memory: &Memory,
        program: &Program,
        edits: &[Edit],
        (depth, most): (Depth, Bytes),
    ) -> Option<Arc<Prediction>> {
        let can_fit = |least: Bytes| least <= most;
        if self.known_least(edits).is_some_and(|least| !can_fit(least)) {
            return None;
        }
        self.of(edits, depth).or_else(|| {
            let trial = Trial::new(memory, program, edits);
            if can_fit(trial.least()) {
                return Some(self.predict(&trial, edits, depth));
            }
            self.remember(edits, trial.least());
            None
        })
    }

    /// The fewest bytes that any packer can allocate after some changes, where that is known.
    pub fn known_least(&self, edits: &[Edit]) -> Option<Bytes> {
        let of_prediction = self.like(edits).map(|known| known.least);
        of_prediction.or_else(|| {
            let known = self.least.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(|known| known.0 == edits).map(|known| known.1)
        })
    }

    /// Keeps the fewest bytes after some changes for whoever asks next.
    pub fn remember(&self, edits: &[Edit], least: Bytes) {
        self.least.lock().unwrap_or_else(PoisonError::into_inner).push((edits.to_vec(), least));
    }

    /// The fewest bytes that any packer can allocate after some changes.
    pub fn least(&self, memory: &Memory, program: &Program, edits: &[Edit]) -> Bytes {
        self.known_least(edits).unwrap_or_else(|| {
            let least = memory.least(program, edits);
            self.remember(edits, least);
            least
        })
    }
}
