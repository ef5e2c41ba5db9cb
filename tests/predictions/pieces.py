"""Pieces that programs of several sets are made of."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec

HALF = jnp.bfloat16


def rms(x, scale):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)).astype(HALF) * scale.astype(HALF)


def turned(a, base):
    """Queries or keys [batch, time, heads, size], turned by their positions."""
    half = a.shape[-1] // 2
    angle = jnp.arange(a.shape[1])[:, None, None] * base ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


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


def kind_of_step(path):
    """What an argument of a training step is that takes the weights, the optimizer's state and a batch."""
    return {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")


def shardings(tree):
    return jax.tree.map(lambda a: a.sharding, tree)


def following(tree, params, default):
    """An optimizer's state, placed as the parameters whose path ends its own."""
    by_name = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]}

    def one(path, leaf):
        end = jax.tree_util.keystr(path)
        found = next((param for name, param in by_name.items() if end.endswith(name) and param.shape == leaf.shape), None)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=found.sharding if found is not None else default)

    return jax.tree_util.tree_map_with_path(one, tree)


def gradients(loss_fn, devices, micro=1):
    """The loss of tokens and its gradients; summed over `micro` parts of each device's batch, one after another, where micro > 1."""
    if micro == 1:
        return jax.value_and_grad(loss_fn)

    def accumulated(params, tokens):
        length, axis = tokens.shape[1], devices.axis_names[0]
        parts = tokens.reshape(devices.size, micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
        parts = jax.lax.with_sharding_constraint(parts, NamedSharding(devices, PartitionSpec(None, axis)))

        def one(total, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, total, grads), loss

        grads, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
        return losses.mean(), grads

    return accumulated


def training_step(loss_and_gradients, transform, name="train_step"):
    """A step on tokens; `name` is the compiled program's."""

    def step(params, opt_state, tokens):
        loss, grads = loss_and_gradients(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    step.__name__ = name
    return step
