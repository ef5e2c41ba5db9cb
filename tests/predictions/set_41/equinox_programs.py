"""Equinox: a decoder with experts as GShard and ST-MoE have them (every other block's MLP is eight experts, two for each token, a fixed capacity, tokens dispatched and combined by one-hot products), blocks in a list, in float32, Adam; data parallel, whole state on every device."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


def normed(x, scale):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + 1e-6) * scale).astype(x.dtype)


def turned(a):
    half = a.shape[-1] // 2
    angle = jnp.arange(a.shape[1])[:, None, None] * 10000.0 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(a.dtype), jnp.cos(angle).astype(a.dtype), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


class Dense(eqx.Module):
    up: jax.Array
    down: jax.Array

    def __init__(self, width, hidden, key):
        k = jax.random.split(key)
        self.up, self.down = jax.random.normal(k[0], (width, hidden)) * 0.02, jax.random.normal(k[1], (hidden, width)) * 0.02

    def __call__(self, x):
        return jax.nn.gelu(x @ self.up.astype(x.dtype)) @ self.down.astype(x.dtype), 0.0


class Experts(eqx.Module):
    router: jax.Array
    up: jax.Array
    down: jax.Array

    def __init__(self, width, hidden, experts, key):
        k = jax.random.split(key, 3)
        self.router = jax.random.normal(k[0], (width, experts)) * 0.02
        self.up, self.down = jax.random.normal(k[1], (experts, width, hidden)) * 0.02, jax.random.normal(k[2], (experts, hidden, width)) * 0.02

    def __call__(self, x):
        """Every text is a group; [texts, time, width]."""
        count, capacity = self.router.shape[1], int(1.25 * 2 * x.shape[1] / self.router.shape[1])
        p = jax.nn.softmax(x.astype(jnp.float32) @ self.router)
        share, ids = jax.lax.top_k(p, 2)
        share = share / share.sum(-1, keepdims=True)
        chosen = jax.nn.one_hot(ids, count)  # [texts, time, 2, experts]
        place = jnp.cumsum(chosen.swapaxes(1, 2).reshape(x.shape[0], -1, count), 1) - 1  # first choices first
        place = place.reshape(x.shape[0], 2, -1, count).swapaxes(1, 2)
        place = jnp.where(chosen > 0, place, -1.0).max(-1)
        slot = jax.nn.one_hot(place.astype("int32"), capacity)  # those over it have none
        combine = jnp.einsum("btk,btke,btkc->btec", share, chosen, slot).astype(x.dtype)
        dispatch = (combine > 0).astype(x.dtype)
        h = jnp.einsum("btec,btd->becd", dispatch, x)
        h = jax.nn.gelu(jnp.einsum("becd,edf->becf", h, self.up.astype(x.dtype)))
        h = jnp.einsum("becf,efd->becd", h, self.down.astype(x.dtype))
        balance = count * (chosen[:, :, 0].mean((0, 1)) * p.mean((0, 1))).sum()
        return jnp.einsum("btec,becd->btd", combine, h), balance


class Block(eqx.Module):
    qkv: jax.Array
    proj: jax.Array
    mlp: eqx.Module
    norm1: jax.Array
    norm2: jax.Array
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, mlp, key):
        k = jax.random.split(key)
        self.qkv, self.proj = jax.random.normal(k[0], (width, 3 * width)) * 0.02, jax.random.normal(k[1], (width, width)) * 0.02
        self.mlp, self.norm1, self.norm2, self.heads = mlp, jnp.ones(width), jnp.ones(width), heads

    def __call__(self, x):
        time = x.shape[1]
        q, k, v = (a.reshape(*x.shape[:2], self.heads, -1) for a in jnp.split(normed(x, self.norm1) @ self.qkv.astype(x.dtype), 3, -1))
        s = jnp.einsum("bqhd,bkhd->bhqk", turned(q), turned(k)).astype(jnp.float32) * q.shape[-1] ** -0.5
        p = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((time, time), bool)), s, -1e30)).astype(x.dtype)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(x.shape) @ self.proj.astype(x.dtype)
        y, balance = self.mlp(normed(x, self.norm2))
        return x + y, balance


class Decoder(eqx.Module):
    embed: jax.Array
    blocks: list
    norm: jax.Array

    def __init__(self, words, width, heads, hidden, experts, depth, key):
        k = jax.random.split(key, 2 * depth + 1)
        self.embed, self.norm = jax.random.normal(k[0], (words, width)) * 0.02, jnp.ones(width)
        mlp = lambda i, key: Experts(width, hidden, experts, key) if i % 2 else Dense(width, hidden, key)
        self.blocks = [Block(width, heads, mlp(i, k[2 * i + 1]), k[2 * i + 2]) for i in range(depth)]

    def __call__(self, tokens, compute, remat):
        x, total = self.embed.astype(compute)[tokens], 0.0
        call = lambda block, x: block(x)
        for block in self.blocks:
            x, balance = (eqx.filter_checkpoint(call) if remat else call)(block, x)
            total = total + balance
        return (normed(x, self.norm) @ self.embed.T.astype(compute)).astype(jnp.float32), total


def moe(topology, chips, batch, length=1024, words=50304, width=768, heads=12, hidden=3072, experts=8, depth=12, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Decoder(words, width, heads, hidden, experts, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-4, b2=0.95))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            logits, balance = eqx.combine(params, static)(batch["tokens"], compute, remat)
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean() + 0.01 * balance

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, {"tokens": S(), "labels": S()}), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
