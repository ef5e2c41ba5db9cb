"""Equinox: an xLSTM of mLSTM blocks in their parallel (quadratic) form, Muon of optax.contrib, on one chip."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, shardings
from recipe import Program, mesh, placed


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    q: eqx.nn.Linear
    k: eqx.nn.Linear
    v: eqx.nn.Linear
    gates: eqx.nn.Linear
    down: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, key):
        ks = jax.random.split(key, 6)
        lin = lambda a, b, key: eqx.nn.Linear(a, b, use_bias=False, key=key)
        self.norm, self.heads = eqx.nn.LayerNorm(width), heads
        self.up, self.down = lin(width, 4 * width, ks[0]), lin(2 * width, width, ks[1])
        self.q, self.k, self.v, self.gates = (lin(2 * width, n, k) for n, k in zip((2 * width, 2 * width, 2 * width, 2 * heads), ks[2:]))

    def __call__(self, x):  # [time, width]
        a, z = jnp.split(jax.vmap(self.up)(jax.vmap(self.norm)(x)), 2, -1)
        split = lambda f: jax.vmap(f)(a).reshape(a.shape[0], self.heads, -1)
        q, k, v = split(self.q), split(self.k), split(self.v)
        enter, forget = jnp.split(jax.vmap(self.gates)(a).astype(jnp.float32), 2, -1)
        total = jnp.cumsum(jax.nn.log_sigmoid(forget), 0)
        decay = total.T[:, :, None] - total.T[:, None, :] + enter.T[:, None, :]
        decay = jnp.where(jnp.tril(jnp.ones(decay.shape[-2:], bool)), decay, -jnp.inf)
        top = jax.lax.stop_gradient(decay.max(-1, keepdims=True))
        s = jnp.einsum("qhd,khd->hqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5 * jnp.exp(decay - top)
        s = s / jnp.maximum(jnp.abs(s.sum(-1, keepdims=True)), jnp.exp(-top))
        y = jnp.einsum("hqk,khd->qhd", s.astype(HALF), v).reshape(a.shape)
        return x + jax.vmap(self.down)(y * jax.nn.silu(z))


class Model(eqx.Module):
    embed: jax.Array
    blocks: list
    norm: eqx.nn.LayerNorm
    head: jax.Array
    remat: int = eqx.field(static=True)

    def __init__(self, words, width, heads, depth, remat, key):
        ks = jax.random.split(key, depth + 2)
        self.embed, self.head = jax.random.normal(ks[0], (words, width)), jax.random.normal(ks[1], (width, words))
        self.blocks = [Block(width, heads, k) for k in ks[2:]]
        self.norm, self.remat = eqx.nn.LayerNorm(width), remat

    def __call__(self, tokens):
        x = self.embed[tokens]
        for i, block in enumerate(self.blocks):
            x = (eqx.filter_checkpoint(block) if i < self.remat else block)(x)
        return jax.vmap(self.norm)(x)


def xlstm(topology, chips, batch, length=1024, words=50304, width=768, heads=4, depth=12, remat=0, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    params, static = eqx.partition(eqx.filter_eval_shape(lambda: Model(words, width, heads, depth, remat, jax.random.key(0))), lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.contrib.muon(2e-2, adam_weight_decay=0.01)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def make_step(model, opt_state, tokens):
        def loss_fn(model):
            net = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), model), static)
            return entropy(jax.vmap(net)(tokens), model.head, jnp.roll(tokens, -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(model)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(make_step, (params, opt, tokens), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
