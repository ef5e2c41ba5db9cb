"""Flax Linen: scanned gated layers, a Conformer, one shared layer applied many times, an inverted-bottleneck network."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed

HALF = jnp.bfloat16


def training(model, transform, loss, data, devices, donate=True, mutable=()):
    """A Linen training step: variables, optimizer state, batch."""
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    variables = jax.eval_shape(lambda: model.init(jax.random.key(0), *[jnp.zeros((1, *x.shape[1:]), x.dtype) for x in data[:-1]]))
    params, rest = variables["params"], {k: v for k, v in variables.items() if k in mutable}
    state = jax.eval_shape(transform.init, params)

    def train_step(params, rest, opt_state, *batch):
        def total(params):
            out, new = model.apply({"params": params, **rest}, *batch[:-1], mutable=list(mutable))
            return loss(out, batch[-1]), new

        (value, rest), gradients = jax.value_and_grad(total, has_aux=True)(params)
        updates, opt_state = transform.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), rest, opt_state, value

    args = (placed(params, whole), placed(rest, whole), placed(state, whole), *[placed(x, split) for x in data])
    rule = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, args, rule, (0, 1, 2) if donate else ())


def mean_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean()


class GatedLayer(nn.Module):
    heads: int
    width: int

    @nn.compact
    def __call__(self, x, _):
        y = nn.RMSNorm(dtype=HALF)(x)
        split = lambda name: nn.DenseGeneral((self.heads, self.width // self.heads), dtype=HALF, use_bias=False, name=name)(y)
        scores = jnp.einsum("bqhd,bkhd->bhqk", split("query"), split("key")) * (self.width // self.heads) ** -0.5
        weights = jax.nn.softmax(scores.astype(jnp.float32)).astype(HALF)
        y = jnp.einsum("bhqk,bkhd->bqhd", weights, split("value"))
        x = x + nn.DenseGeneral(self.width, axis=(-2, -1), dtype=HALF, use_bias=False, name="out")(y)
        y = nn.RMSNorm(dtype=HALF)(x)
        gate = nn.Dense(3 * self.width, dtype=HALF, use_bias=False, name="gate")(y)
        up = nn.Dense(3 * self.width, dtype=HALF, use_bias=False, name="up")(y)
        return x + nn.Dense(self.width, dtype=HALF, use_bias=False, name="down")(nn.silu(gate) * up), None


class ScannedEncoder(nn.Module):
    depth: int
    heads: int
    width: int
    vocabulary: int
    remat: bool

    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(self.vocabulary, self.width, dtype=HALF, name="embed")
        layer = nn.remat(GatedLayer, prevent_cse=False) if self.remat else GatedLayer
        stack = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = stack(self.heads, self.width, name="layers")(embed(tokens), None)
        return embed.attend(nn.RMSNorm(dtype=HALF)(x))


def scanned(topology, chips, batch, length, depth, heads, width, vocabulary, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    data = [jax.ShapeDtypeStruct((batch, length), jnp.int32)] * 2
    model = ScannedEncoder(depth, heads, width, vocabulary, remat)
    return training(model, optax.adafactor(1e-3), mean_entropy, data, devices)


class ConformerBlock(nn.Module):
    heads: int
    width: int

    @nn.compact
    def __call__(self, x):
        def feed(x, name):
            y = nn.Dense(4 * self.width, dtype=HALF, name=f"{name}_in")(nn.LayerNorm(dtype=HALF)(x))
            return nn.Dense(self.width, dtype=HALF, name=f"{name}_out")(nn.silu(y))

        x = x + 0.5 * feed(x, "first")
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, name="attention")(nn.LayerNorm(dtype=HALF)(x))
        y = nn.glu(nn.Dense(2 * self.width, dtype=HALF, name="point_in")(nn.LayerNorm(dtype=HALF)(x)))
        y = nn.Conv(self.width, (31,), feature_group_count=self.width, dtype=HALF, name="depthwise")(y)
        x = x + nn.Dense(self.width, dtype=HALF, name="point_out")(nn.silu(nn.LayerNorm(dtype=HALF)(y)))
        return nn.LayerNorm(dtype=HALF)(x + 0.5 * feed(x, "second"))


class Conformer(nn.Module):
    depth: int
    heads: int
    width: int
    remat: bool

    @nn.compact
    def __call__(self, frames):
        x = frames.astype(HALF)[..., None]
        for i in range(2):
            x = nn.relu(nn.Conv(64, (3, 3), (2, 2), dtype=HALF, name=f"subsample_{i}")(x))
        x = nn.Dense(self.width, dtype=HALF, name="project")(x.reshape(*x.shape[:2], -1))
        block = nn.remat(ConformerBlock) if self.remat else ConformerBlock
        for i in range(self.depth):
            x = block(self.heads, self.width, name=f"conformer_{i}")(x)
        return nn.Dense(1024, dtype=HALF, name="tokens")(x)


def conformer(topology, chips, batch, frames, depth, heads, width, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    data = [jax.ShapeDtypeStruct((batch, frames, 80), jnp.float32), jax.ShapeDtypeStruct((batch, frames // 4), jnp.int32)]
    return training(Conformer(depth, heads, width, remat), optax.adam(1e-3), mean_entropy, data, devices)


class SharedLayer(nn.Module):
    heads: int
    width: int

    @nn.compact
    def __call__(self, x):
        x = nn.LayerNorm(dtype=HALF)(x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF)(x))
        y = nn.Dense(self.width, dtype=HALF)(nn.gelu(nn.Dense(4 * self.width, dtype=HALF)(x)))
        return nn.LayerNorm(dtype=HALF)(x + y)


class Shared(nn.Module):
    depth: int
    heads: int
    width: int
    vocabulary: int
    remat: bool

    @nn.compact
    def __call__(self, tokens):
        x = nn.Dense(self.width, dtype=HALF, name="widen")(nn.Embed(self.vocabulary, 128, dtype=HALF, name="words")(tokens))
        layer = (nn.remat(SharedLayer) if self.remat else SharedLayer)(self.heads, self.width, name="shared")
        for _ in range(self.depth):
            x = layer(x)
        return nn.Dense(self.vocabulary, dtype=HALF, name="predict")(nn.Dense(128, dtype=HALF, name="narrow")(x))


def shared(topology, chips, batch, length, depth, heads, width, vocabulary, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    data = [jax.ShapeDtypeStruct((batch, length), jnp.int32)] * 2
    return training(Shared(depth, heads, width, vocabulary, remat), optax.lamb(1e-3), mean_entropy, data, devices)


class Inverted(nn.Module):
    out: int
    stride: int
    norm: Any

    @nn.compact
    def __call__(self, x):
        wide = 6 * x.shape[-1]
        y = nn.swish(self.norm(name="bn1")(nn.Conv(wide, (1, 1), use_bias=False, dtype=HALF, name="expand")(x)))
        y = nn.Conv(wide, (3, 3), (self.stride,) * 2, feature_group_count=wide, use_bias=False, dtype=HALF, name="depth")(y)
        y = nn.swish(self.norm(name="bn2")(y))
        squeeze = nn.swish(nn.Dense(x.shape[-1] // 4, dtype=HALF, name="reduce")(y.mean((1, 2), keepdims=True)))
        y = y * nn.sigmoid(nn.Dense(wide, dtype=HALF, name="excite")(squeeze))
        y = self.norm(name="bn3")(nn.Conv(self.out, (1, 1), use_bias=False, dtype=HALF, name="project")(y))
        return x + y if y.shape == x.shape else y


class InvertedNet(nn.Module):
    remat: bool

    @nn.compact
    def __call__(self, images):
        import functools

        norm = functools.partial(nn.BatchNorm, use_running_average=False, dtype=HALF)
        x = nn.swish(norm(name="bn")(nn.Conv(32, (3, 3), (2, 2), dtype=HALF, name="stem")(images.astype(HALF))))
        block = nn.remat(Inverted) if self.remat else Inverted
        number = 0
        for out, count, stride in ((24, 2, 1), (40, 2, 2), (80, 3, 2), (160, 3, 2)):
            for i in range(count):
                x = block(out, stride if i == 0 else 1, norm, name=f"mbconv_{number}")(x)
                number += 1
        return nn.Dense(1000, dtype=HALF, name="head")(x.mean((1, 2)))


def inverted(topology, chips, batch, size, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    data = [jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32), jax.ShapeDtypeStruct((batch,), jnp.int32)]
    return training(InvertedNet(remat), optax.rmsprop(1e-3, momentum=0.9), mean_entropy, data, devices, mutable=("batch_stats",))
