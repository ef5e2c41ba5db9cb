"""Equinox: a language model of Mamba 2 layers (state space duality, in chunks); a neural differential equation on fields, solved by Runge-Kutta steps in a scan."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import entropy, kind_of_step
from recipe import Program, largest_dimension, mesh, placed


def rms(x, scale):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6) * scale).astype(x.dtype)


class SSD(eqx.Module):
    scale: jax.Array
    project: jax.Array
    conv: jax.Array
    a: jax.Array
    d: jax.Array
    bias: jax.Array
    norm: jax.Array
    out: jax.Array
    heads: int = eqx.field(static=True)
    states: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    def __init__(self, width, heads, states, chunk, key):
        inner = 2 * width
        self.heads, self.states, self.chunk = heads, states, chunk
        self.scale, self.norm = jnp.ones(width), jnp.ones(inner)
        self.project = jax.random.normal(key, (width, 2 * inner + 2 * states + heads))
        self.conv = jnp.zeros((4, inner + 2 * states))
        self.a, self.d, self.bias = jnp.zeros(heads), jnp.zeros(heads), jnp.zeros(heads)
        self.out = jax.random.normal(key, (inner, width))

    def __call__(self, x):  # one sequence, [time, width]
        time, width = x.shape
        inner, n, q = 2 * width, self.states, self.chunk
        p = rms(x, self.scale) @ self.project.astype(x.dtype)
        z, xbc, dt = p[:, :inner], p[:, inner:-self.heads], p[:, -self.heads:]
        padded = jnp.pad(xbc, ((3, 0), (0, 0)))
        xbc = jax.nn.silu(sum(padded[i:i + time] * self.conv[i].astype(x.dtype) for i in range(4)))
        dt = jax.nn.softplus(dt.astype(jnp.float32) + self.bias).reshape(-1, q, self.heads)
        u = xbc[:, :inner].reshape(-1, q, self.heads, inner // self.heads)
        b, c = xbc[:, inner:inner + n].reshape(-1, q, n), xbc[:, inner + n:].reshape(-1, q, n)
        log = jnp.cumsum(-jnp.exp(self.a) * dt, 1)  # [chunks, q, heads]
        decay = jnp.exp(jnp.where(jnp.tril(jnp.ones((q, q), bool))[None, :, :, None], log[:, :, None] - log[:, None], -jnp.inf))
        driven = u.astype(jnp.float32) * dt[..., None]
        scores = jnp.einsum("cin,cjn->cij", c, b).astype(jnp.float32)
        y = jnp.einsum("cij,cijh,cjhp->cihp", scores, decay, driven)
        last = jnp.exp(log[:, -1:] - log)
        states = jnp.einsum("cjn,cjh,cjhp->chpn", b.astype(jnp.float32), last, driven)

        def carry(h, given):
            new, whole = given
            return h * whole[:, None, None] + new, h

        _, before = jax.lax.scan(carry, jnp.zeros_like(states[0]), (states, jnp.exp(log[:, -1])))
        y = y + jnp.einsum("cin,cih,chpn->cihp", c.astype(jnp.float32), jnp.exp(log), before)
        y = (y + self.d[:, None] * u).reshape(time, inner).astype(x.dtype)
        return x + rms(y * jax.nn.silu(z), self.norm) @ self.out.astype(x.dtype)


class Mamba2(eqx.Module):
    embed: jax.Array
    layers: list
    norm: jax.Array

    def __init__(self, vocabulary, width, heads, states, chunk, depth, key):
        self.embed = jax.random.normal(key, (vocabulary, width))
        self.layers = [SSD(width, heads, states, chunk, key) for _ in range(depth)]
        self.norm = jnp.ones(width)


def mamba2(topology, chips, batch, length, depth, width, heads, states, chunk, vocabulary, remat=0, chunks=1, fsdp=False, donate=True):
    """The table is also the head, as in the published models."""
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = eqx.filter_eval_shape(Mamba2, vocabulary, width, heads, states, chunk, depth, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.adamw(6e-4)
    where = largest_dimension(devices, "batch") if fsdp else whole

    def loss_fn(params, tokens):
        model = eqx.combine(params, static)
        x = model.embed.astype(jnp.bfloat16)[tokens]
        for i, layer in enumerate(model.layers):
            call = lambda layer, x: jax.vmap(layer)(x)
            x = (eqx.filter_checkpoint(call) if i < remat else call)(layer, x)
        return entropy(rms(x, model.norm), model.embed.T, jnp.roll(tokens, -1, 1), chunks)

    def make_step(model, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(model, tokens)
        if fsdp == "state":
            grads = jax.tree_util.tree_map_with_path(lambda path, g: jax.lax.with_sharding_constraint(g, where(jax.tree_util.keystr(path), g)), grads)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    args = (placed(arrays, whole if fsdp == "state" else where), placed(jax.eval_shape(transform.init, arrays), where), jax.ShapeDtypeStruct((batch, length), "int32", sharding=split))
    outs = (jax.tree.map(lambda a: a.sharding, args[0]), jax.tree.map(lambda a: a.sharding, args[1]), None)
    return Program(make_step, args, kind_of_step, (0, 1) if donate else (), outs)


class Field(eqx.Module):
    first: eqx.nn.Conv2d
    middle: list
    last: eqx.nn.Conv2d
    norms: list

    def __init__(self, channels, width, depth, key):
        keys = jax.random.split(key, depth + 2)
        conv = lambda i, o, k: eqx.nn.Conv2d(i, o, 3, padding=1, key=k)
        self.first, self.last = conv(channels, width, keys[0]), conv(width, channels, keys[1])
        self.middle = [conv(width, width, k) for k in keys[2:]]
        self.norms = [eqx.nn.GroupNorm(8, width) for _ in keys[2:]]

    def __call__(self, x):
        x = jax.nn.silu(self.first(x))
        for conv, norm in zip(self.middle, self.norms):
            x = x + jax.nn.silu(conv(norm(x)))
        return self.last(x)


def ode(topology, chips, batch, channels=4, size=128, width=128, depth=3, steps=16, remat=False, half=False, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = eqx.filter_eval_shape(Field, channels, width, depth, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.adam(1e-3)

    def loss_fn(params, start, ends):
        if half:
            params, start = jax.tree.map(lambda a: a.astype(jnp.bfloat16), (params, start))
        slope = jax.vmap(eqx.combine(params, static))
        dt = 1 / steps

        def step(y, end):
            a = slope(y)
            b = slope(y + 0.5 * dt * a)
            c = slope(y + 0.5 * dt * b)
            d = slope(y + dt * c)
            y = y + (dt / 6 * (a + 2 * b + 2 * c + d)).astype(y.dtype)
            return y, ((y.astype(jnp.float32) - end) ** 2).mean()

        _, errors = jax.lax.scan(jax.checkpoint(step) if remat else step, start, ends)
        return errors.mean()

    def make_step(model, opt_state, start, ends):
        loss, grads = jax.value_and_grad(loss_fn)(model, start, ends)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    start = jax.ShapeDtypeStruct((batch, channels, size, size), "float32", sharding=split)
    ends = jax.ShapeDtypeStruct((steps, batch, channels, size, size), "float32", sharding=NamedSharding(devices, P(None, "batch")))
    args = (placed(arrays, whole), placed(jax.eval_shape(transform.init, arrays), whole), start, ends)
    return Program(make_step, args, kind_of_step, (0, 1) if donate else ())
