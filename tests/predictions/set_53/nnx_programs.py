"""Flax NNX: Stable Diffusion 1.5's U-Net (320 channels by 1, 2, 4 and 4, two residual blocks of each, 16 transformers of 8 heads that look at 77 words of 768) learns to take noise from latents of pictures of 512, weights in float32, computing in bfloat16, AdamW, data parallel."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def linear(a, b, rngs, bias=True):
    return nnx.Linear(a, b, use_bias=bias, dtype=HALF, rngs=rngs)


def conv(a, b, size, rngs, stride=1):
    return nnx.Conv(a, b, (size, size), strides=stride, dtype=HALF, rngs=rngs)


def group(width, rngs):
    return nnx.GroupNorm(width, num_groups=32, dtype=HALF, rngs=rngs)


class Residual(nnx.Module):
    def __init__(self, a, b, rngs):
        self.norm1, self.conv1, self.time = group(a, rngs), conv(a, b, 3, rngs), linear(1280, b, rngs)
        self.norm2, self.conv2 = group(b, rngs), conv(b, b, 3, rngs)
        self.short = conv(a, b, 1, rngs) if a != b else None

    def __call__(self, x, time):
        h = self.conv1(nnx.silu(self.norm1(x))) + self.time(nnx.silu(time))[:, None, None]
        h = self.conv2(nnx.silu(self.norm2(h)))
        return h + (self.short(x) if self.short else x)


class Attention(nnx.Module):
    def __init__(self, width, given, blocks, rngs):
        self.q, self.k, self.v, self.out = linear(width, width, rngs, False), linear(given, width, rngs, False), linear(given, width, rngs, False), linear(width, width, rngs)
        self.blocks = blocks

    def __call__(self, x, y):
        cut = lambda a: a.reshape(*a.shape[:2], 8, -1)
        q, k, v = cut(self.q(x)), cut(self.k(y)), cut(self.v(y))

        def part(q):
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
            return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)

        if self.blocks:  # of the queries, each made anew
            parts = jnp.moveaxis(q.reshape(q.shape[0], self.blocks, -1, *q.shape[2:]), 1, 0)
            o = jnp.moveaxis(jax.lax.map(jax.checkpoint(part), parts), 0, 1)
        else:
            o = part(q)
        return self.out(o.reshape(x.shape))


class Transformer(nnx.Module):
    def __init__(self, width, blocks, rngs):
        self.norm, self.enter, self.leave = group(width, rngs), conv(width, width, 1, rngs), conv(width, width, 1, rngs)
        self.norm1, self.norm2, self.norm3 = (nnx.LayerNorm(width, dtype=HALF, rngs=rngs) for _ in range(3))
        self.own, self.cross = Attention(width, width, blocks, rngs), Attention(width, 768, blocks, rngs)
        self.up, self.down = linear(width, 8 * width, rngs), linear(4 * width, width, rngs)

    def __call__(self, x, words):
        b, rows, columns, width = x.shape
        h = self.enter(self.norm(x)).reshape(b, rows * columns, width)
        n = self.norm1(h)
        h = h + self.own(n, n)
        h = h + self.cross(self.norm2(h), words)
        a, gate = jnp.split(self.up(self.norm3(h)), 2, -1)
        h = h + self.down(a * nnx.gelu(gate))
        return x + self.leave(h.reshape(x.shape))


class Part(nnx.Module):
    """A residual block and, but at the coarsest, its transformer."""

    def __init__(self, a, b, looks, blocks, rngs):
        self.residual = Residual(a, b, rngs)
        self.transformer = Transformer(b, blocks, rngs) if looks else None

    def __call__(self, x, time, words):
        x = self.residual(x, time)
        return self.transformer(x, words) if self.transformer else x


class UNet(nnx.Module):
    def __init__(self, base, blocks, remat, rngs):
        widths = [base, 2 * base, 4 * base, 4 * base]
        self.time1, self.time2 = linear(base, 1280, rngs), linear(1280, 1280, rngs)
        self.first = conv(4, base, 3, rngs)
        downs, shrinks, left, width = [], [], [base], base
        for level, wide in enumerate(widths):
            parts = []
            for _ in range(2):
                parts.append(Part(width, wide, level < 3, blocks, rngs))
                width = wide
                left.append(width)
            downs.append(nnx.List(parts))
            if level < 3:
                shrinks.append(conv(width, width, 3, rngs, 2))
                left.append(width)
        self.downs, self.shrinks = nnx.List(downs), nnx.List(shrinks)
        self.middle, self.last_middle = Part(width, width, True, blocks, rngs), Residual(width, width, rngs)
        ups, grows = [], []
        for level, wide in reversed(list(enumerate(widths))):
            parts = []
            for _ in range(3):
                parts.append(Part(width + left.pop(), wide, level < 3, blocks, rngs))
                width = wide
            ups.append(nnx.List(parts))
            if level:
                grows.append(conv(width, width, 3, rngs))
        self.ups, self.grows = nnx.List(ups), nnx.List(grows)
        self.norm, self.out = group(base, rngs), conv(base, 4, 3, rngs)
        self.base, self.remat = base, remat

    def __call__(self, x, times, words):
        call = nnx.remat(lambda part, x, time, words: part(x, time, words)) if self.remat else lambda part, x, time, words: part(x, time, words)
        half = self.base // 2
        angle = times[:, None] * 1e4 ** (-jnp.arange(half) / half)
        time = self.time2(nnx.silu(self.time1(jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1).astype(HALF))))
        x, words = self.first(x.astype(HALF)), words.astype(HALF)
        left = [x]
        for level, parts in enumerate(self.downs):
            for part in parts:
                x = call(part, x, time, words)
                left.append(x)
            if level < 3:
                x = self.shrinks[level](x)
                left.append(x)
        x = self.last_middle(call(self.middle, x, time, words), time)
        for i, parts in enumerate(self.ups):
            for part in parts:
                x = call(part, jnp.concatenate([x, left.pop()], -1), time, words)
            if i < 3:
                x = self.grows[i](jnp.repeat(jnp.repeat(x, 2, 1), 2, 2))
        return self.out(nnx.silu(self.norm(x))).astype(jnp.float32)


def unet(topology, chips, batch, side=64, base=320, blocks=0, remat=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: UNet(base, blocks, remat, nnx.Rngs(0)))
    graph, state = nnx.split(model)
    params = placed(nnx.to_pure_dict(state), whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, weight_decay=0.01))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)
    betas = jnp.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2

    def loss_fn(params, data):
        state = nnx.state(model)
        nnx.replace_by_pure_dict(state, params)
        left = jnp.cumprod(1 - betas)[data["times"]][:, None, None, None]
        noisy = jnp.sqrt(left) * data["latents"] + jnp.sqrt(1 - left) * data["noise"]
        return ((nnx.merge(graph, state)(noisy, data["times"], data["words"]) - data["noise"]) ** 2).mean()

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"latents": S("float32", side, side, 4), "noise": S("float32", side, side, 4), "times": S("int32"), "words": S("float32", 77, 768)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
