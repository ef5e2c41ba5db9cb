"""Flax Linen: Evoformer-like blocks on pairs of residues (triangle products and attention), scanned by nn.scan; a video transformer with divided attention (TimeSformer)."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, largest_dimension, mesh, placed


class PairBlock(nn.Module):
    width: int
    heads: int
    dtype: object
    blocks: int = 1

    @nn.compact
    def __call__(self, z, _):
        dense = lambda n, name: nn.Dense(n, dtype=self.dtype, name=name)
        norm = lambda name: nn.LayerNorm(dtype=self.dtype, name=name)
        for way in ("outgoing", "incoming"):
            h = norm(f"{way}_norm")(z)
            a = nn.sigmoid(dense(self.width, f"{way}_gate_a")(h)) * dense(self.width, f"{way}_a")(h)
            b = nn.sigmoid(dense(self.width, f"{way}_gate_b")(h)) * dense(self.width, f"{way}_b")(h)
            y = jnp.einsum("bikc,bjkc->bijc" if way == "outgoing" else "bkic,bkjc->bijc", a, b)
            z = z + nn.sigmoid(dense(self.width, f"{way}_gate")(h)) * dense(self.width, f"{way}_out")(norm(f"{way}_mid")(y))
        for way in ("starting", "ending"):
            x = z if way == "starting" else z.swapaxes(1, 2)
            h = norm(f"{way}_norm")(x)
            size = self.width // self.heads
            q, k, v = (nn.DenseGeneral((self.heads, size), dtype=self.dtype, name=f"{way}_{n}")(h) for n in "qkv")
            bias = dense(self.heads, f"{way}_bias")(h)

            def attend(q, bias, k, v):
                scores = jnp.einsum("bnihd,bnjhd->bnhij", q, k) * size**-0.5 + bias.transpose(0, 3, 1, 2)[:, None]
                return jnp.einsum("bnhij,bnjhd->bnihd", nn.softmax(scores), v)

            if self.blocks == 1:
                y = attend(q, bias, k, v)
            else:  # a block of queries at a time, recomputed in the backward pass: no scores are kept
                part = lambda a, axis: jnp.moveaxis(a.reshape(*a.shape[:axis], self.blocks, -1, *a.shape[axis + 1:]), axis, 0)
                y = jax.lax.map(jax.checkpoint(lambda given: attend(*given, k, v)), (part(q, 2), part(bias, 1)))
                y = jnp.moveaxis(y, 0, 2).reshape(q.shape)
            y = dense(self.width, f"{way}_out")((y * nn.sigmoid(nn.DenseGeneral((self.heads, size), dtype=self.dtype, name=f"{way}_gate")(h))).reshape(x.shape))
            z = z + (y if way == "starting" else y.swapaxes(1, 2))
        h = norm("transition_norm")(z)
        return z + dense(self.width, "transition_out")(nn.relu(dense(4 * self.width, "transition_in")(h))), None


class PairStack(nn.Module):
    depth: int
    width: int
    heads: int
    dtype: object
    remat: bool
    attention_blocks: int = 1

    @nn.compact
    def __call__(self, residues):
        left = nn.Dense(self.width, dtype=self.dtype, name="left")(residues)
        right = nn.Dense(self.width, dtype=self.dtype, name="right")(residues)
        z = left[:, :, None] + right[:, None]
        block = nn.remat(PairBlock, prevent_cse=False) if self.remat else PairBlock
        stack = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        z, _ = stack(self.width, self.heads, self.dtype, self.attention_blocks, name="blocks")(z, None)
        return nn.Dense(64, dtype=jnp.float32, name="distogram")(z.astype(jnp.float32))


def pairs(topology, chips, batch, residues=256, depth=8, width=128, heads=4, half=False, remat=False, donate=True, attention_blocks=1):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = PairStack(depth, width, heads, jnp.bfloat16 if half else jnp.float32, remat, attention_blocks)
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, residues, 384), "float32"))["params"]
    transform = optax.adam(1e-3)

    def train_step(params, opt_state, residues, bins):
        def loss_fn(params):
            return optax.softmax_cross_entropy_with_integer_labels(net.apply({"params": params}, residues), bins).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), S("float32", residues, 384), S("int32", residues, residues))
    return Program(train_step, args, lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input"), (0, 1) if donate else ())


class TimeSformerBlock(nn.Module):
    heads: int
    dtype: object

    @nn.compact
    def __call__(self, x):  # [batch, frames, places, width]
        width = x.shape[-1]
        attend = lambda name: nn.MultiHeadDotProductAttention(self.heads, dtype=self.dtype, name=name)
        h = nn.LayerNorm(dtype=self.dtype)(x).swapaxes(1, 2)
        x = x + nn.Dense(width, dtype=self.dtype, name="time_out")(attend("time")(h, h)).swapaxes(1, 2)
        h = nn.LayerNorm(dtype=self.dtype)(x)
        x = x + attend("space")(h, h)
        h = nn.gelu(nn.Dense(4 * width, dtype=self.dtype, name="fc1")(nn.LayerNorm(dtype=self.dtype)(x)))
        return x + nn.Dense(width, dtype=self.dtype, name="fc2")(h)


class TimeSformer(nn.Module):
    depth: int
    heads: int
    width: int
    dtype: object
    remat: int

    @nn.compact
    def __call__(self, video):
        b, t = video.shape[:2]
        x = nn.Conv(self.width, (16, 16), (16, 16), dtype=self.dtype, name="patches")(video.reshape(b * t, *video.shape[2:]))
        x = x.reshape(b, t, -1, self.width)
        x = x + self.param("space", nn.initializers.normal(0.02), (1, 1, x.shape[2], self.width)).astype(x.dtype)
        x = x + self.param("time", nn.initializers.normal(0.02), (1, t, 1, self.width)).astype(x.dtype)
        for i in range(self.depth):
            x = (nn.remat(TimeSformerBlock) if i < self.remat else TimeSformerBlock)(self.heads, self.dtype, name=f"block_{i}")(x)
        return nn.Dense(400, dtype=jnp.float32, name="head")(nn.LayerNorm(name="norm")(x).mean((1, 2)))


def video(topology, chips, batch, frames=16, size=224, depth=12, width=768, heads=12, half=False, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = TimeSformer(depth, heads, width, jnp.bfloat16 if half else jnp.float32, remat)
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, frames, size, size, 3), "float32"))["params"]
    transform = optax.sgd(5e-3, momentum=0.9)

    def train_step(params, opt_state, video, labels):
        loss_fn = lambda p: optax.softmax_cross_entropy_with_integer_labels(net.apply({"params": p}, video), labels).mean()
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), S("float32", frames, size, size, 3), S("int32"))
    return Program(train_step, args, lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input"), (0, 1) if donate else ())
