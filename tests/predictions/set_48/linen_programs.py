"""Linen: VideoMAE L is trained before anything else (16 pictures of 224, tubes of 2 by 16 by 16, nine of ten hidden; encoder 24 layers of 1024 on what is seen, decoder 12 of 512 on all), weights in float32, computing in bfloat16, AdamW, data parallel; layers one after another."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


class Layer(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x):
        width = x.shape[-1]
        y = nn.LayerNorm(epsilon=1e-6, dtype=HALF)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True)(y, y)
        y = nn.LayerNorm(epsilon=1e-6, dtype=HALF)(x)
        return x + nn.Dense(width, dtype=HALF)(nn.gelu(nn.Dense(4 * width, dtype=HALF)(y), approximate=False))


def sinusoids(length, width):
    at = np.arange(length)[:, None] / 10000.0 ** (2 * (np.arange(width) // 2) / width)
    return np.where(np.arange(width) % 2, np.cos(at), np.sin(at)).astype("float32")


class VideoMAE(nn.Module):
    width: int
    depth: int
    heads: int
    decoder_width: int
    decoder_depth: int
    decoder_heads: int
    remat: bool

    @nn.compact
    def __call__(self, patches, seen, hidden):
        layer = nn.remat(Layer) if self.remat else Layer
        length, size = patches.shape[1:]
        take = lambda a, at: jnp.take_along_axis(a, at[..., None], 1)
        x = nn.Dense(self.width, dtype=HALF, name="patches")(take(patches, seen).astype(HALF))
        x = x + jnp.asarray(sinusoids(length, self.width), HALF)[seen]
        for i in range(self.depth):
            x = layer(self.heads, name=f"encoder_{i}")(x)
        x = nn.LayerNorm(epsilon=1e-6, dtype=HALF, name="encoder_norm")(x)
        x = nn.Dense(self.decoder_width, use_bias=False, dtype=HALF, name="to_decoder")(x)
        mask = self.param("mask", nn.initializers.normal(0.02), (1, 1, self.decoder_width)).astype(HALF)
        places = jnp.asarray(sinusoids(length, self.decoder_width), HALF)
        x = jnp.concatenate([x + places[seen], mask + places[hidden]], 1)
        for i in range(self.decoder_depth):
            x = layer(self.decoder_heads, name=f"decoder_{i}")(x)
        x = nn.LayerNorm(epsilon=1e-6, dtype=HALF, name="decoder_norm")(x[:, -hidden.shape[1]:])
        return nn.Dense(size, dtype=HALF, name="head")(x).astype(jnp.float32)


def videomae(topology, chips, batch, frames=16, side=224, tube=2, patch=16, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    t, n = frames // tube, side // patch
    seen = t * int(n * n * 0.1 + 0.999)
    length, size = t * n * n, tube * patch * patch * 3
    net = VideoMAE(1024, 24, 16, 512, 12, 8, remat)
    zeros = lambda d, *s: jnp.zeros((1, *s), d)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), zeros("float32", length, size), zeros("int32", seen), zeros("int32", length - seen)))["params"]
    params = placed(params, whole)
    transform = optax.adamw(1.5e-4, b2=0.95, weight_decay=0.05)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        x = data["film"]
        x = x.reshape(-1, t, tube, n, patch, n, patch, 3).transpose(0, 1, 3, 5, 2, 4, 6, 7).reshape(-1, length, size)
        out = net.apply({"params": params}, x, data["seen"], data["hidden"])
        each = x.reshape(*x.shape[:2], -1, 3)
        wanted = ((each - each.mean(2, keepdims=True)) / (jnp.sqrt(each.var(2, keepdims=True)) + 1e-6)).reshape(x.shape)
        wanted = jnp.take_along_axis(wanted, data["hidden"][..., None], 1)
        return jnp.mean((out - wanted) ** 2)

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"film": S("float32", frames, side, side, 3), "seen": S("int32", seen), "hidden": S("int32", length - seen)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
