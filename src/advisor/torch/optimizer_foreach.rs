//! `torch_optimizer_foreach`: temporaries of the optimizer's step at the peak.

use super::evidence::{bytes_of, devices, finding, names, replayed, share, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{AllocationCategory, CachingAnalysis};
use crate::model::{Bytes, CachingSnapshot, StackId};

/// Least share at the main moment.
const SHARE: f64 = 0.10;

/// Optimizers whose step can be fused on a GPU.
const FUSED: [&str; 3] = ["Adam", "AdamW", "SGD"];

/// Those that take `foreach`, with the temporaries of a parameter's size that a step of a single one has at once.
const FOREACH: [(&str, u64); 12] = [
    ("Adam", 2),
    ("AdamW", 2),
    ("SGD", 1),
    ("Adagrad", 1),
    ("RMSprop", 2),
    ("NAdam", 2),
    ("RAdam", 3),
    ("Adamax", 2),
    ("Adadelta", 2),
    ("ASGD", 2),
    ("Rprop", 3),
    ("Adafactor", 2),
];

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let failure = device.failure();
        let moment = device.main_moment();
        let span = device.spans.iter().find(|span| span.start < moment && moment <= span.end);
        let asked = failure.filter(|failure| is_foreach(snapshot, failure.stack));
        let all = whole(device);
        let held = bytes_of(device, AllocationCategory::OptimizerTemp);
        let bytes = held.saturating_add(asked.map_or(0, |failure| failure.requested));
        if all == 0 || (asked.is_none() && (span.is_none() || (bytes as f64) < SHARE * all as f64)) {
            continue;
        }
        // A fused step and one of a parameter at a time have nothing of this.
        let is_temp = |row: usize| {
            let stack = device.replay.lifetimes[row].stack;
            device.categories[row].0 == AllocationCategory::OptimizerTemp
                && (!stack.is_known() || is_foreach(snapshot, stack))
        };
        if asked.is_none() && !device.live_at(moment).any(is_temp) {
            continue;
        }
        let Some(name) = optimizer_of(snapshot, device, asked.map_or(StackId::NONE, |failure| failure.stack)) else {
            continue;
        };
        let Some(&(_, singles)) = FOREACH.iter().find(|(other, _)| *other == name) else { continue };
        let before = device.replay.peaks.requested.bytes;
        let after = device.requested_peak_without(is_temp);
        // One parameter at a time, the largest needs temporaries of its own size.
        let single =
            after.max(device.requested_at_step_without(is_temp).saturating_add(singles * largest_parameter(device)));
        let can_fuse = FUSED.contains(&name.as_str());
        let mut finding = finding("torch_optimizer_foreach", device, true);
        finding.advice = Vec::new();
        if can_fuse {
            finding.advice.push("Pass `fused=True` to the optimizer: a step without temporaries".to_owned());
        }
        if asked.is_none() && single < before {
            let bytes = Bytes(before - single).short();
            finding.advice.push(format!(
                "{} `foreach=False`, which is slower: one parameter at a time needs {singles} temporaries of the largest one's size, so that the peak is {bytes} lower",
                if can_fuse { "Or pass" } else { "Pass" }
            ));
        }
        if finding.advice.is_empty() {
            continue;
        }
        finding.title = format!(
            "The optimizer's step {} {} of temporaries, {}",
            if asked.is_some() { "asks for" } else { "holds" },
            Bytes(bytes).short(),
            share(device, bytes)
        );
        if let Some(failure) = asked {
            finding.why = format!(
                "The failed request of {} is one of them: the default of {name} works on all parameters at once, with about a copy of them",
                Bytes(failure.requested).short()
            );
            finding.at_stake_bytes = Some(Bytes(bytes));
            finding.at_most = Some("about: what is live of them, and the request itself".to_owned());
        } else {
            let sentence = replayed(&mut finding, device, if can_fuse { after } else { single });
            let how = if can_fuse { "without them" } else { "with those of one parameter" };
            finding.why = format!(
                "The default of {name} works on all parameters at once, with about a copy of them. Replayed {how}, {sentence}"
            );
        }
        finding.reference = "torch.optim, docs.pytorch.org/docs/stable/optim.html";
        findings.push(finding);
    }
}

/// Whether temporaries of all parameters at once hold much of what was live as a request for one of them failed.
pub fn is_cause(snapshot: &CachingSnapshot, device: &CachingAnalysis) -> bool {
    device.failure().is_some_and(|failure| {
        let bytes = bytes_of(device, AllocationCategory::OptimizerTemp).saturating_add(failure.requested);
        is_foreach(snapshot, failure.stack) && bytes as f64 >= SHARE * whole(device) as f64
    })
}

/// Whether a stack works on many parameters at once.
fn is_foreach(snapshot: &CachingSnapshot, stack: StackId) -> bool {
    names(snapshot, stack, |name| name.starts_with("_multi_tensor_"))
}

/// The optimizer's class: from the step around the main moment, or from the file of a stack.
fn optimizer_of(snapshot: &CachingSnapshot, device: &CachingAnalysis, stack: StackId) -> Option<String> {
    let moment = device.main_moment();
    let span = device.spans.iter().find(|span| span.start < moment && moment <= span.end);
    let said = span.and_then(|span| snapshot.strings.get(span.name).strip_prefix("Optimizer.step#"));
    if let Some(name) = said {
        return Some(name.trim_end_matches(".step").to_owned());
    }
    snapshot.frames(stack).find_map(|frame| {
        let name = snapshot.strings.get(frame.name).strip_prefix("_multi_tensor_")?;
        FOREACH.iter().find(|(class, _)| class.eq_ignore_ascii_case(name)).map(|(class, _)| (*class).to_owned())
    })
}

/// Bytes of the largest parameter that is stepped: its gradient or its state, whichever the history has.
fn largest_parameter(device: &CachingAnalysis) -> u64 {
    let is_like = |row: &usize| {
        matches!(
            device.categories[*row].0,
            AllocationCategory::OptimizerState | AllocationCategory::Gradient | AllocationCategory::Parameter
        )
    };
    let live = device.live_at(device.main_moment()).filter(is_like);
    live.map(|row| device.replay.lifetimes[row].requested).max().unwrap_or(0)
}
