"""Equinox: a decoder like MPT's (ALiBi: a bias by distance on the scores, no places, no biases in its matrices, one table for both ends), blocks in a list, in float32; data parallel, whole state on every device."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


def normed(x, scale):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    return (y * scale).astype(x.dtype)


class Block(eqx.Module):
    qkv: jax.Array
    proj: jax.Array
    up: jax.Array
    down: jax.Array
    norm1: jax.Array
    norm2: jax.Array
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, key):
        k = jax.random.split(key, 4)
        make = lambda key, a, b: jax.random.normal(key, (a, b)) * 0.02
        self.qkv, self.proj = make(k[0], width, 3 * width), make(k[1], width, width)
        self.up, self.down = make(k[2], width, 4 * width), make(k[3], 4 * width, width)
        self.norm1, self.norm2, self.heads = jnp.ones(width), jnp.ones(width), heads

    def __call__(self, x, bias):
        lin = lambda a, w: a @ w.astype(a.dtype)
        q, k, v = (a.reshape(*x.shape[:2], self.heads, -1) for a in jnp.split(lin(normed(x, self.norm1), self.qkv), 3, -1))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5 + bias
        x = x + lin(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(x.dtype), v).reshape(x.shape), self.proj)
        return x + lin(jax.nn.gelu(lin(normed(x, self.norm2), self.up)), self.down)


class Decoder(eqx.Module):
    embed: jax.Array
    blocks: list
    norm: jax.Array

    def __init__(self, words, width, heads, depth, key):
        k = jax.random.split(key, depth + 1)
        self.embed, self.norm = jax.random.normal(k[0], (words, width)) * 0.02, jnp.ones(width)
        self.blocks = [Block(width, heads, key) for key in k[1:]]

    def __call__(self, tokens, compute, remat):
        x, time, heads = self.embed.astype(compute)[tokens], tokens.shape[1], self.blocks[0].heads
        far = jnp.arange(time)[:, None] - jnp.arange(time)[None]
        slopes = 2.0 ** (-8.0 * jnp.arange(1, heads + 1) / heads)
        bias = jnp.where(far >= 0, -slopes[:, None, None] * far, -1e9)[None]
        call = lambda block, x, bias: block(x, bias)
        for block in self.blocks:
            x = (eqx.filter_checkpoint(call) if remat else call)(block, x, bias)
        return (normed(x, self.norm) @ self.embed.T.astype(compute)).astype(jnp.float32)


def alibi(topology, chips, batch, length=1024, words=50368, width=1024, heads=16, depth=12, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Decoder(words, width, heads, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            logits = eqx.combine(params, static)(batch["tokens"], compute, remat)
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, {"tokens": S(), "labels": S()}), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
