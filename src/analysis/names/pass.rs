//! The pass of a training step that an op name indicates: forward, backward, recomputed.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The part of a training step that an operation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Unknown from the name.
    Unknown,
    /// Forward pass of a differentiated function.
    Forward,
    /// The backward pass.
    Backward,
    /// Forward operations recomputed in the backward pass.
    Recomputed,
}

/// The scope in which JAX names what a checkpoint computes again.
pub const AGAIN: &str = "rematted_computation";

/// Looks for [`AGAIN`]: it is asked of nearly every name of a program, several times.
static FIND_AGAIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(AGAIN));

/// The pass indicated by a framework op name. JAX: `jvp(…)` forward, `transpose(jvp(…))` backward,
/// `rematted_computation` under `jax.checkpoint`. TensorFlow: `gradient_tape/` and `gradients/` are backward.
#[must_use]
pub fn pass_of(name: &str) -> Pass {
    if FIND_AGAIN.find(name.as_bytes()).is_some() {
        return Pass::Recomputed;
    }
    let is_backward =
        || name.contains("gradient_tape/") || name.starts_with("gradients/") || name.contains("/gradients/");
    if name.contains("gradient") && is_backward() {
        return Pass::Backward;
    }
    match jvp_scope(name) {
        Some(pass) if pass.is_backward => Pass::Backward,
        Some(_) => Pass::Forward,
        None => Pass::Unknown,
    }
}

/// The part of an operation's name that JAX's automatic differentiation marks with `jvp(…)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JvpScope<'a> {
    /// Name scope: `layer_3`; empty for the outermost.
    pub scope: &'a str,
    /// Whether it belongs to the backward pass.
    pub is_backward: bool,
}

/// The scope inside `jvp(…)`; `None` for a name without it.
#[must_use]
pub fn jvp_scope(name: &str) -> Option<JvpScope<'_>> {
    // Asked of most instructions: a bracket is found faster than a searcher for the word is made.
    let at = memchr::memchr_iter(b'(', name.as_bytes()).find(|&at| name[..at].ends_with("jvp"))?;
    let rest = &name[at + 1..];
    let inner = rest.split([')', '/']).next().unwrap_or("");
    // jvp(jit(log_softmax)) only names a function; in jvp(vmap(layer_3)) the scope is innermost.
    let scope = match inner.rsplit_once('(') {
        Some((wrapper, _)) if wrapper.ends_with("jit") => "",
        Some((_, scope)) => scope,
        None => inner,
    };
    // What differentiates comes first: `jvp(vmap(transpose(jvp(…))))` is the forward pass of a loss that a gradient is part
    // of, as of forces.
    Some(JvpScope { scope, is_backward: name[..at].contains("transpose(") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_differentiated_scope_is_read_from_the_name() {
        let forward = jvp_scope("jit(train_step)/jvp(layer_3)/attn/dot_general");
        assert_eq!(forward, Some(JvpScope { scope: "layer_3", is_backward: false }));
        let backward = jvp_scope("jit(train_step)/transpose(jvp(layer_0))/mlp/dot_general");
        assert_eq!(backward, Some(JvpScope { scope: "layer_0", is_backward: true }));
        let function = jvp_scope("jit(f)/jvp(jit(log_softmax))/sub");
        assert_eq!(function, Some(JvpScope { scope: "", is_backward: false }));
        assert_eq!(jvp_scope("jit(f)/jvp(vmap(layer_3))/sub").map(|pass| pass.scope), Some("layer_3"));
        assert_eq!(jvp_scope("jit(f)/jvp()/mul"), Some(JvpScope { scope: "", is_backward: false }));
        assert_eq!(jvp_scope("params['w']"), None);
    }

    #[test]
    fn names_of_operations_tell_their_pass() {
        for (name, expected) in [
            ("jit(step)/jvp(layer_3)/attn/dot_general", Pass::Forward),
            ("jit(step)/transpose(jvp(layer_3))/attn/dot_general", Pass::Backward),
            ("jit(s)/transpose(jvp(l))/jvp(l)/checkpoint/rematted_computation/attn/exp", Pass::Recomputed),
            ("jit(s)/transpose(jvp(l))/jvp(l)/checkpoint/mlp/dot_general", Pass::Backward),
            ("jit(s)/jvp(vmap(transpose(jvp(vmap(l)))))/mlp/dot_general", Pass::Forward),
            ("jit(s)/transpose(jvp(vmap(transpose(jvp(l)))))/mlp/dot_general", Pass::Backward),
            ("gradient_tape/model/dense/MatMul", Pass::Backward),
            ("jit(step)/adam/sub", Pass::Unknown),
            ("", Pass::Unknown),
        ] {
            assert_eq!(pass_of(name), expected, "{name}");
        }
    }
}
