"""Flax NNX: DiT-XL/2 (28 layers of 1152, 16 heads of 72, one after another) learns to take noise from the latents of pictures of 512 (1024 patches), weights in float32, computing in bfloat16, AdamW, data parallel."""

import functools

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, flash, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def linear(a, b, rngs):
    return nnx.Linear(a, b, dtype=HALF, rngs=rngs)


def plain(q, k, v):
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)


def normed(x):
    y = x.astype(jnp.float32)
    y = y - y.mean(-1, keepdims=True)
    return (y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)).astype(HALF)


def changed(x, shift, scale):
    return normed(x) * (1 + scale[:, None]) + shift[:, None]


class Layer(nnx.Module):
    def __init__(self, width, heads, rngs):
        self.modulation = linear(width, 6 * width, rngs)
        self.qkv, self.out = linear(width, 3 * width, rngs), linear(width, width, rngs)
        self.up, self.down = linear(width, 4 * width, rngs), linear(4 * width, width, rngs)
        self.heads = heads

    def __call__(self, x, c, attend):
        shift1, scale1, gate1, shift2, scale2, gate2 = jnp.split(self.modulation(nnx.silu(c)), 6, -1)
        qkv = self.qkv(changed(x, shift1, scale1)).reshape(*x.shape[:2], 3, self.heads, -1)
        o = attend(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2])
        x = x + gate1[:, None] * self.out(o.reshape(x.shape))
        return x + gate2[:, None] * self.down(nnx.gelu(self.up(changed(x, shift2, scale2))))


class DiT(nnx.Module):
    def __init__(self, width, heads, depth, places, rngs):
        self.patches = linear(16, width, rngs)
        self.time1, self.time2 = linear(256, width, rngs), linear(width, width, rngs)
        self.classes = nnx.Embed(1001, width, dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, heads, rngs) for _ in range(depth)])
        self.modulation, self.out = linear(width, 2 * width, rngs), linear(width, 32, rngs)

    def __call__(self, latents, times, labels, attend):
        b, side = latents.shape[0], latents.shape[1] // 2
        x = latents.astype(HALF).reshape(b, side, 2, side, 2, 4).swapaxes(2, 3).reshape(b, side * side, 16)
        width = self.time2.out_features
        half = jnp.arange(width // 4) / (width // 4)
        lines = jnp.arange(side)[:, None] * 1e4**-half
        lines = jnp.concatenate([jnp.sin(lines), jnp.cos(lines)], -1).astype(HALF)
        places = jnp.concatenate([jnp.repeat(lines, side, 0), jnp.tile(lines, (side, 1))], -1)
        x = self.patches(x) + places
        angle = times[:, None] * 1e4 ** (-jnp.arange(128) / 128)
        c = self.time2(nnx.silu(self.time1(jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1).astype(HALF)))) + self.classes(labels)
        for layer in self.layers:
            x = layer(x, c, attend)
        shift, scale = jnp.split(self.modulation(nnx.silu(c)), 2, -1)
        x = self.out(changed(x, shift, scale)).astype(jnp.float32)
        return x.reshape(b, side, side, 2, 2, 8).swapaxes(2, 3).reshape(b, 2 * side, 2 * side, 8)


def dit(topology, chips, batch, side=64, width=1152, heads=16, depth=28, blocks=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: DiT(width, heads, depth, side * side // 4, nnx.Rngs(0)))
    graph, state = nnx.split(model)
    params = placed(nnx.to_pure_dict(state), whole)
    transform = optax.adamw(1e-4, weight_decay=0.0)
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)
    betas = jnp.linspace(1e-4, 0.02, 1000)

    @functools.partial(jax.shard_map, mesh=devices, in_specs=(P("data"),) * 3, out_specs=P("data"), check_vma=False)
    def kernel(q, k, v):
        return flash(q, k, v, causal=False)

    def loss_fn(params, data):
        state = nnx.state(model)
        nnx.replace_by_pure_dict(state, params)
        left = jnp.cumprod(1 - betas)[data["times"]][:, None, None, None]
        noisy = jnp.sqrt(left) * data["latents"] + jnp.sqrt(1 - left) * data["noise"]
        out = nnx.merge(graph, state)(noisy, data["times"], data["labels"], kernel if blocks else plain)
        noise, spread = jnp.split(out, 2, -1)
        return ((noise - data["noise"]) ** 2).mean() + 0.001 * (spread**2).mean()

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"latents": S("float32", side, side, 4), "noise": S("float32", side, side, 4), "times": S("int32"), "labels": S("int32")}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
