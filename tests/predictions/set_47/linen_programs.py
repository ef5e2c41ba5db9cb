"""Linen: Conformer L (17 layers of 512, 8 heads with relative places, convolutions of 31, dropout) learns to write down speech of 20 s with CTC (optax.ctc_loss) of 1024 pieces of words, float32, data parallel; layers one after another."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


class HalfStep(nn.Module):
    drop: float

    @nn.compact
    def __call__(self, x):
        width = x.shape[-1]
        h = nn.silu(nn.Dense(4 * width)(nn.LayerNorm()(x)))
        h = nn.Dropout(self.drop, deterministic=False)(h)
        return x + 0.5 * nn.Dropout(self.drop, deterministic=False)(nn.Dense(width)(h))


def sinusoids(length, width):
    at = jnp.arange(length - 1, -length, -1.0)[:, None] * 10000.0 ** (-jnp.arange(0, width, 2) / width)
    return jnp.stack([jnp.sin(at), jnp.cos(at)], -1).reshape(2 * length - 1, width)


class Attention(nn.Module):
    heads: int
    drop: float

    @nn.compact
    def __call__(self, x, mask):
        batch, length, width = x.shape
        size = width // self.heads
        h = nn.LayerNorm()(x)
        q, k, v = (nn.Dense(width, name=n)(h).reshape(batch, length, self.heads, size) for n in ("query", "key", "value"))
        places = nn.Dense(width, use_bias=False, name="places")(sinusoids(length, width)).reshape(-1, self.heads, size)
        u, w = (self.param(n, nn.initializers.zeros, (self.heads, size)) for n in ("content_bias", "place_bias"))
        seen = jnp.einsum("bqhd,bkhd->bhqk", q + u, k)
        apart = jnp.einsum("bqhd,phd->bhqp", q + w, places)
        # As Transformer-XL shifts them: the row of the i-th query begins i places further left.
        apart = jnp.pad(apart, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(batch, self.heads, 2 * length, length)
        apart = apart[:, :, 1:].reshape(batch, self.heads, length, 2 * length - 1)[..., :length]
        s = jnp.where(mask[:, None, None], (seen + apart) * size**-0.5, -1e9)
        share = nn.Dropout(self.drop, deterministic=False)(jax.nn.softmax(s))
        h = jnp.einsum("bhqk,bkhd->bqhd", share, v).reshape(x.shape)
        return x + nn.Dropout(self.drop, deterministic=False)(nn.Dense(width, name="out")(h))


class Convolution(nn.Module):
    size: int
    drop: float

    @nn.compact
    def __call__(self, x, mask):
        width = x.shape[-1]
        h = nn.glu(nn.Dense(2 * width)(nn.LayerNorm()(x)))
        h = jnp.where(mask[..., None], h, 0.0)
        h = nn.Conv(width, (self.size,), feature_group_count=width)(h)
        h = nn.silu(nn.LayerNorm()(h))
        return x + nn.Dropout(self.drop, deterministic=False)(nn.Dense(width)(h))


class Layer(nn.Module):
    heads: int
    size: int
    drop: float

    @nn.compact
    def __call__(self, x, mask):
        x = HalfStep(self.drop)(x)
        x = Attention(self.heads, self.drop)(x, mask)
        x = Convolution(self.size, self.drop)(x, mask)
        x = HalfStep(self.drop)(x)
        return nn.LayerNorm()(x)


class Conformer(nn.Module):
    width: int
    heads: int
    depth: int
    size: int
    words: int
    drop: float
    remat: bool

    @nn.compact
    def __call__(self, x, mask):
        x = x[..., None]
        for _ in range(2):
            x = nn.relu(nn.Conv(self.width, (3, 3), (2, 2))(x))
        x = nn.Dense(self.width)(x.reshape(*x.shape[:2], -1))
        x = nn.Dropout(self.drop, deterministic=False)(x)
        for i in range(self.depth):
            x = (nn.remat(Layer) if self.remat else Layer)(self.heads, self.size, self.drop, name=f"layer_{i}")(x, mask)
        return nn.Dense(self.words)(x)


def conformer(topology, chips, batch, frames=2048, bands=80, labels=128, width=512, heads=8, depth=17, size=31, words=1024, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Conformer(width, heads, depth, size, words, 0.1, remat)
    keys = lambda key: {"params": key, "dropout": key}
    params = jax.eval_shape(lambda: net.init(keys(jax.random.key(0)), jnp.zeros((1, frames, bands)), jnp.ones((1, frames // 4), bool)))["params"]
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(2e-3, b2=0.98, weight_decay=1e-6))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        lengths = data["frames"] // 4
        mask = jnp.arange(frames // 4) < lengths[:, None]
        key = jax.random.fold_in(jax.random.key(0), data["step"])
        logits = net.apply({"params": params}, data["voice"], mask, rngs={"dropout": key})
        blank = (jnp.arange(labels) >= data["count"][:, None]).astype(jnp.float32)
        losses = optax.ctc_loss(logits, 1.0 - mask.astype(jnp.float32), data["labels"], blank)
        return (losses / jnp.maximum(data["count"], 1)).mean()

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"voice": S("float32", frames, bands), "frames": S("int32"), "labels": S("int32", labels), "count": S("int32"), "step": jax.ShapeDtypeStruct((), "int32", sharding=whole)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
