"""Pieces that programs of several sets are made of."""

import jax
import jax.numpy as jnp
import optax

HALF = jnp.bfloat16


def rms(x, scale):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)).astype(HALF) * scale.astype(HALF)


def causal(q, k, v):
    """Whole score matrices, [batch, time, heads, size]."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(HALF), v)


def flash(q, k, v, causal=True):
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    heads_first = lambda a: a.swapaxes(1, 2)
    out = flash_attention(heads_first(q), heads_first(k), heads_first(v), causal=causal, sm_scale=q.shape[-1] ** -0.5)
    return heads_first(out)


def entropy(x, table, labels, chunks):
    """The mean loss; in pieces of the sequence, each recomputed, where chunks > 1."""
    def piece(x, labels):
        logits = (x @ table.astype(HALF)).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).sum()

    if chunks == 1:
        return piece(x, labels) / labels.size
    parts = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
    step = jax.checkpoint(lambda total, xs: (total + piece(*xs), None))
    return jax.lax.scan(step, 0.0, (parts(x), parts(labels)))[0] / labels.size


def kind_of_nnx(path):
    """What an argument of an NNX training step is, by its path."""
    if not path.startswith("[0]"):
        return "input"
    if "rngs" in path or "count" in path:
        return "other"
    return "opt" if "opt_state" in path or "['step']" in path else "weight"
