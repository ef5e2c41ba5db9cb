//! Changes of one program that were worked out: rules and the plan try many of them more than once.

use std::sync::{Arc, Mutex, PoisonError};

use crate::analysis::what_if::{Depth, Edit, Memory, Prediction, Trial};
use crate::model::{Bytes, Program};

/// Predictions of changes, without their blocks.
#[derive(Debug, Default)]
pub struct Tried(Mutex<Vec<(Depth, Arc<Prediction>)>>);

impl Tried {
    /// The first prediction that a test accepts.
    fn find(&self, accept: impl Fn(Depth, &Prediction) -> bool) -> Option<Arc<Prediction>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((depth, Arc::clone(&prediction)));
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

    /// As [`Self::prediction`]; `None` where more is live at once than there is memory, which takes no packing to tell.
    pub fn prediction_if_it_can_fit(
        &self,
        memory: &Memory,
        program: &Program,
        edits: &[Edit],
        depth: Depth,
    ) -> Option<Arc<Prediction>> {
        let can_fit = |least: Bytes| memory.capacity.is_some_and(|capacity| least.0 <= capacity);
        if self.like(edits).is_some_and(|known| !can_fit(known.least)) {
            return None;
        }
        self.of(edits, depth).or_else(|| {
            let trial = Trial::new(memory, program, edits);
            can_fit(trial.least()).then(|| self.predict(&trial, edits, depth))
        })
    }

    /// The fewest bytes that any packer can allocate after some changes, where that is known.
    pub fn known_least(&self, edits: &[Edit]) -> Option<Bytes> {
        self.like(edits).map(|known| known.least)
    }

    /// The fewest bytes that any packer can allocate after some changes.
    pub fn least(&self, memory: &Memory, program: &Program, edits: &[Edit]) -> Bytes {
        self.known_least(edits).unwrap_or_else(|| memory.least(program, edits))
    }
}
