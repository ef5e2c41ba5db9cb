"""Equinox: Mamba 130M (24 layers of 768 by lax.scan, 1536 channels of 16 states, by jax.lax.associative_scan along the text) learns texts of 2048, weights and states in float32, its matrices in bfloat16, AdamW, data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, gradients, kind_of_step, rms, shardings, training_step
from recipe import Program, mesh, placed


def through(layer, x):
    y = x @ layer.weight.T.astype(HALF)
    return y if layer.bias is None else y + layer.bias.astype(HALF)


class Block(eqx.Module):
    norm: jax.Array
    enter: eqx.nn.Linear
    conv: jax.Array
    conv_bias: jax.Array
    select: eqx.nn.Linear
    step: eqx.nn.Linear
    a_log: jax.Array
    skip: jax.Array
    leave: eqx.nn.Linear

    def __init__(self, width, inner, states, rank, key):
        k = jax.random.split(key, 5)
        self.norm = jnp.ones(width)
        self.enter = eqx.nn.Linear(width, 2 * inner, use_bias=False, key=k[0])
        self.conv, self.conv_bias = jax.random.normal(k[1], (4, inner)) * 0.5, jnp.zeros(inner)
        self.select = eqx.nn.Linear(inner, rank + 2 * states, use_bias=False, key=k[2])
        self.step = eqx.nn.Linear(rank, inner, key=k[3])
        self.a_log = jnp.log(jnp.broadcast_to(jnp.arange(1.0, states + 1)[:, None], (states, inner)))
        self.skip = jnp.ones(inner)
        self.leave = eqx.nn.Linear(inner, width, use_bias=False, key=k[4])

    def __call__(self, x):
        """[batch, time, width]"""
        inner, states = self.skip.shape[0], self.a_log.shape[0]
        u, z = jnp.split(through(self.enter, rms(x, self.norm)), 2, -1)
        padded = jnp.pad(u, ((0, 0), (3, 0), (0, 0)))
        u = sum(padded[:, i : i + u.shape[1]] * self.conv[i].astype(HALF) for i in range(4)) + self.conv_bias.astype(HALF)
        u = jax.nn.silu(u)
        low, b, c = jnp.split(through(self.select, u), [self.step.in_features, self.step.in_features + states], -1)
        delta = jax.nn.softplus(through(self.step, low).astype(jnp.float32))
        keep = jnp.exp(delta[:, :, None] * -jnp.exp(self.a_log))  # [batch, time, states, inner]
        add = (delta * u.astype(jnp.float32))[:, :, None] * b.astype(jnp.float32)[..., None]
        combine = lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])
        h = jax.lax.associative_scan(combine, (keep, add), axis=1)[1]
        y = jnp.einsum("btnd,btn->btd", h, c.astype(jnp.float32)) + u.astype(jnp.float32) * self.skip
        return x + through(self.leave, y.astype(HALF) * jax.nn.silu(z))


class Mamba(eqx.Module):
    embed: jax.Array
    layers: Block
    norm: jax.Array

    def __init__(self, vocabulary, width, depth, states, key):
        a, b = jax.random.split(key)
        self.embed = jax.random.normal(a, (vocabulary, width)) * 0.02
        self.layers = eqx.filter_vmap(lambda k: Block(width, 2 * width, states, width // 16, k))(jax.random.split(b, depth))
        self.norm = jnp.ones(width)


def mamba(topology, chips, batch, length=2048, vocabulary=50280, width=768, depth=24, states=16, remat=False, micro=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Mamba(vocabulary, width, depth, states, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(6e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, tokens):
        net = eqx.combine(params, static)
        arrays, rest = eqx.partition(net.layers, eqx.is_array)
        layer = lambda x, w: (eqx.combine(w, rest)(x), None)
        x = net.embed.astype(HALF)[tokens]
        x, _ = jax.lax.scan(jax.checkpoint(layer) if remat else layer, x, arrays)
        return entropy(rms(x, net.norm), net.embed.T, jnp.roll(tokens, -1, 1), 1)

    def make_step(params, opt_state, tokens):
        loss, grads = gradients(loss_fn, devices, micro)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(make_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
