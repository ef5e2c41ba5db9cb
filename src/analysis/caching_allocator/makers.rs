//! Who made the allocations of each stack, from its frames: the innermost of the frames that are known decides.

use super::frames::{is_python, is_torch, own_frame};
use crate::model::{CachingSnapshot, Frame, StackId};

/// Who made an allocation, as its stack says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The optimizer's step.
    Optimizer,
    /// A collective operation.
    Communication,
    /// The backward pass.
    Backward,
    /// The forward pass.
    Forward,
    /// Building or moving the model.
    Parameter,
    /// A cache of keys and values.
    Cache,
    /// A library that keeps what it works in.
    Workspace,
    /// Anything else.
    Other,
}

/// What the frames of a stack say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackSigns {
    /// Who made its allocations.
    pub maker: Maker,
    /// Whether it is the arithmetic of a step, whose results are not kept.
    pub is_step_math: bool,
    /// Whether it is under a checkpoint.
    pub is_checkpointed: bool,
}

const OPTIMIZER: u16 = 1;
const COMMUNICATION: u16 = 2;
const BACKWARD: u16 = 4;
const MODULE: u16 = 8;
const PARAMETER: u16 = 16;
const WORKSPACE: u16 = 32;
const FUNCTIONAL: u16 = 64;
const CLOSURE: u16 = 128;
const STEP_MATH: u16 = 256;
const STATE: u16 = 512;
const CHECKPOINT: u16 = 1024;

/// What runs inside the optimizer's step although it is none of it.
const PASSES: u16 = BACKWARD | MODULE | CLOSURE;

/// What cuBLAS works in is allocated with the first product of each stream, in whichever pass that is, and kept.
const WORKSPACES: [&str; 3] = ["setWorkspaceForHandle", "getCUDABlasLtWorkspace", "getCurrentCUDABlasHandle"];

/// What one frame says.
fn frame_flags(name: &str, file: &str) -> u16 {
    let mut flags = 0;
    let mut set = |flag: u16, holds: bool| flags |= if holds { flag } else { 0 };
    set(OPTIMIZER, file.contains("torch/optim/") || name == "_init_group");
    set(STATE, name == "_init_group");
    let is_math = ["_multi_tensor_", "_single_tensor_", "_fused_"].iter().any(|start| name.starts_with(start));
    // What plain SGD makes there is its momentum, which stays.
    set(STEP_MATH, is_math && !name.ends_with("_sgd"));
    set(COMMUNICATION, file.contains("torch/distributed/") || name.contains("ProcessGroup"));
    let engine = name.contains("autograd::Engine") || name.contains("torch::autograd::generated::");
    set(BACKWARD, engine || matches!(name, "backward" | "_engine_run_backward"));
    set(MODULE, matches!(name, "forward" | "_call_impl" | "_wrapped_call_impl"));
    set(FUNCTIONAL, file.contains("torch/nn/functional.py"));
    set(CLOSURE, name == "closure" || name.ends_with("_closure"));
    set(CHECKPOINT, file.ends_with("torch/utils/checkpoint.py"));
    let moves = matches!(name, "_apply" | "convert" | "to" | "cuda") && file.contains("nn/modules/module.py");
    // A copy of a model, such as a moving average of its weights.
    let is_copy = name == "__deepcopy__" && file.contains("torch/nn/parameter.py");
    set(WORKSPACE, WORKSPACES.iter().any(|word| name.contains(word)));
    set(PARAMETER, moves || matches!(name, "reset_parameters" | "load_state_dict") || is_copy);
    flags
}

/// Whether a frame of the program's own keeps keys and values: by its file or by its own name.
fn is_cache(snapshot: &CachingSnapshot, frame: &Frame) -> bool {
    let (name, file) = (snapshot.strings.get(frame.name), snapshot.strings.get(frame.file));
    if !is_python(file) || is_torch(file) {
        return false;
    }
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    base.contains("cache") || name.contains("kv_cache") || name.contains("past_key")
}

/// Who made an allocation, from the flags of its frames, innermost first.
fn maker(flags: impl Iterator<Item = u16>) -> Maker {
    let (mut inner, mut is_step) = (0, false);
    for flags in flags {
        if flags & WORKSPACE != 0 {
            return Maker::Workspace;
        }
        if is_step {
            continue;
        }
        // A closure runs the forward and the backward pass inside the step.
        is_step = flags & OPTIMIZER != 0 && inner & OPTIMIZER == 0;
        if is_step && inner & PASSES == 0 {
            inner = OPTIMIZER;
        } else if !is_step {
            inner |= flags;
        }
    }
    let order = [
        (OPTIMIZER, Maker::Optimizer),
        (COMMUNICATION, Maker::Communication),
        (BACKWARD, Maker::Backward),
        (MODULE | FUNCTIONAL | CLOSURE, Maker::Forward),
        (PARAMETER, Maker::Parameter),
    ];
    // A closure alone is none: it only tells what is under the step.
    let inner = if is_step { inner } else { inner & !CLOSURE };
    order.into_iter().find(|(flag, _)| inner & flag != 0).map_or(Maker::Other, |(_, maker)| maker)
}

/// What the frames of each stack say.
pub fn stack_signs(snapshot: &CachingSnapshot) -> Vec<StackSigns> {
    let text = |id| snapshot.strings.get(id);
    let frames: Vec<u16> =
        snapshot.stacks.frames.iter().map(|frame| frame_flags(text(frame.name), text(frame.file))).collect();
    let signs = |row: usize| {
        let stack = StackId(row as u32);
        let flags =
            || snapshot.stacks.rows(stack).iter().map(|&frame| frames.get(frame as usize).copied().unwrap_or(0));
        let all = flags().fold(0, |all, flags| all | flags);
        let maker = match maker(flags()) {
            maker @ (Maker::Forward | Maker::Other) => {
                let own = own_frame(snapshot, stack).filter(|frame| is_cache(snapshot, frame));
                own.map_or(maker, |_| Maker::Cache)
            }
            maker => maker,
        };
        StackSigns {
            maker,
            is_step_math: all & STEP_MATH != 0 && all & STATE == 0,
            is_checkpointed: all & CHECKPOINT != 0,
        }
    };
    (0..snapshot.stacks.len()).map(signs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frames: &[(&str, &str)]) -> Maker {
        maker(frames.iter().map(|(name, file)| frame_flags(name, file)))
    }

    #[test]
    fn a_pass_inside_of_the_step_is_a_pass() {
        let step = ("step", "/x/torch/optim/adam.py");
        let call = ("_call_impl", "/x/torch/nn/modules/module.py");
        assert_eq!(of(&[("conv", "m.py"), call, ("closure", "loop.py"), step]), Maker::Forward);
        assert_eq!(of(&[("mean", "m.py"), ("closure", "loop.py"), step]), Maker::Forward);
        assert_eq!(of(&[("autograd::Engine::run", ""), ("closure", "loop.py"), step]), Maker::Backward);
        assert_eq!(of(&[("_multi_tensor_adam", "/x/torch/optim/adam.py"), step]), Maker::Optimizer);
        // Arithmetic of an optimizer of one's own is not the forward pass.
        assert_eq!(of(&[("pad", "/x/torch/nn/functional.py"), ("step", "lion.py"), step]), Maker::Optimizer);
        // A step inside of the backward pass is a step.
        assert_eq!(of(&[step, ("backward", "/x/torch/_tensor.py")]), Maker::Optimizer);
        assert_eq!(of(&[("mean", "m.py"), ("closure", "loop.py")]), Maker::Other);
        assert_eq!(of(&[("setWorkspaceForHandle", ""), call]), Maker::Workspace);
    }
}
