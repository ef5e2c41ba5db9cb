"""Equinox: SigLIP of two towers of ViT-L and a text encoder of the same width, each scanned; sigmoid loss over the whole batch; half precision by casting."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, largest_dimension, mesh, placed


class Block(eqx.Module):
    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm
    attn: eqx.nn.MultiheadAttention
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, heads, key):
        k = jax.random.split(key, 3)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.attn = eqx.nn.MultiheadAttention(heads, width, key=k[0])
        self.up, self.down = eqx.nn.Linear(width, 4 * width, key=k[1]), eqx.nn.Linear(4 * width, width, key=k[2])

    def __call__(self, x):
        h = jax.vmap(self.norm1)(x)
        x = x + self.attn(h, h, h)
        return x + jax.vmap(lambda a: self.down(jax.nn.gelu(self.up(a))))(jax.vmap(self.norm2)(x))


class Tower(eqx.Module):
    embed: jax.Array
    place: jax.Array
    blocks: Block
    norm: eqx.nn.LayerNorm
    remat: bool = eqx.field(static=True)

    def __init__(self, rows, places, width, heads, depth, remat, key):
        k = jax.random.split(key, depth + 1)
        self.embed, self.place = jax.random.normal(k[0], (rows, width)), jnp.zeros((places, width))
        self.blocks = eqx.filter_vmap(lambda key: Block(width, heads, key))(k[1:])
        self.norm, self.remat = eqx.nn.LayerNorm(width), remat

    def __call__(self, x):
        x = (self.embed[x] if x.ndim == 1 else x @ self.embed) + self.place
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)
        body = lambda x, part: (eqx.combine(part, static)(x), None)
        x, _ = jax.lax.scan(jax.checkpoint(body) if self.remat else body, x, dynamic)
        x = jax.vmap(self.norm)(x).mean(0).astype(jnp.float32)
        return x / jnp.linalg.norm(x)


class SigLIP(eqx.Module):
    vision: Tower
    text: Tower
    scale: jax.Array
    bias: jax.Array


def siglip(topology, chips, batch, size=256, patch=16, length=64, words=32000, width=1024, heads=16, depth=24, remat=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def build():
        k = jax.random.split(jax.random.key(0))
        return SigLIP(Tower(3 * patch**2, (size // patch) ** 2, width, heads, depth, remat, k[0]), Tower(words, length, width, heads, depth, remat, k[1]), jnp.zeros(()), jnp.zeros(()))

    params, static = eqx.partition(eqx.filter_eval_shape(build), lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, b2=0.95, weight_decay=1e-4))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def make_step(model, opt_state, images, texts):
        def loss_fn(model):
            net = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), model), static)
            n = size // patch
            patches = images.reshape(-1, n, patch, n, patch, 3).swapaxes(2, 3).reshape(-1, n * n, 3 * patch**2).astype(HALF)
            logits = jax.vmap(net.vision)(patches) @ jax.vmap(net.text)(texts).T * jnp.exp(model.scale) + model.bias
            return -jax.nn.log_sigmoid(jnp.where(jnp.eye(logits.shape[0], dtype=bool), logits, -logits)).sum(-1).mean()

        loss, grads = jax.value_and_grad(loss_fn)(model)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    images, texts = (jax.ShapeDtypeStruct((batch, *s), d, sharding=split) for s, d in (((size, size, 3), "float32"), ((length,), "int32")))
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(make_step, (params, opt, images, texts), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
