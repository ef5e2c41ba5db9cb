//! `torch_logits`: several buffers of the size of the logits around the loss.

use super::evidence::{devices, finding, is_of_a_pass, names, place, replayed, share, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{CachingAnalysis, Lifetime};
use crate::model::{Bytes, CachingSnapshot, StackId, counted};

/// Least share of one buffer, and of all of them, at the main moment.
const SHARE: (f64, f64) = (0.04, 0.15);

/// Least part of the peak that is saved.
const SAVED: f64 = 0.02;

/// Pieces that the loss is computed in.
const PIECES: u64 = 8;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let (moment, all) = (device.main_moment(), whole(device));
        let at = |row: usize| &device.replay.lifetimes[row];
        // A request that failed would be live, too.
        let asked = device.failure().map(|failure| (failure.requested, failure.stack));
        let live: Vec<usize> = device.live_at(moment).filter(|&row| is_of_a_pass(device, row)).collect();
        let of_loss = live.iter().map(|&row| (at(row).requested, at(row).stack)).chain(asked);
        let loss = of_loss.filter(|&(_, stack)| names_loss(snapshot, stack)).max_by_key(|&(bytes, _)| bytes);
        let Some((one, stack)) = loss.filter(|(bytes, _)| all > 0 && *bytes as f64 > SHARE.0 * all as f64) else {
            continue;
        };
        let is_alike = |bytes: u64| is_near(bytes, one) || is_near(bytes.saturating_mul(2), one);
        let is_logits =
            |row: usize| is_of_a_pass(device, row) && is_alike(at(row).requested) && is_near_loss(device, row);
        let alike: Vec<usize> = live.iter().copied().filter(|&row| is_logits(row)).collect();
        let asked = asked.map(|(bytes, _)| bytes).filter(|&bytes| is_alike(bytes));
        let held: u64 = alike.iter().map(|&row| at(row).requested).sum();
        let bytes = held.saturating_add(asked.unwrap_or(0));
        let count = alike.len() as u64 + u64::from(asked.is_some());
        if count < 2 || (bytes as f64) < SHARE.1 * all as f64 {
            continue;
        }
        let mut finding = finding("torch_logits", device, true);
        finding.title = format!(
            "{} of the size of the logits {} {}, {}",
            counted(count, "buffer"),
            if asked.is_some() { "would hold" } else { "hold" },
            Bytes(bytes).short(),
            share(device, bytes)
        );
        let kept = "The loss keeps the logits, their copy in f32, their softmax and their gradients at the same time";
        // The call of the loss says more than what the backward pass computes.
        let calls = alike.iter().map(|&row| at(row).stack).filter(|&stack| names_loss(snapshot, stack));
        let called = calls.filter(|&stack| has_python(snapshot, stack)).min().unwrap_or(stack);
        finding.why = format!("{kept}, in {}", place(snapshot, called));
        if let Some(asked) = asked {
            let piece = bytes / PIECES;
            let saved = bytes.saturating_sub(piece);
            finding.at_stake_bytes = Some(Bytes(saved));
            finding.why = format!(
                "{}. The failed request of {} is one of them. In {PIECES} pieces one takes about {}: {} less, and what the rest of the loss and its backward pass would take besides",
                finding.why,
                Bytes(asked).short(),
                Bytes(piece).short(),
                Bytes(saved).short()
            );
        } else {
            let after = device.requested_peak_without(is_logits).saturating_add(bytes / PIECES);
            let after = after.min(device.replay.peaks.requested.bytes);
            if after as f64 > (1.0 - SAVED) * device.replay.peaks.requested.bytes as f64 {
                continue;
            }
            let sentence = replayed(&mut finding, device, after);
            finding.why = format!("{}. Replayed with a loss in {PIECES} pieces, {sentence}", finding.why);
        }
        finding.advice = vec![
            "Compute projection and loss in chunks over the sequence, each under a checkpoint, or with a fused linear cross entropy (Liger Kernel, Apple's cut cross entropy)".to_owned(),
        ];
        finding.at_most =
            Some("about: copies in other types and the chunks' own temporaries differ between losses".to_owned());
        finding.reference = "torch.nn.functional.cross_entropy, docs.pytorch.org";
        findings.push(finding);
    }
}

/// Whether a lifetime is not one of the many blocks of a layer: logits and what follows from them are made once in a pass.
fn is_near_loss(device: &CachingAnalysis, row: usize) -> bool {
    let life = &device.replay.lifetimes[row];
    let alike = |other: &&Lifetime| {
        other.stack == life.stack && other.stack.is_known() && other.start <= life.start && other.end > life.start
    };
    let from = row.saturating_sub(4096);
    device.replay.lifetimes[from..=row].iter().filter(alike).count() <= 4
}

/// Whether a stack goes through a loss over classes.
fn names_loss(snapshot: &CachingSnapshot, stack: StackId) -> bool {
    names(snapshot, stack, |name| {
        name.contains("cross_entropy")
            || name.contains("log_softmax")
            || name.ends_with("LMLoss")
            || name == "kl_div"
            || name == "nll_loss"
    })
}

/// Whether a stack has Python frames.
fn has_python(snapshot: &CachingSnapshot, stack: StackId) -> bool {
    snapshot.frames(stack).any(|frame| snapshot.strings.get(frame.file).contains(".py"))
}

/// Whether two sizes differ by less than a hundredth.
fn is_near(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= b / 100
}
