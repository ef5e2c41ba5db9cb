//! Which op names name a part of a model, and which only what transformations and the compiler add.

use super::scope;

/// Names that transformations and libraries add to op names and that name no part of a model.
const PLAIN_SCOPES: &[&str] = &[
    "while",
    "body",
    "cond",
    "scan",
    "eval_jaxpr",
    "closed_call",
    "core_call",
    "checkpoint",
    "remat",
    "pjit",
    "rematted_computation",
    "custom_vjp_call",
    "custom_jvp_call",
    "body_fun",
    "cond_fun",
    "branch_0_fun",
    "branch_1_fun",
    "shard_map",
];

/// Operations that only say where a value is or is computed again.
const PLAIN_OPERATIONS: &[&str] = &["remat2", "sharding_constraint"];

/// Whether a part of an op name names no part of a model: a scope that is added, or an operation that only says where a
/// value is.
#[must_use]
pub fn is_plain_part(part: &str) -> bool {
    PLAIN_SCOPES.contains(&part) || PLAIN_OPERATIONS.contains(&part)
}

/// Whether an op name identifies no part of the model.
#[must_use]
pub fn is_plain(op_name: &str) -> bool {
    op_name.is_empty() || !op_name.contains('/') && is_number_of(op_name) || !has_named_scope(op_name)
}

/// Whether a name is an instruction name with a number: `broadcast.128`.
#[must_use]
pub fn is_number_of(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(head, tail)| {
        !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_digit()) && !head.contains(['[', '\'', ' '])
    })
}

/// The last two scopes of an op name that name a part of the model: `layer_3/attn`; empty if none does.
#[must_use]
pub fn named_scopes(op_name: &str) -> String {
    let parts = scope::path(op_name);
    let Some((_, scopes)) = parts.split_last() else { return String::new() };
    let named: Vec<&str> = scopes.iter().copied().filter(|part| is_named(part)).collect();
    named[named.len().saturating_sub(2)..].join("/")
}

/// The function around a Pallas kernel: `flash_attention` of `…/jit(flash_attention)/pallas_call`.
#[must_use]
pub fn kernel(op_name: &str) -> Option<&str> {
    let (_, function) = op_name.strip_suffix("/pallas_call")?.rsplit_once('/')?;
    function.strip_prefix("jit(")?.strip_suffix(')').filter(|name| !name.is_empty())
}

/// Whether a scope of an op name names a part of the model.
fn has_named_scope(op_name: &str) -> bool {
    scope::path(op_name).split_last().is_some_and(|(_, scopes)| scopes.iter().any(|part| is_named(part)))
}

/// Whether a part of an op name names a part of the model.
#[must_use]
pub fn is_named(part: &str) -> bool {
    let part = part.trim();
    !part.is_empty() && !scope::is_einsum(part) && !part.contains('(') && !PLAIN_SCOPES.contains(&part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_the_name_of_the_function_around_it() {
        assert_eq!(kernel("jit(step)/jvp()/while/body/jit(flash_attention)/pallas_call"), Some("flash_attention"));
        assert_eq!(kernel("jit(step)/attention/pallas_call"), None, "a scope, which names the value itself");
        assert_eq!(kernel("jit(step)/jit(flash_attention)/mul"), None);
    }
}
