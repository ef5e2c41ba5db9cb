"""Equinox: a masked diffusion language model like MDLM's or SEDD's medium one: a transformer that sees both ways, its norms shifted, scaled and its outcomes gated by the noise's level (adaLN), blocks in a list; data parallel, whole state on every device."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array | None

    def __init__(self, a, b, key, bias=True):
        self.weight, self.bias = jax.random.normal(key, (b, a)) * 0.02, jnp.zeros(b) if bias else None

    def __call__(self, x):
        y = jnp.einsum("...d,fd->...f", x, self.weight.astype(x.dtype))
        return y if self.bias is None else y + self.bias.astype(x.dtype)


def normed(x, scale):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return (y * scale).astype(x.dtype)


def turned(a):
    half = a.shape[-1] // 2
    angle = jnp.arange(a.shape[1])[:, None, None] * 10000.0 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(a.dtype), jnp.cos(angle).astype(a.dtype), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


class Block(eqx.Module):
    modulate: Linear
    qkv: Linear
    proj: Linear
    up: Linear
    down: Linear
    norm1: jax.Array
    norm2: jax.Array
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, cond, key):
        k = jax.random.split(key, 5)
        self.modulate, self.qkv, self.proj = Linear(cond, 6 * width, k[0]), Linear(width, 3 * width, k[1], False), Linear(width, width, k[2], False)
        self.up, self.down = Linear(width, 4 * width, k[3]), Linear(4 * width, width, k[4])
        self.norm1, self.norm2, self.heads = jnp.ones(width), jnp.ones(width), heads

    def __call__(self, x, cond):
        shift1, scale1, gate1, shift2, scale2, gate2 = jnp.split(self.modulate(cond)[:, None], 6, -1)
        h = normed(x, self.norm1) * (1 + scale1) + shift1
        q, k, v = (a.reshape(*x.shape[:2], self.heads, -1) for a in jnp.split(self.qkv(h), 3, -1))
        s = jnp.einsum("bqhd,bkhd->bhqk", turned(q), turned(k)).astype(jnp.float32) * q.shape[-1] ** -0.5
        x = x + gate1 * self.proj(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(x.dtype), v).reshape(x.shape))
        h = normed(x, self.norm2) * (1 + scale2) + shift2
        return x + gate2 * self.down(jax.nn.gelu(self.up(h)))


class Diffusion(eqx.Module):
    embed: jax.Array
    level1: Linear
    level2: Linear
    blocks: list
    norm: jax.Array
    last: Linear
    head: Linear

    def __init__(self, words, width, heads, cond, depth, key):
        k = jax.random.split(key, depth + 5)
        self.embed, self.norm = jax.random.normal(k[0], (words, width)) * 0.02, jnp.ones(width)
        self.level1, self.level2, self.last, self.head = Linear(256, cond, k[1]), Linear(cond, cond, k[2]), Linear(cond, 2 * width, k[3]), Linear(width, words, k[4])
        self.blocks = [Block(width, heads, cond, key) for key in k[5:]]

    def __call__(self, tokens, level, compute, remat):
        angle = level[:, None] * jnp.exp(-jnp.arange(128) * jnp.log(10000.0) / 128)
        cond = self.level2(jax.nn.silu(self.level1(jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1).astype(compute))))
        cond, x = jax.nn.silu(cond), self.embed.astype(compute)[tokens]
        call = lambda block, x, cond: block(x, cond)
        for block in self.blocks:
            x = (eqx.filter_checkpoint(call) if remat else call)(block, x, cond)
        shift, scale = jnp.split(self.last(cond)[:, None], 2, -1)
        return self.head(normed(x, self.norm) * (1 + scale) + shift).astype(jnp.float32)


def mdlm(topology, chips, batch, length=1024, words=50258, width=1024, heads=16, cond=128, depth=24, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Diffusion(words, width, heads, cond, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.0))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            level = batch["time"]
            tokens = jnp.where(batch["noise"] < level[:, None], words - 1, batch["tokens"])
            logits = eqx.combine(params, static)(tokens, -jnp.log1p(-(1 - 1e-3) * level), compute, remat)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["tokens"])
            return (jnp.where(tokens == words - 1, losses, 0) / level[:, None]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"tokens": S("int32", length), "noise": S("float32", length), "time": S("float32")}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
