"""Equinox: Llama 3.2 1B's widths, layers made by filter_vmap and scanned; FSDP."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


FLASH = []


class Attention(eqx.Module):
    q: eqx.nn.Linear
    k: eqx.nn.Linear
    v: eqx.nn.Linear
    o: eqx.nn.Linear
    rope: eqx.nn.RotaryPositionalEmbedding
    heads: int = eqx.field(static=True)
    kv: int = eqx.field(static=True)

    def __init__(self, width, heads, kv, key):
        a, b, c, d = jax.random.split(key, 4)
        size = width // heads
        lin = lambda i, o, key: eqx.nn.Linear(i, o, use_bias=False, key=key)
        self.q, self.k, self.v, self.o = lin(width, width, a), lin(width, kv * size, b), lin(width, kv * size, c), lin(width, width, d)
        self.rope, self.heads, self.kv = eqx.nn.RotaryPositionalEmbedding(size), heads, kv

    def __call__(self, x):
        cut = lambda w, n: jax.vmap(w)(x).reshape(x.shape[0], n, -1)
        turn = lambda a: jax.vmap(self.rope, 1, 1)(a).astype(x.dtype)
        q, k, v = turn(cut(self.q, self.heads)), turn(cut(self.k, self.kv)), cut(self.v, self.kv)
        if FLASH:
            from pieces import flash
            wide = lambda a: jnp.repeat(a, self.heads // a.shape[1], 1)
            one = lambda q, k, v: flash(q[None], k[None], v[None])[0]
            o = jax.shard_map(one, mesh=FLASH[0], in_specs=(P(),) * 3, out_specs=P(), check_vma=False)(q, wide(k), wide(v))
        else:
            o = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return jax.vmap(self.o)(o.reshape(x.shape))


class Layer(eqx.Module):
    attention: Attention
    norm1: eqx.nn.RMSNorm
    norm2: eqx.nn.RMSNorm
    gate: eqx.nn.Linear
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, heads, kv, hidden, key):
        a, b, c, d = jax.random.split(key, 4)
        lin = lambda i, o, key: eqx.nn.Linear(i, o, use_bias=False, key=key)
        self.attention = Attention(width, heads, kv, a)
        self.norm1, self.norm2 = eqx.nn.RMSNorm(width, use_bias=False), eqx.nn.RMSNorm(width, use_bias=False)
        self.gate, self.up, self.down = lin(width, hidden, b), lin(width, hidden, c), lin(hidden, width, d)

    def __call__(self, x):
        x = x + self.attention(jax.vmap(self.norm1)(x))
        h = jax.vmap(self.norm2)(x)
        return x + jax.vmap(self.down)(jax.nn.silu(jax.vmap(self.gate)(h)) * jax.vmap(self.up)(h))


class Llama(eqx.Module):
    embed: eqx.nn.Embedding
    layers: Layer
    norm: eqx.nn.RMSNorm

    def __init__(self, vocabulary, width, heads, kv, hidden, depth, key):
        a, b = jax.random.split(key)
        self.embed = eqx.nn.Embedding(vocabulary, width, key=a)
        self.layers = eqx.filter_vmap(lambda k: Layer(width, heads, kv, hidden, k))(jax.random.split(b, depth))
        self.norm = eqx.nn.RMSNorm(width, use_bias=False)

    def __call__(self, tokens, remat):
        x = jax.vmap(self.embed)(tokens)
        arrays, static = eqx.partition(self.layers, eqx.is_array)

        def one(x, arrays):
            return eqx.combine(arrays, static)(x), None

        x, _ = jax.lax.scan(jax.checkpoint(one) if remat else one, x, arrays)
        return jax.vmap(self.norm)(x)


def llama(topology, chips, batch, length, vocabulary=128256, width=2048, heads=32, kv=8, hidden=8192, depth=16, remat=False, chunks=1, state="float32", donate=True, flash=False):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    if flash:
        FLASH.append(devices)
    net = eqx.filter_eval_shape(Llama, vocabulary, width, heads, kv, hidden, depth, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    arrays = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, state), arrays), largest_dimension(devices, "fsdp"))
    transform = optax.adamw(1e-4)
    opt = following(jax.eval_shape(transform.init, arrays), arrays, NamedSharding(devices, P()))

    def loss_fn(params, tokens):
        model = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), params), static)
        hidden = jax.vmap(lambda t: model(t, remat), spmd_axis_name="fsdp" if flash else None)(tokens)
        hidden = jax.lax.with_sharding_constraint(hidden, split)
        labels = jnp.roll(tokens, -1, 1)

        def piece(h, y):
            logits = (h @ model.embed.weight.T).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).sum()

        if chunks == 1:
            return piece(hidden, labels) / labels.size
        parts = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
        step = jax.checkpoint(lambda total, xs: (total + piece(*xs), None))
        return jax.lax.scan(step, 0.0, (parts(hidden), parts(labels)))[0] / labels.size

    def make_step(model, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(model, tokens)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(make_step, (arrays, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(arrays), shardings(opt), None))
