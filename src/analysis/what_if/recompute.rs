//! Changes that keep less and compute more: checkpointed layers and scans, losses in parts, attention in blocks.

use std::collections::HashMap;

use super::edit::{LOGITS, SCAN};
use super::kept::{BLOCK, Kept};
use super::resize;
use super::state::{Sizes, State};
use crate::analysis::names::layer::Layer;
use crate::analysis::names::pass::{Pass, jvp_scope};
use crate::analysis::names::pattern::matches;
use crate::analysis::packing;

/// A layer of the forward pass.
struct Scope {
    name: String,
    layer: Option<Layer>,
    /// First time of its forward pass.
    start: u32,
    /// First time of its backward pass.
    backward: Option<u32>,
}

impl State<'_> {
    /// Checkpoints the layers whose names match, or the bodies of the scans over layers.
    pub(super) fn remat(&mut self, pattern: &str) {
        self.kinds.remat = true;
        let has_scan = self.memory.kept.stacks.iter().any(|stack| !stack.is_input);
        if matches(pattern, SCAN) && has_scan {
            self.remat_scans();
            return;
        }
        if pattern == SCAN {
            self.warn("no scan saves more for its backward pass than what each layer begins with".to_owned());
            return;
        }
        let scopes = self.scopes();
        let mut cut = 0usize;
        let mut is_checkpointed = false;
        for (n, scope) in scopes.iter().enumerate() {
            let (Some(backward), true) = (scope.backward, matches(pattern, &scope.name)) else { continue };
            // Layers are told by their number where they have one: a cast of weights may come long before its layer.
            let numbered = scope.layer.as_ref().and_then(|layer| {
                let after = Layer { stem: layer.stem.clone(), number: layer.number.saturating_add(1) };
                scopes.iter().find(|other| other.layer.as_ref() == Some(&after))
            });
            let next = numbered.or_else(|| scopes.get(n + 1)).map_or(backward, |s| s.start).min(backward);
            for i in 0..self.spans.len() {
                if self.memory.kept.passes.get(i) != Some(&Pass::Forward)
                    || self.scope_of(i).as_ref() != Some(&scope.name)
                {
                    continue;
                }
                if Kept::is_checkpointed(self.memory.family_name(i)) {
                    is_checkpointed = true;
                    continue;
                }
                let (first, last) = self.spans[i];
                let end = next.max(first);
                if first < backward && last > backward && end < backward {
                    self.spans[i].1 = end;
                    self.again.push((i as u32, backward, last));
                    cut += 1;
                }
            }
        }
        if is_checkpointed {
            self.warn(format!("layers of {pattern} are checkpointed already"));
        }
        if cut == 0 {
            self.warn(format!("nothing of a layer called {pattern} is kept from the forward for the backward pass"));
        }
    }

    /// The layer of a family, else the scope that differentiation names.
    fn scope_of(&self, family: usize) -> Option<String> {
        if let Some(layer) = self.memory.kept.layers.get(family).and_then(Option::as_ref) {
            return Some(layer.name());
        }
        let scope = jvp_scope(self.memory.family_name(family))?.scope;
        (!scope.is_empty()).then(|| scope.to_owned())
    }

    /// First events of the forward and the backward pass of each layer, in the order of the program.
    fn scopes(&self) -> Vec<Scope> {
        let mut scopes: Vec<Scope> = Vec::new();
        for (i, family) in self.memory.families.list.iter().enumerate() {
            let pass = self.memory.kept.passes.get(i).copied().unwrap_or(Pass::Unknown);
            let (Some(name), true) = (self.scope_of(i), pass != Pass::Unknown) else { continue };
            let at = 2 * family.first;
            let row = scopes.iter().position(|scope| scope.name == name).unwrap_or_else(|| {
                let layer = self.memory.kept.layers.get(i).cloned().flatten();
                scopes.push(Scope { name, layer, start: u32::MAX, backward: None });
                scopes.len() - 1
            });
            let scope = &mut scopes[row];
            if pass == Pass::Forward {
                scope.start = scope.start.min(at);
            } else {
                scope.backward = Some(scope.backward.map_or(at, |t| t.min(at)));
            }
        }
        scopes.retain(|scope| scope.start != u32::MAX);
        scopes.sort_by_key(|scope| scope.start);
        scopes
    }

    /// Of what a scan saves only the beginning of each layer stays; one layer at a time is computed again.
    fn remat_scans(&mut self) {
        let memory = self.memory;
        let backward =
            memory.kept.gradients.iter().map(|&family| 2 * memory.families.list[family as usize].first).min();
        let has_input = memory.kept.stacks.iter().any(|stack| stack.is_input);
        let mut again = 0u64;
        let mut span: Option<(u32, u32, u32)> = None;
        for stack in memory.kept.stacks.iter().filter(|stack| !stack.is_input) {
            let row = stack.family as usize;
            let family = memory.families.list[row];
            let (first, last) = self.spans[row];
            self.dropped[row] = true;
            again = again.saturating_add(family.size / u64::try_from(stack.layers).unwrap_or(1).max(1));
            span = Some(span.map_or((first, last, stack.family), |s| (s.0.min(first), s.1.max(last), s.2)));
        }
        let Some((first, last, row)) = span else { return };
        let backward = backward.filter(|at| (first..last).contains(at)).unwrap_or(last);
        self.added.push((again, backward, last, row));
        if !has_input {
            // What each layer begins with has to be kept then: as large as the smallest that is kept now.
            let least = memory.kept.stacks.iter().map(|stack| memory.families.list[stack.family as usize].size).min();
            self.added.push((least.unwrap_or(0), first, last, row));
        }
    }

    /// Computes logits, or what a pattern names, in parts.
    pub(super) fn chunk(&mut self, scope: &str, parts: i64) {
        self.kinds.parts = true;
        let memory = self.memory;
        let rows: Vec<u32> = if scope == LOGITS {
            memory.kept.logits.clone()
        } else {
            let named = |&row: &u32| matches(scope, memory.family_name(row as usize));
            (0..memory.families.list.len() as u32).filter(named).collect()
        };
        if rows.is_empty() {
            self.warn(format!("nothing is called {scope}"));
        }
        self.shrink(&rows, 1, parts);
    }

    /// Computes attention block by block.
    pub(super) fn blockwise(&mut self, scope: &str) {
        self.kinds.parts = true;
        let memory = self.memory;
        let named = |&&row: &&u32| scope == "*" || matches(scope, memory.family_name(row as usize));
        let rows: Vec<u32> = memory.kept.scores.iter().filter(named).copied().collect();
        let sequence = memory.kept.sequence.unwrap_or(BLOCK);
        if rows.is_empty() || sequence <= BLOCK {
            self.warn("there are no attention scores longer than a block".to_owned());
            return;
        }
        // Scores of a layer are computed again in its backward pass, block by block; none is kept.
        for &row in &rows {
            let kept = memory.kept.passes.get(row as usize) == Some(&Pass::Forward);
            let is_stack = memory.kept.stacks.iter().any(|stack| stack.family == row);
            if is_stack || (kept && self.outlives_its_pass(row)) {
                self.dropped[row as usize] = true;
            }
        }
        self.shrink(&rows, BLOCK, sequence);
    }

    /// Whether a family of the forward pass is there when the backward pass begins.
    fn outlives_its_pass(&self, row: u32) -> bool {
        let kept = &self.memory.kept;
        let families = &self.memory.families.list;
        let begins = families.iter().enumerate().filter(|(i, _)| kept.passes.get(*i) == Some(&Pass::Backward));
        let first = begins.map(|(_, family)| family.first).min();
        first.is_some_and(|first| families[row as usize].last > first)
    }

    /// Makes families smaller by a factor, through their first large dimension.
    fn shrink(&mut self, rows: &[u32], times: i64, of: i64) {
        for item in self.items_of(|owner| matches!(owner, super::Owner::Family(row) if rows.contains(&row))) {
            self.change(item, |node| {
                let Some(at) = (0..node.dimensions.len()).max_by_key(|&d| node.dimensions[d]) else { return false };
                let size = i128::from(node.dimensions[at]) * i128::from(times) / i128::from(of.max(1));
                resize::set_dimension(node, at, i64::try_from(size).unwrap_or(i64::MAX).max(1));
                true
            });
        }
    }

    /// Most bytes of temporaries live at once if the compiler recomputed nothing: what it computes again (`.remat` in
    /// names) is kept from the first time on.
    pub(super) fn live_without_recomputation(&self, sizes: &Sizes) -> u64 {
        let mut first_of: HashMap<String, usize> = HashMap::new();
        let mut spans: Vec<(usize, u32)> = Vec::new();
        let mut blocks = sizes.blocks.clone();
        for (i, &family) in sizes.family.iter().enumerate() {
            let root = self.memory.families.list[family as usize].root;
            let Some(instruction) = self.program.buffers.instruction_of(root) else { continue };
            let name = self.program.text.instruction_name(instruction);
            let place = self.program.buffer_index(root);
            let (plain, is_again) = match name.split_once(".remat") {
                Some((plain, _)) => (plain.to_owned(), true),
                None => (name, false),
            };
            let key = format!("{plain}{place:?}");
            match first_of.get(&key) {
                Some(&first) if is_again => {
                    spans.push((first, blocks[i].end));
                    blocks[i].size = 0;
                }
                Some(_) => {}
                None => {
                    first_of.insert(key, i);
                }
            }
        }
        for (first, end) in spans {
            blocks[first].end = blocks[first].end.max(end);
        }
        packing::most_live(&blocks).0
    }

    /// Bytes at the peak that the compiler could still compute again: what the forward pass of unrolled layers keeps.
    /// Stacks that a scan saves are out of its reach.
    pub(super) fn recomputable(&self, sizes: &Sizes) -> u64 {
        let kept = &self.memory.kept;
        let time = packing::most_live(&sizes.blocks).1;
        sizes
            .blocks
            .iter()
            .zip(&sizes.family)
            .filter(|(block, family)| {
                let is_stack = kept.stacks.iter().any(|stack| stack.family == **family);
                let is_forward = kept.passes.get(**family as usize) == Some(&Pass::Forward);
                block.start <= time && time <= block.end && is_forward && !is_stack
            })
            .fold(0, |sum: u64, (block, _)| sum.saturating_add(block.size))
    }
}
