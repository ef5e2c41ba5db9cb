//! Which frame of a stack names it: the program's own Python, not PyTorch's, the interpreter's or the allocator's.

use crate::model::{CachingSnapshot, Frame, StackId};

/// Whether a frame's file is Python.
#[must_use]
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "Python's own files")]
pub fn is_python(file: &str) -> bool {
    file.ends_with(".py")
}

/// Whether a frame's file is PyTorch's own. A program may itself lie in a folder called `torch`.
#[must_use]
pub fn is_torch(file: &str) -> bool {
    match file.rfind("-packages/") {
        Some(at) => file[at..].starts_with("-packages/torch/"),
        None => file.contains("/torch/"),
    }
}

/// Native frames that say nothing of what was computed, by how they begin: the interpreter, what unwinds stacks, the
/// dispatcher.
const MACHINERY: [&str; 9] =
    ["Py", "_Py", "torch::unwind", "torch::CapturedTraceback", "at::detail::", "c10::", "std::", "<unknown>", "clone3"];

/// The same, by what is in them: the allocator.
const ALLOCATOR: [&str; 4] = ["CUDACachingAllocator", "gather_with_cpp", "empty_generic", "empty_cuda"];

/// Whether a native frame says nothing of what was computed.
fn is_machinery(name: &str) -> bool {
    MACHINERY.iter().any(|word| name.starts_with(word)) || ALLOCATOR.iter().any(|word| name.contains(word))
}

/// The innermost frame of a stack that is the program's own: Python outside of PyTorch and of the standard library's
/// frozen parts. Else the innermost Python frame, else what the backward pass computes, else the innermost native frame
/// that is no machinery.
#[must_use]
pub fn own_frame(snapshot: &CachingSnapshot, stack: StackId) -> Option<&Frame> {
    let file = |frame: &Frame| snapshot.strings.get(frame.file);
    let name = |frame: &Frame| snapshot.strings.get(frame.name);
    let is_py = |frame: &&Frame| is_python(file(frame));
    let is_own = |frame: &&Frame| is_py(frame) && !is_torch(file(frame)) && !file(frame).starts_with('<');
    let frames = || snapshot.frames(stack);
    let backward = |frame: &&Frame| name(frame).contains("torch::autograd::generated::");
    let is_telling = |frame: &&Frame| !is_machinery(name(frame));
    let python = frames().find(is_own).or_else(|| frames().find(is_py));
    python.or_else(|| frames().find(backward)).or_else(|| frames().find(is_telling)).or_else(|| frames().next())
}

/// Whether a frame helps to tell stacks apart: Python that is more than the way into a module, or the operation called.
pub fn is_distinct(snapshot: &CachingSnapshot, frame: &Frame) -> bool {
    let (name, file) = (snapshot.strings.get(frame.name), snapshot.strings.get(frame.file));
    if is_python(file) {
        return !matches!(name, "_call_impl" | "_wrapped_call_impl" | "decorate_context");
    }
    name.starts_with("at::_ops::") && name.contains("::call(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_called_torch_is_not_pytorch() {
        assert!(is_torch("/v/site-packages/torch/nn/functional.py"));
        assert!(!is_torch("/opt/torch/.venv/lib/site-packages/timm/layers/mlp.py"));
        assert!(is_torch("/src/torch/nn/functional.py"));
    }

    #[test]
    fn a_stack_is_named_by_python_or_else_by_what_the_backward_pass_computes() {
        let mut snapshot = CachingSnapshot::default();
        let mut frame = |name: &str, file: &str| Frame {
            name: snapshot.strings.intern(name),
            file: snapshot.strings.intern(file),
            line: 1,
        };
        let unwind = frame("torch::unwind::unwind()", "??");
        let eval = frame("_PyEval_EvalFrameDefault", "??");
        let silu = frame("silu", "/v/site-packages/torch/nn/functional.py");
        let train = frame("step", "train.py");
        let backward = frame("torch::autograd::generated::MulBackward0::apply()", "Functions.cpp");
        let sum = frame("at::native::sum_out()", "Sum.cpp");
        for frames in [vec![unwind, eval, silu, train], vec![unwind, sum, backward], vec![unwind, eval, sum]] {
            let first = snapshot.stacks.frames.len() as u32;
            snapshot.stacks.frames.extend(&frames);
            snapshot.stacks.flat.extend(first..first + frames.len() as u32);
            snapshot.stacks.ends.push(snapshot.stacks.flat.len());
        }
        let named: Vec<Option<&Frame>> = (0..3).map(|stack| own_frame(&snapshot, StackId(stack))).collect();
        assert_eq!(named, [Some(&train), Some(&backward), Some(&sum)]);
    }
}
