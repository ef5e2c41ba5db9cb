"""Flax Linen: a generative adversarial network of images, both of its networks trained in one step."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step
from recipe import Program, mesh, placed


class Residual(nn.Module):
    channels: int
    sampling: str
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        conv = lambda size, name: nn.Conv(self.channels, (size, size), dtype=self.dtype, name=name)
        resize = lambda a: a
        if self.sampling == "up":
            resize = lambda a: jnp.repeat(jnp.repeat(a, 2, 1), 2, 2)
        y = conv(3, "first")(resize(nn.relu(nn.GroupNorm(32, dtype=self.dtype, name="norm1")(x))))
        y = conv(3, "second")(nn.relu(nn.GroupNorm(32, dtype=self.dtype, name="norm2")(y))) + conv(1, "skip")(resize(x))
        return nn.avg_pool(y, (2, 2), (2, 2)) if self.sampling == "down" else y


class SelfAttention(nn.Module):
    """BigGAN's: keys and values at half the resolution."""

    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        b, h, w, c = x.shape
        project = lambda a, size: nn.Dense(size, dtype=self.dtype, use_bias=False)(a)
        small = nn.max_pool(x, (2, 2), (2, 2))
        q, k, v = (project(a, s).reshape(b, -1, s) for a, s in ((x, c // 8), (small, c // 8), (small, c // 2)))
        scores = nn.softmax(jnp.einsum("bqc,bkc->bqk", q, k))
        return x + project(jnp.einsum("bqk,bkc->bqc", scores, v), c).reshape(x.shape)


class Generator(nn.Module):
    channels: int
    dtype: jnp.dtype
    block: type

    @nn.compact
    def __call__(self, z):
        x = nn.Dense(4 * 4 * 16 * self.channels, dtype=self.dtype)(z.astype(self.dtype)).reshape(-1, 4, 4, 16 * self.channels)
        for i, wider in enumerate((16, 8, 4, 2, 1)):
            x = self.block(wider * self.channels, "up", self.dtype, name=f"block_{i}")(x)
            if i == 3:
                x = SelfAttention(self.dtype)(x)
        return nn.tanh(nn.Conv(3, (3, 3), dtype=self.dtype)(nn.relu(x)))


class Discriminator(nn.Module):
    channels: int
    dtype: jnp.dtype
    block: type

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(self.channels, (3, 3), dtype=self.dtype)(x.astype(self.dtype))
        for i, wider in enumerate((1, 2, 4, 8, 16, 16)):
            x = self.block(wider * self.channels, "down" if i < 5 else "same", self.dtype, name=f"block_{i}")(x)
            if i == 0:
                x = SelfAttention(self.dtype)(x)
        return nn.Dense(1, dtype=self.dtype)(nn.relu(x).sum((1, 2)))[:, 0].astype(jnp.float32)


def gan(topology, chips, batch, channels, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    dtype, block = jnp.bfloat16 if half else jnp.float32, nn.remat(Residual) if remat else Residual
    g, d = Generator(channels, dtype, block), Discriminator(channels, dtype, block)
    S, key = jax.ShapeDtypeStruct, jax.random.key(0)
    params = {"g": jax.eval_shape(g.init, key, S((2, 128), "float32")),
              "d": jax.eval_shape(d.init, key, S((2, 128, 128, 3), "float32"))}
    transforms = {"g": optax.adam(1e-4, b1=0.0), "d": optax.adam(4e-4, b1=0.0)}
    state = {k: jax.eval_shape(transforms[k].init, params[k]) for k in "gd"}

    def d_loss(weights, fake, images):
        scores = d.apply(weights, jnp.concatenate([images, fake.astype(jnp.float32)], 0))
        real, made = jnp.split(scores, 2)
        return nn.relu(1 - real).mean() + nn.relu(1 + made).mean()

    def train_step(params, opt_state, images, noise):
        fake = g.apply(params["g"], noise)
        grads = jax.grad(d_loss)(params["d"], fake, images)
        updates, d_state = transforms["d"].update(grads, opt_state["d"], params["d"])
        judge = optax.apply_updates(params["d"], updates)
        grads = jax.grad(lambda w: -d.apply(judge, g.apply(w, noise)).mean())(params["g"])
        updates, g_state = transforms["g"].update(grads, opt_state["g"], params["g"])
        return {"g": optax.apply_updates(params["g"], updates), "d": judge}, {"g": g_state, "d": d_state}

    args = (placed(params, whole), placed(state, whole),
            S((batch, 128, 128, 3), "float32", sharding=split), S((batch, 128), "float32", sharding=split))
    return Program(train_step, args, kind_of_step, (0, 1) if donate else ())
