"""Equinox: a Llama-like decoder on long texts, one a device; its layers stacked, scanned and checkpointed; fully sharded, AdamW."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def turn(a):
    """Rotary embedding of [batch, time, heads, size]."""
    half = a.shape[-1] // 2
    angle = jnp.arange(a.shape[1])[:, None, None] * 500000.0 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


def linear(a, b, key):
    return eqx.nn.Linear(a, b, use_bias=False, key=key)


def on(layer, x):
    """The layer's matrix on [batch, time, features], in bfloat16."""
    return jnp.einsum("btd,fd->btf", x, layer.weight.astype(HALF))


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

    def __init__(self, width, heads, kv, hidden, key):
        ks = jax.random.split(key, 7)
        self.size = width // heads
        self.q, self.o = linear(width, width, ks[0]), linear(width, width, ks[1])
        self.k, self.v = linear(width, kv * self.size, ks[2]), linear(width, kv * self.size, ks[3])
        self.gate, self.up, self.down = linear(width, hidden, ks[4]), linear(width, hidden, ks[5]), linear(hidden, width, ks[6])
        self.norm1, self.norm2 = jnp.ones(width), jnp.ones(width)

    def __call__(self, x, attend):
        h = rms(x, self.norm1)
        q, k, v = (on(f, h).reshape(*h.shape[:2], -1, self.size) for f in (self.q, self.k, self.v))
        repeat = lambda a: jnp.repeat(a, q.shape[2] // a.shape[2], 2)
        x = x + on(self.o, attend(turn(q), repeat(turn(k)), repeat(v)).reshape(x.shape))
        h = rms(x, self.norm2)
        return x + on(self.down, jax.nn.silu(on(self.gate, h)) * on(self.up, h))


class Decoder(eqx.Module):
    embed: eqx.nn.Embedding
    blocks: Block
    norm: jax.Array
    head: eqx.nn.Linear

    def __init__(self, words, width, heads, kv, hidden, depth, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.embed = eqx.nn.Embedding(words, width, key=k1)
        self.blocks = eqx.filter_vmap(lambda k: Block(width, heads, kv, hidden, k))(jax.random.split(k2, depth))
        self.norm, self.head = jnp.ones(width), linear(width, words, k3)

    def __call__(self, tokens, attend, split):
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)
        x = jax.lax.with_sharding_constraint(self.embed.weight.astype(HALF)[tokens], split)
        body = jax.checkpoint(lambda x, layer: (eqx.combine(layer, static)(x, attend), None), prevent_cse=False)
        return rms(jax.lax.scan(body, x, dynamic)[0], self.norm)


def longtext(topology, chips, batch, length=8192, words=128256, width=2048, heads=16, kv=4, hidden=5632, depth=16, blockwise=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    model = eqx.filter_eval_shape(lambda: Decoder(words, width, heads, kv, hidden, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, largest_dimension(devices, "fsdp"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    attend = causal
    if blockwise:
        attend = jax.shard_map(flash, mesh=devices, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False)

    def train_step(params, opt_state, tokens):
        def loss_fn(params):
            net = eqx.combine(params, static)
            return entropy(net(tokens, attend, split), net.head.weight.T, jnp.roll(tokens, -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
