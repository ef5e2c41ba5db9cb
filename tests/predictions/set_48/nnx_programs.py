"""Flax NNX: DiT-XL/2 on ImageNet at 512 (latents of 64 by 64 by 4, patches of 2, 28 layers of 1152 by nnx.scan, each in nnx.remat), weights and their average in float32, computing in bfloat16, AdamW, data parallel."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, shardings
from recipe import Program, largest_dimension, mesh, placed


def modulated(x, shift, scale):
    return x * (1 + scale[:, None]) + shift[:, None]


class Block(nnx.Module):
    def __init__(self, width, heads, rows, rngs):
        dense = lambda a, b: nnx.Linear(a, b, dtype=HALF, rngs=rngs)
        self.norm1, self.norm2 = (nnx.LayerNorm(width, epsilon=1e-6, use_bias=False, use_scale=False, dtype=HALF, rngs=rngs) for _ in range(2))
        self.qkv, self.out = dense(width, 3 * width), dense(width, width)
        self.up, self.down = dense(width, 4 * width), dense(4 * width, width)
        self.adapt = nnx.Linear(width, 6 * width, dtype=HALF, kernel_init=nnx.initializers.zeros, rngs=rngs)
        self.heads, self.rows = heads, rows

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = jnp.moveaxis(self.qkv(x).reshape(batch, length, 3, self.heads, -1), 2, 0)

        def part(q):
            s = jnp.einsum("bqhd,bkhd->bhqk", q * q.shape[-1] ** -0.5, k).astype(jnp.float32)
            return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)

        if self.rows:
            parts = jnp.moveaxis(q.reshape(batch, length // self.rows, self.rows, *q.shape[2:]), 1, 0)
            o = jnp.moveaxis(jax.lax.map(jax.checkpoint(part), parts), 0, 1)
        else:
            o = part(q)
        return self.out(o.reshape(x.shape))

    def __call__(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = jnp.split(self.adapt(nnx.silu(c)), 6, -1)
        x = x + gate1[:, None] * self.attend(modulated(self.norm1(x), shift1, scale1))
        return x + gate2[:, None] * self.down(nnx.gelu(self.up(modulated(self.norm2(x), shift2, scale2))))


def sinusoids(side, width):
    """Of the places of a square."""
    freq = 10000.0 ** (-np.arange(width // 4) / (width // 4))
    y, x = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    parts = [f(a.reshape(-1, 1) * freq) for a in (x, y) for f in (np.sin, np.cos)]
    return np.concatenate(parts, -1).astype("float32")


class DiT(nnx.Module):
    def __init__(self, side, channels, patch, width, heads, depth, classes, rows, rngs):
        self.patches = nnx.Conv(channels, width, (patch, patch), (patch, patch), dtype=HALF, rngs=rngs)
        self.time1, self.time2 = nnx.Linear(256, width, dtype=HALF, rngs=rngs), nnx.Linear(width, width, dtype=HALF, rngs=rngs)
        self.classes = nnx.Embed(classes + 1, width, dtype=HALF, rngs=rngs)

        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def create(rngs):
            return Block(width, heads, rows, rngs)

        self.blocks = create(rngs)
        self.norm = nnx.LayerNorm(width, epsilon=1e-6, use_bias=False, use_scale=False, dtype=HALF, rngs=rngs)
        self.adapt = nnx.Linear(width, 2 * width, dtype=HALF, rngs=rngs)
        self.out = nnx.Linear(width, patch * patch * 2 * channels, dtype=HALF, rngs=rngs)
        self.side, self.patch, self.channels, self.width = side, patch, channels, width

    def __call__(self, x, t, labels):
        n, p = self.side // self.patch, self.patch
        x = self.patches(x.astype(HALF)).reshape(x.shape[0], n * n, self.width) + sinusoids(n, self.width).astype(HALF)
        angle = t[:, None] * 10000.0 ** (-jnp.arange(128) / 128)
        c = self.time2(nnx.silu(self.time1(jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1).astype(HALF)))) + self.classes(labels)

        @nnx.scan(in_axes=(nnx.Carry, 0, None), out_axes=nnx.Carry)
        @nnx.remat
        def run(x, block, c):
            return block(x, c)

        x = run(x, self.blocks, c)
        shift, scale = jnp.split(self.adapt(nnx.silu(c)), 2, -1)
        x = self.out(modulated(self.norm(x), shift, scale)).astype(jnp.float32)
        return x.reshape(-1, n, n, p, p, 2 * self.channels).transpose(0, 1, 3, 2, 4, 5).reshape(-1, self.side, self.side, 2 * self.channels)


def dit(topology, chips, batch, side=64, channels=4, classes=1000, rows=0, fsdp=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: DiT(side, channels, 2, 1152, 16, 28, classes, rows, nnx.Rngs(0)))
    graph, params = nnx.split(model)
    params = placed(nnx.to_pure_dict(params), largest_dimension(devices, "data") if fsdp else whole)
    transform = optax.adamw(1e-4, weight_decay=0.0)
    opt = following(jax.eval_shape(transform.init, params), params, whole)
    kept = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000)).astype("float32")

    def loss_fn(params, batch):
        state = nnx.state(model)
        nnx.replace_by_pure_dict(state, params)
        k1, k2, k3 = jax.random.split(batch["key"], 3)
        clean = batch["latents"]
        t = jax.random.randint(k1, clean.shape[:1], 0, 1000)
        noise = jax.random.normal(k2, clean.shape)
        a = jnp.asarray(kept)[t][:, None, None, None]
        labels = jnp.where(jax.random.bernoulli(k3, 0.1, t.shape), classes, batch["labels"])
        seen = jnp.sqrt(a) * clean + jnp.sqrt(1 - a) * noise
        out = nnx.merge(graph, state)(seen, t.astype(jnp.float32), labels)
        return jnp.mean((out[..., :channels] - noise) ** 2)

    def train_step(params, opt_state, ema, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, opt_state, optax.incremental_update(params, ema, 1e-4), loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"latents": S("float32", side, side, channels), "labels": S("int32"), "key": jax.ShapeDtypeStruct((2,), "uint32", sharding=whole)}
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, (params, opt, params, data), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(opt), shardings(params), None))
