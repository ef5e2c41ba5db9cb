"""Equinox: a diffusion model of videos; space is seen frame by frame, time pixel by pixel, through nested vmaps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, flash, kind_of_step
from recipe import Program, mesh, placed


class Attention(eqx.Module):
    """Over the first dimension of [place, channels], with whole score matrices, or queries, keys and values for a kernel."""

    norm: eqx.nn.LayerNorm
    qkv: eqx.nn.Linear
    out: eqx.nn.Linear
    heads: int

    def __init__(self, width, heads, key):
        a, b = jax.random.split(key)
        self.norm, self.heads = eqx.nn.LayerNorm(width), heads
        self.qkv, self.out = eqx.nn.Linear(width, 3 * width, key=a), eqx.nn.Linear(width, width, key=b)

    def split(self, x):
        return jnp.moveaxis(jax.vmap(self.qkv)(jax.vmap(self.norm)(x)).reshape(x.shape[0], 3, self.heads, -1), 1, 0)

    def __call__(self, x):
        q, k, v = self.split(x)
        scores = jnp.einsum("qhd,khd->hqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        mixed = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores).astype(x.dtype), v)
        return x + jax.vmap(self.out)(mixed.reshape(x.shape))


class Block(eqx.Module):
    """Two convolutions on a frame [channels, height, width], then attention over space and over time."""

    norms: list
    convs: list
    moment: eqx.nn.Linear
    skip: eqx.nn.Conv2d
    space: Attention | None
    time: Attention

    def __init__(self, old, new, attend, key):
        a, b, c, d, e, f = jax.random.split(key, 6)
        self.norms = [eqx.nn.GroupNorm(32, old), eqx.nn.GroupNorm(32, new)]
        self.convs = [eqx.nn.Conv2d(old, new, 3, padding=1, key=a), eqx.nn.Conv2d(new, new, 3, padding=1, key=b)]
        self.moment, self.skip = eqx.nn.Linear(512, new, key=c), eqx.nn.Conv2d(old, new, 1, key=d)
        self.space, self.time = Attention(new, 8, e) if attend else None, Attention(new, 8, f)

    def frame(self, x, t):
        y = self.convs[0](jax.nn.silu(self.norms[0](x))) + self.moment(t)[:, None, None]
        return self.skip(x) + self.convs[1](jax.nn.silu(self.norms[1](y)))

    def __call__(self, x, t, kernel):  # [video, frame, channels, height, width]
        x = jax.vmap(jax.vmap(self.frame, (0, None)))(x, t)
        b, f, c, h, w = x.shape
        if self.space is not None:
            x = x.reshape(b, f, c, h * w).swapaxes(2, 3)
            if kernel is None or h * w < 128:  # the kernel's block
                x = jax.vmap(jax.vmap(self.space))(x)
            else:
                q, k, v = jnp.moveaxis(jax.vmap(jax.vmap(self.space.split))(x), 2, 0)
                x = x + jax.vmap(jax.vmap(jax.vmap(self.space.out)))(kernel(q, k, v).reshape(x.shape))
            x = x.swapaxes(2, 3).reshape(b, f, c, h, w)
        x = x.transpose(0, 3, 4, 1, 2).reshape(b, h * w, f, c)
        return jax.vmap(jax.vmap(self.time))(x).reshape(b, h, w, f, c).transpose(0, 3, 4, 1, 2)


class UNet(eqx.Module):
    first: eqx.nn.Conv2d
    down: list
    middle: Block
    up: list
    last: eqx.nn.Conv2d

    def __init__(self, channels, attend, key):
        keys = iter(jax.random.split(key, 3 + 4 * len(channels)))
        self.first = eqx.nn.Conv2d(4, channels[0], 3, padding=1, key=next(keys))
        self.last = eqx.nn.Conv2d(channels[0], 4, 3, padding=1, key=next(keys))
        pairs = list(zip([channels[0], *channels], channels))
        self.down = [Block(a, b, i in attend, next(keys)) for i, (a, b) in enumerate(pairs)]
        self.middle = Block(channels[-1], channels[-1], True, next(keys))
        self.up = [Block(2 * b, a, i in attend, next(keys)) for i, (a, b) in reversed(list(enumerate(pairs)))]

    def __call__(self, x, t, kernel, remat):
        plain = lambda block, x, t: block(x, t, kernel)
        maybe = eqx.filter_checkpoint(plain) if remat else plain
        call = lambda block, x: maybe(block, x, t)
        x, kept = jax.vmap(jax.vmap(self.first))(x), []
        for block in self.down:
            x = call(block, x)
            kept.append(x)
            x = x.reshape(*x.shape[:3], x.shape[3] // 2, 2, x.shape[4] // 2, 2).mean((4, 6))
        x = call(self.middle, x)
        for block, old in zip(self.up, reversed(kept)):
            x = jnp.repeat(jnp.repeat(x, 2, 3), 2, 4)
            x = call(block, jnp.concatenate([x, old], 2))
        return jax.vmap(jax.vmap(self.last))(x)


def diffusion(topology, chips, batch, frames, size, channels, attend, remat=False, kernel=None, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = eqx.filter_eval_shape(UNet, channels, attend, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4))

    def blockwise(q, k, v):  # [video, frame, place, head, size]
        merge = lambda a: a.reshape(-1, *a.shape[2:])
        part = lambda q, k, v: flash(merge(q), merge(k), merge(v), causal=False).reshape(q.shape)
        return jax.shard_map(part, mesh=devices, in_specs=(P("batch"),) * 3, out_specs=P("batch"), check_vma=False)(q, k, v)

    def loss_fn(params, clean, key):
        a, b = jax.random.split(key)
        t, noise = jax.random.uniform(a, clean.shape[:1]), jax.random.normal(b, clean.shape)
        level = t[:, None, None, None, None]
        moment = jnp.sin(t[:, None] * jnp.exp(jnp.linspace(0, 8, 512))).astype(HALF)
        model = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), params), static)
        out = model(((1 - level) * clean + level * noise).astype(HALF), moment, kernel and blockwise, remat)
        return jnp.mean((out.astype(jnp.float32) - (noise - clean)) ** 2)

    def make_step(model, opt_state, videos, key):
        loss, grads = jax.value_and_grad(loss_fn)(model, videos, key)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    key = jax.eval_shape(lambda: jax.random.key(0))
    args = (placed(arrays, whole), placed(jax.eval_shape(transform.init, arrays), whole),
            jax.ShapeDtypeStruct((batch, frames, 4, size, size), "float32", sharding=split),
            jax.ShapeDtypeStruct((), key.dtype, sharding=whole))
    return Program(make_step, args, kind_of_step, (0, 1) if donate else ())
