"""Equinox: a transformer over a customer's events, its blocks in a list, each checkpointed already, with a policy and prevent_cse=False though there is no scan."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class Block(eqx.Module):
    norm1: eqx.nn.RMSNorm
    norm2: eqx.nn.RMSNorm
    q: eqx.nn.Linear
    k: eqx.nn.Linear
    v: eqx.nn.Linear
    o: eqx.nn.Linear
    gate: eqx.nn.Linear
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, key):
        ks = jax.random.split(key, 7)
        lin = lambda a, b, key: eqx.nn.Linear(a, b, use_bias=False, key=key)
        self.norm1, self.norm2, self.heads = eqx.nn.RMSNorm(width), eqx.nn.RMSNorm(width), heads
        self.q, self.k, self.v, self.o = (lin(width, width, k) for k in ks[:4])
        self.gate, self.up, self.down = lin(width, 3 * width, ks[4]), lin(width, 3 * width, ks[5]), lin(3 * width, width, ks[6])

    def __call__(self, x):  # [time, width]
        h = jax.vmap(self.norm1)(x)
        q, k, v = (jax.vmap(f)(h).reshape(x.shape[0], self.heads, -1) for f in (self.q, self.k, self.v))
        s = jnp.einsum("qhd,khd->hqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        p = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones(s.shape[1:], bool)), s, -1e30)).astype(x.dtype)
        x = x + jax.vmap(self.o)(jnp.einsum("hqk,khd->qhd", p, v).reshape(x.shape))
        h = jax.vmap(self.norm2)(x)
        return x + jax.vmap(self.down)(jax.nn.silu(jax.vmap(self.gate)(h)) * jax.vmap(self.up)(h))


class Events(eqx.Module):
    kinds: jax.Array
    amounts: eqx.nn.Linear
    blocks: list
    leave: eqx.nn.Linear
    policy: str = eqx.field(static=True)
    prevent: bool = eqx.field(static=True)

    def __init__(self, words, width, heads, depth, policy, prevent, key):
        ks = jax.random.split(key, depth + 3)
        self.kinds, self.amounts, self.leave = jax.random.normal(ks[0], (words, width)), eqx.nn.Linear(16, width, key=ks[1]), eqx.nn.Linear(width, 512, key=ks[2])
        self.blocks, self.policy, self.prevent = [Block(width, heads, k) for k in ks[3:]], policy, prevent

    def __call__(self, kinds, amounts):
        x = self.kinds[kinds] + jax.vmap(self.amounts)(amounts)
        policy = getattr(jax.checkpoint_policies, self.policy) if self.policy else None
        for block in self.blocks:
            x = eqx.filter_checkpoint(block, policy=policy, prevent_cse=self.prevent)(x)
        return jax.vmap(self.leave)(x)


def events(topology, chips, batch, length=1024, words=20000, width=1024, heads=16, depth=10, policy="dots_with_no_batch_dims_saveable", prevent=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    params, static = eqx.partition(eqx.filter_eval_shape(lambda: Events(words, width, heads, depth, policy, prevent, jax.random.key(0))), lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.adamw(1e-4)
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def step(model, opt_state, batch):
        def loss_fn(model):
            net = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), model), static)
            logits = jax.vmap(net)(batch["kinds"], batch["amounts"].astype(HALF)).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["next"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(model)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, length, *s), d, sharding=split)
    return Program(step, (params, opt, {"kinds": S("int32"), "amounts": S("float32", 16), "next": S("int32")}), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
