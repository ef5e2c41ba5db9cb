"""Linen: SigLIP (towers of the So400m shape for pictures and texts, layers in nn.scan), the sigmoid loss over the whole batch, clipped, Adafactor with momentum in bfloat16, an average of the weights, data parallel."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, shardings
from recipe import Program, largest_dimension, mesh, placed


class Layer(nn.Module):
    heads: int
    hidden: int
    split: NamedSharding

    @nn.compact
    def __call__(self, x, _):
        x = jax.lax.with_sharding_constraint(x, self.split)
        width = x.shape[-1]
        y = nn.LayerNorm(dtype=HALF)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True)(y, y)
        y = nn.LayerNorm(dtype=HALF)(x)
        return x + nn.Dense(width, dtype=HALF)(nn.gelu(nn.Dense(self.hidden, dtype=HALF)(y))), None


class Tower(nn.Module):
    heads: int
    hidden: int
    depth: int
    remat: bool
    split: NamedSharding

    @nn.compact
    def __call__(self, x):
        layer = nn.remat(Layer, prevent_cse=False) if self.remat else Layer
        scanned = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=nn.broadcast, length=self.depth)
        x, _ = scanned(self.heads, self.hidden, self.split, name="layers")(x, None)
        return nn.LayerNorm(dtype=HALF)(x)


class Pool(nn.Module):
    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x):
        probe = self.param("probe", nn.initializers.xavier_uniform(), (1, 1, x.shape[-1]))
        probe = jnp.tile(probe.astype(HALF), (x.shape[0], 1, 1))
        x = nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True)(probe, x)
        y = nn.LayerNorm(dtype=HALF)(x)
        return (x + nn.Dense(x.shape[-1], dtype=HALF)(nn.gelu(nn.Dense(self.hidden, dtype=HALF)(y))))[:, 0]


class Two(nn.Module):
    width: int
    heads: int
    hidden: int
    depth: int
    words: int
    patch: int
    remat: bool
    split: NamedSharding

    @nn.compact
    def __call__(self, pictures, texts):
        x = nn.Conv(self.width, (self.patch, self.patch), (self.patch, self.patch), "VALID", dtype=HALF, name="patches")(pictures)
        x = x.reshape(x.shape[0], -1, self.width)
        x = x + self.param("places", nn.initializers.normal(0.02), (1, *x.shape[1:])).astype(HALF)
        seen = Pool(self.heads, self.hidden, name="pool")(Tower(self.heads, self.hidden, self.depth, self.remat, self.split, name="pictures")(x))
        y = nn.Embed(self.words, self.width, dtype=HALF, name="embed")(texts)
        y = y + self.param("text_places", nn.initializers.normal(0.02), (1, *y.shape[1:])).astype(HALF)
        read = nn.Dense(self.width, dtype=HALF, name="text_head")(Tower(self.heads, self.hidden, self.depth, self.remat, self.split, name="texts")(y)[:, -1])
        scale, bias = self.param("scale", nn.initializers.constant(2.3), ()), self.param("bias", nn.initializers.constant(-10.0), ())
        unit = lambda a: a.astype(jnp.float32) / (jnp.linalg.norm(a.astype(jnp.float32), axis=-1, keepdims=True) + 1e-8)
        return unit(seen), unit(read), jnp.exp(scale), bias


def siglip(topology, chips, batch, side=224, patch=14, length=64, words=32000, width=1152, heads=16, hidden=4304, depth=27, remat=False, fsdp=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Two(width, heads, hidden, depth, words, patch, remat, split)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((chips, side, side, 3)), jnp.zeros((chips, length), "int32")))["params"]
    params = placed(params, largest_dimension(devices, "data") if fsdp else whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adafactor(1e-3, decay_rate=0.95, momentum=0.9, dtype_momentum=jnp.bfloat16, weight_decay_rate=1e-4))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def train_step(params, opt_state, ema, batch):
        def loss_fn(params):
            seen, read, scale, bias = net.apply({"params": params}, batch["pictures"], batch["texts"])
            logits = seen @ read.T * scale + bias
            return -jax.nn.log_sigmoid(logits * (2 * jnp.eye(len(logits)) - 1)).sum(-1).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, opt_state, optax.incremental_update(params, ema, 1e-3), loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"pictures": S("float32", side, side, 3), "texts": S("int32", length)}
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, (params, opt, params, data), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(opt), shardings(params), None))
