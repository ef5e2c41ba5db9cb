"""Linen: Perceiver AR on books (8192 words seen, the last 1024 are the latents; one cross-attention, then 24 layers in nn.scan), AdamW, weights in float32, computing in bfloat16, data parallel."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, gradients, kind_of_step, shardings, training_step, turned
from recipe import Program, largest_dimension, mesh, placed


class Attention(nn.Module):
    heads: int
    rows: int

    @nn.compact
    def __call__(self, x, seen):
        """Latents x, the last of the places seen."""
        width, size = x.shape[-1], x.shape[-1] // self.heads
        dense = lambda name: nn.DenseGeneral((self.heads, size), use_bias=False, dtype=HALF, name=name)
        q, k, v = dense("query")(x), turned(dense("key")(seen), 10000.0), dense("value")(seen)
        offset = seen.shape[1] - x.shape[1]
        q = turned(jnp.pad(q, ((0, 0), (offset, 0), (0, 0), (0, 0))), 10000.0)[:, offset:] if offset else turned(q, 10000.0)
        where = jnp.arange(x.shape[1]) + offset

        def attend(part):
            q, where = part
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(k.shape[1]) <= where[:, None], s, -1e30)
            return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)

        if self.rows:
            parts = q.reshape(q.shape[0], -1, self.rows, *q.shape[2:]).swapaxes(0, 1), where.reshape(-1, self.rows)
            o = jax.lax.map(jax.checkpoint(attend), parts).swapaxes(0, 1).reshape(q.shape)
        else:
            o = attend((q, where))
        return nn.DenseGeneral(width, (-2, -1), use_bias=False, dtype=HALF, name="out")(o)


class Layer(nn.Module):
    heads: int
    rows: int

    @nn.compact
    def __call__(self, x, seen):
        """`seen` comes before x; None within the latents."""
        y = nn.LayerNorm(dtype=HALF, name="norm1")(x)
        all_seen = y if seen is None else jnp.concatenate([nn.LayerNorm(dtype=HALF, name="norm_seen")(seen), y], 1)
        x = x + Attention(self.heads, self.rows, name="attention")(y, all_seen)
        y = nn.LayerNorm(dtype=HALF, name="norm2")(x)
        y = nn.gelu(nn.Dense(4 * x.shape[-1], dtype=HALF, name="up")(y))
        return x + nn.Dense(x.shape[-1], dtype=HALF, name="down")(y), None


class Perceiver(nn.Module):
    words: int
    width: int
    heads: int
    depth: int
    latents: int
    rows: int
    remat: bool

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.words, self.width, dtype=HALF, name="embed")(tokens)
        layer = nn.remat(Layer, prevent_cse=False) if self.remat else Layer
        x, _ = Layer(self.heads, self.rows, name="cross")(x[:, -self.latents:], x[:, : -self.latents])
        scanned = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=nn.broadcast, length=self.depth)
        x, _ = scanned(self.heads, self.rows, name="layers")(x, None)
        return nn.LayerNorm(dtype=HALF, name="norm")(x)


def perceiver(topology, chips, batch, length=8192, latents=1024, words=32768, width=1024, heads=16, depth=24, rows=0, micro=1, remat=False, fsdp=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Perceiver(words, width, heads, depth, latents, rows, remat)
    params = {"net": jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, length), "int32")))["params"], "head": jax.ShapeDtypeStruct((width, words), "float32")}
    params = placed(params, largest_dimension(devices, "data") if fsdp else whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, tokens):
        x = net.apply({"params": params["net"]}, tokens)
        return entropy(x, params["head"], jnp.roll(tokens, -1, 1)[:, -latents:], 1)

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    step = training_step(gradients(loss_fn, devices, micro), transform)
    return Program(step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
