"""Linen: Whisper large v3 (128 bands of 30 s, 1500 places, 32 layers of 1280 that hear and 32 that write, each by nn.scan, 448 words) learns to write down speech, weights in float32, computing in bfloat16, AdamW, data parallel."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, kind_of_step, shardings
from recipe import Program, mesh, placed


def norm(name):
    return nn.LayerNorm(epsilon=1e-5, dtype=HALF, name=name)


class Attention(nn.Module):
    heads: int
    causal: bool
    blocks: int  # queries are taken in so many blocks, each made anew

    @nn.compact
    def __call__(self, x, y):
        width = x.shape[-1]
        cut = lambda a: a.reshape(*a.shape[:2], self.heads, -1)
        q = cut(nn.Dense(width, dtype=HALF, name="q")(x)) * (width // self.heads) ** -0.5
        k, v = cut(nn.Dense(width, use_bias=False, dtype=HALF, name="k")(y)), cut(nn.Dense(width, dtype=HALF, name="v")(y))

        def part(q, at):
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32)
            if self.causal:
                s = jnp.where(at[:, None] >= jnp.arange(k.shape[1]), s, -1e30)
            return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)

        at = jnp.arange(q.shape[1])
        if self.blocks:
            parts = jnp.moveaxis(q.reshape(q.shape[0], self.blocks, -1, *q.shape[2:]), 1, 0)
            o = jax.lax.map(jax.checkpoint(lambda xs: part(*xs)), (parts, at.reshape(self.blocks, -1)))
            o = jnp.moveaxis(o, 0, 1)
        else:
            o = part(q, at)
        return nn.Dense(width, dtype=HALF, name="out")(o.reshape(x.shape))


class Hearing(nn.Module):
    heads: int
    blocks: int

    @nn.compact
    def __call__(self, x, _):
        width = x.shape[-1]
        h = norm("ln_1")(x)
        x = x + Attention(self.heads, False, self.blocks, name="attn")(h, h)
        return x + nn.Dense(width, dtype=HALF, name="down")(nn.gelu(nn.Dense(4 * width, dtype=HALF, name="up")(norm("ln_2")(x)))), None


class Writing(nn.Module):
    heads: int
    blocks: int

    @nn.compact
    def __call__(self, x, heard):
        width = x.shape[-1]
        h = norm("ln_1")(x)
        x = x + Attention(self.heads, True, self.blocks, name="attn")(h, h)
        x = x + Attention(self.heads, False, self.blocks, name="cross")(norm("ln_cross")(x), heard)
        return x + nn.Dense(width, dtype=HALF, name="down")(nn.gelu(nn.Dense(4 * width, dtype=HALF, name="up")(norm("ln_2")(x)))), None


class Whisper(nn.Module):
    width: int
    heads: int
    depth: int
    vocabulary: int
    remat: bool
    blocks: int

    @nn.compact
    def __call__(self, sound, tokens):
        def stack(layer, name):
            layer = nn.remat(layer, prevent_cse=False) if self.remat else layer
            made = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth, in_axes=nn.broadcast)
            return made(self.heads, self.blocks, name=name)

        x = nn.gelu(nn.Conv(self.width, (3,), dtype=HALF, name="conv_1")(sound.astype(HALF)))
        x = nn.gelu(nn.Conv(self.width, (3,), (2,), dtype=HALF, name="conv_2")(x))
        half = jnp.arange(self.width // 2) / (self.width // 2 - 1)
        angle = jnp.arange(x.shape[1])[:, None] * 1e4**-half
        x = x + jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1).astype(HALF)
        x = norm("ln_heard")(stack(Hearing, "encoder")(x, None)[0])
        table = self.param("words", nn.initializers.normal(0.02), (self.vocabulary, self.width))
        places = self.param("places", nn.initializers.normal(0.01), (tokens.shape[1], self.width))
        y = table.astype(HALF)[tokens] + places.astype(HALF)
        return norm("ln_written")(stack(Writing, "decoder")(y, x)[0]), table


def whisper(topology, chips, batch, frames=3000, bands=128, length=448, width=1280, heads=20, depth=32, vocabulary=51866, remat=False, blocks=0, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Whisper(width, heads, depth, vocabulary, remat, blocks)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, frames, bands)), jnp.zeros((1, length), "int32")))["params"]
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1.75e-4, b2=0.98, eps=1e-6, weight_decay=0.1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        x, table = net.apply({"params": params}, data["sound"], data["tokens"])
        return entropy(x, table.T, jnp.roll(data["tokens"], -1, 1), 1)

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"sound": S("float32", frames, bands), "tokens": S("int32", length)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
