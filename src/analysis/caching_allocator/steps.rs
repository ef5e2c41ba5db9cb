//! Steps of a training run, from the optimizer's phases, and what each step leaves behind.

use std::collections::HashMap;

use super::replay::{Curves, Lifetime};
use crate::model::{CachingDevice, CachingSnapshot, StackId, StringId};

/// Growth of one step may be this many times that of another in a leak.
const EVEN: f64 = 1.5;

/// Steps after the first that a leak must show in.
const MIN_STEPS: usize = 3;

/// A phase of the program: its events are those of the moments after `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The moment before its first event.
    pub start: u32,
    /// The moment after its last event.
    pub end: u32,
    /// Name.
    pub name: StringId,
}

/// Steps of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps {
    /// Requested bytes that are live after each step.
    pub live_at_end: Vec<u64>,
    /// Change from one step to the next.
    pub growth: Vec<i64>,
    /// Bytes that every step after the second leaves behind; 0 if there is no leak.
    pub leak: u64,
    /// Who allocates what every step leaves behind: (stack, bytes in each step, allocations), largest first.
    pub blamed: Vec<(StackId, u64, u64)>,
}

/// Phases of a device in order of time; none where events have no times.
pub fn spans(snapshot: &CachingSnapshot, device: &CachingDevice, wanted: impl Fn(&str) -> bool) -> Vec<Span> {
    let Some(times) = snapshot.events.time_us.get(device.events.clone()) else { return Vec::new() };
    let mut open: HashMap<StringId, i64> = HashMap::new();
    let mut spans = Vec::new();
    for annotation in snapshot.annotations.iter().filter(|annotation| annotation.device == device.index) {
        if !wanted(snapshot.strings.get(annotation.name)) {
            continue;
        }
        if annotation.is_start {
            open.insert(annotation.name, annotation.time_us);
        } else if let Some(start) = open.remove(&annotation.name) {
            let start = times.partition_point(|&time| time < start) as u32;
            let end = times.partition_point(|&time| time <= annotation.time_us) as u32;
            spans.push(Span { start, end: end.max(start), name: annotation.name });
        }
    }
    spans.sort_by_key(|span| (span.start, span.end));
    spans
}

/// Whether a phase is a step of an optimizer.
pub fn is_optimizer_step(name: &str) -> bool {
    name.starts_with("Optimizer.step")
}

/// What the steps leave behind; `None` without steps.
pub fn steps(spans: &[Span], curves: &Curves, lifetimes: &[Lifetime]) -> Option<Steps> {
    if spans.is_empty() {
        return None;
    }
    let at = |span: &Span| curves.requested.get(span.end as usize).copied().unwrap_or(0);
    let live_at_end: Vec<u64> = spans.iter().map(at).collect();
    let growth: Vec<i64> = live_at_end.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as i64).collect();
    let leak = leak(&growth);
    let blamed = if leak > 0 { blamed(spans, lifetimes) } else { Vec::new() };
    Some(Steps { live_at_end, growth, leak, blamed })
}

/// Bytes a step of a leak. The first difference holds the optimizer's state, which is made in the first step.
fn leak(growth: &[i64]) -> u64 {
    let later = growth.get(1..).unwrap_or_default();
    let (Some(&least), Some(&most)) = (later.iter().min(), later.iter().max()) else { return 0 };
    let is_leak = later.len() >= MIN_STEPS && least > 0 && most as f64 <= EVEN * least as f64;
    if is_leak { least as u64 } else { 0 }
}

/// Stacks whose allocations of every step outlive the two steps after it, in equal number.
fn blamed(spans: &[Span], lifetimes: &[Lifetime]) -> Vec<(StackId, u64, u64)> {
    // The first step is not like the others, and of the last two nothing can be said.
    let judged = 1..spans.len().saturating_sub(2);
    let mut found: HashMap<StackId, Vec<(u64, u64)>> = HashMap::new();
    for lifetime in lifetimes {
        let step = spans.partition_point(|span| span.end < lifetime.start);
        if !judged.contains(&step) || spans.get(step + 2).is_none_or(|later| lifetime.end <= later.end) {
            continue;
        }
        let counts = found.entry(lifetime.stack).or_insert_with(|| vec![(0, 0); judged.len()]);
        if let Some((bytes, count)) = counts.get_mut(step - judged.start) {
            *bytes += lifetime.requested;
            *count += 1;
        }
    }
    let every = |(&stack, counts): (&StackId, &Vec<(u64, u64)>)| {
        let &(bytes, count) = counts.first()?;
        counts.iter().all(|&(_, other)| other == count && count > 0).then_some((stack, bytes, count))
    };
    let mut blamed: Vec<(StackId, u64, u64)> = found.iter().filter_map(every).collect();
    blamed.sort_by_key(|&(stack, bytes, _)| (std::cmp::Reverse(bytes), stack));
    blamed
}
