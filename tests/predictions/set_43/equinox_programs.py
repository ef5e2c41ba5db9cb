"""Equinox: a decoder (grouped-query attention, SwiGLU, a table and a head of its own) whose 24 blocks are made by filter_vmap, stacked, and run by jax.lax.scan over their arrays; weights and state in float32, computing in bfloat16, on one chip."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, following, kind_of_step, rms, shardings, turned
from recipe import Program, mesh, placed


class Block(eqx.Module):
    q: eqx.nn.Linear
    k: eqx.nn.Linear
    v: eqx.nn.Linear
    o: eqx.nn.Linear
    gate: eqx.nn.Linear
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    norm1: jax.Array
    norm2: jax.Array
    size: int = eqx.field(static=True)

    def __init__(self, width, heads, kv, size, hidden, key):
        keys = iter(jax.random.split(key, 7))
        lin = lambda a, b: eqx.nn.Linear(a, b, use_bias=False, key=next(keys))
        self.q, self.k, self.v, self.o = lin(width, heads * size), lin(width, kv * size), lin(width, kv * size), lin(heads * size, width)
        self.gate, self.up, self.down = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.norm1, self.norm2, self.size = jnp.ones(width), jnp.ones(width), size

    def __call__(self, x):
        on = lambda linear, a: a @ linear.weight.T.astype(HALF)
        split = lambda a: a.reshape(*a.shape[:2], -1, self.size)
        h = rms(x, self.norm1)
        q, k, v = turned(split(on(self.q, h)), 10000.0), turned(split(on(self.k, h)), 10000.0), split(on(self.v, h))
        k, v = (jnp.repeat(a, q.shape[2] // a.shape[2], 2) for a in (k, v))
        x = x + on(self.o, causal(q, k, v).reshape(*x.shape[:2], -1))
        h = rms(x, self.norm2)
        return x + on(self.down, jax.nn.silu(on(self.gate, h)) * on(self.up, h))


class Decoder(eqx.Module):
    embed: jax.Array
    blocks: Block
    norm: jax.Array
    head: jax.Array

    def __init__(self, words, width, heads, kv, size, hidden, depth, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.embed, self.head, self.norm = jax.random.normal(k1, (words, width)) * 0.02, jax.random.normal(k2, (words, width)) * 0.02, jnp.ones(width)
        self.blocks = eqx.filter_vmap(lambda key: Block(width, heads, kv, size, hidden, key))(jax.random.split(k3, depth))

    def __call__(self, tokens, remat):
        arrays, rest = eqx.partition(self.blocks, eqx.is_array)
        body = lambda x, one: (eqx.combine(one, rest)(x), None)
        x, _ = jax.lax.scan(jax.checkpoint(body) if remat else body, self.embed.astype(HALF)[tokens], arrays)
        return (rms(x, self.norm) @ self.head.T.astype(HALF)).astype(jnp.float32)


def stacked(topology, chips, batch, length=1024, words=32768, width=1536, heads=12, kv=4, size=128, hidden=4352, depth=24, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Decoder(words, width, heads, kv, size, hidden, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def make_step(params, opt_state, batch):
        """What filter_jit(donate="all-except-first") makes of it: its arrays, the rest outside."""
        @eqx.filter_value_and_grad
        def loss_fn(model):
            logits = model(batch["tokens"], remat)
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        loss, grads = loss_fn(eqx.combine(params, static))
        updates, opt_state = transform.update(eqx.filter(grads, eqx.is_array), opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(make_step, (params, opt, {"tokens": S(), "labels": S()}), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
