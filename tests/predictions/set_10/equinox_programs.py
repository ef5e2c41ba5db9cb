"""Equinox: a linear recurrent network by associative scan, a diffusion transformer."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed

HALF = jnp.bfloat16


def training(create, transform, loss, data, devices, donate):
    """A training step over the arrays of an Equinox model; what is not an array stays in the closure."""
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(create)
    arrays, static = eqx.partition(model, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    state = jax.eval_shape(transform.init, arrays)

    def make_step(model, opt_state, *batch):
        value, gradients = jax.value_and_grad(lambda m: loss(eqx.combine(m, static), *batch))(model)
        updates, opt_state = transform.update(gradients, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, value

    args = (placed(arrays, whole), placed(state, whole), *[placed(x, split) for x in data])
    rule = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(make_step, args, rule, (0, 1) if donate else ())


def dense(layer, x):
    """An Equinox linear layer over the last dimension, in bfloat16."""
    y = x @ layer.weight.astype(HALF).T
    return y if layer.bias is None else y + layer.bias.astype(HALF)


def normal(x):
    x = x.astype(jnp.float32)
    return ((x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)).astype(HALF)


class Recurrent(eqx.Module):
    decay: jax.Array
    into: eqx.nn.Linear
    gate: eqx.nn.Linear
    out: eqx.nn.Linear
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, hidden, key):
        keys = jax.random.split(key, 5)
        self.decay = jnp.zeros((hidden,))
        self.into = eqx.nn.Linear(width, hidden, key=keys[0])
        self.gate = eqx.nn.Linear(width, hidden, key=keys[1])
        self.out = eqx.nn.Linear(hidden, width, key=keys[2])
        self.up = eqx.nn.Linear(width, 2 * width, key=keys[3])
        self.down = eqx.nn.Linear(2 * width, width, key=keys[4])

    def __call__(self, x):
        y = normal(x)
        driven = dense(self.into, y).astype(jnp.float32)
        decay = jnp.broadcast_to(jax.nn.sigmoid(self.decay), driven.shape)
        join = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])
        _, states = jax.lax.associative_scan(join, (decay, driven), axis=1)
        x = x + dense(self.out, states.astype(HALF) * jax.nn.silu(dense(self.gate, y)))
        return x + dense(self.down, jax.nn.gelu(dense(self.up, normal(x))))


class RecurrentNet(eqx.Module):
    enter: eqx.nn.Linear
    cells: list
    leave: eqx.nn.Linear

    def __init__(self, depth, width, hidden, key):
        keys = jax.random.split(key, depth + 2)
        self.enter = eqx.nn.Linear(16, width, key=keys[0])
        self.cells = [Recurrent(width, hidden, k) for k in keys[2:]]
        self.leave = eqx.nn.Linear(width, 10, key=keys[1])

    def __call__(self, x, remat):
        x = dense(self.enter, x.astype(HALF))
        for cell in self.cells:
            x = eqx.filter_checkpoint(cell)(x) if remat else cell(x)
        return dense(self.leave, x.mean(1))


def recurrent(topology, chips, batch, length, depth, width, hidden, remat=False, donate=False):
    devices = mesh(topology, (chips,), ("data",))

    def loss(model, signal, label):
        logits = model(signal, remat).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean()

    data = [jax.ShapeDtypeStruct((batch, length, 16), jnp.float32), jax.ShapeDtypeStruct((batch,), jnp.int32)]
    create = lambda: RecurrentNet(depth, width, hidden, jax.random.key(0))
    return training(create, optax.adamw(1e-3), loss, data, devices, donate)


class DiffusionBlock(eqx.Module):
    modulate: eqx.nn.Linear
    qkv: eqx.nn.Linear
    out: eqx.nn.Linear
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, key):
        keys = jax.random.split(key, 5)
        self.modulate = eqx.nn.Linear(width, 6 * width, key=keys[0])
        self.qkv = eqx.nn.Linear(width, 3 * width, key=keys[1])
        self.out = eqx.nn.Linear(width, width, key=keys[2])
        self.up = eqx.nn.Linear(width, 4 * width, key=keys[3])
        self.down = eqx.nn.Linear(4 * width, width, key=keys[4])
        self.heads = heads

    def __call__(self, x, condition):
        s1, b1, g1, s2, b2, g2 = jnp.split(dense(self.modulate, jax.nn.silu(condition))[:, None], 6, -1)
        batch, tokens, width = x.shape
        y = normal(x) * (1 + s1) + b1
        q, k, v = jnp.moveaxis(dense(self.qkv, y).reshape(batch, tokens, 3, self.heads, -1), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * (width // self.heads) ** -0.5
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(HALF), v).reshape(batch, tokens, width)
        x = x + g1 * dense(self.out, y)
        y = normal(x) * (1 + s2) + b2
        return x + g2 * dense(self.down, jax.nn.gelu(dense(self.up, y)))


class Diffusion(eqx.Module):
    patch: eqx.nn.Linear
    time: eqx.nn.Linear
    blocks: list
    final: eqx.nn.Linear

    def __init__(self, depth, width, heads, key):
        keys = jax.random.split(key, depth + 3)
        self.patch = eqx.nn.Linear(16, width, key=keys[0])
        self.time = eqx.nn.Linear(256, width, key=keys[1])
        self.final = eqx.nn.Linear(width, 16, key=keys[2])
        self.blocks = [DiffusionBlock(width, heads, k) for k in keys[3:]]

    def __call__(self, latents, time, remat):
        x = dense(self.patch, latents.astype(HALF))
        angles = time[:, None] * jnp.exp(jnp.linspace(0, -9, 128))
        condition = dense(self.time, jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1).astype(HALF))
        for number, block in enumerate(self.blocks):
            x = eqx.filter_checkpoint(block)(x, condition) if number < remat else block(x, condition)
        return dense(self.final, normal(x))


def diffusion(topology, chips, batch, tokens, depth, width, heads, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("data",))

    def loss(model, latents, noise, time):
        keep = time[:, None, None]
        noisy = latents * keep + noise * (1 - keep)
        return jnp.mean((model(noisy, time, remat).astype(jnp.float32) - noise) ** 2)

    data = [jax.ShapeDtypeStruct((batch, tokens, 16), jnp.float32)] * 2 + [jax.ShapeDtypeStruct((batch,), jnp.float32)]
    create = lambda: Diffusion(depth, width, heads, jax.random.key(0))
    return training(create, optax.adamw(1e-4), loss, data, devices, donate)
