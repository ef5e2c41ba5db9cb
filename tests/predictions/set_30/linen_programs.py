"""Linen: a Nemotron-like decoder under nn.scan with nn.remat(policy=save_only_these_names); sounds and captions by contrast over the global batch."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, shardings
from recipe import Program, largest_dimension, mesh, placed


class Layer(nn.Module):
    heads: int
    kv: int
    hidden: int
    where: Any

    @nn.compact
    def __call__(self, x, _):
        lin = lambda n, name: nn.Dense(n, use_bias=False, dtype=HALF, name=name)
        size = x.shape[-1] // self.heads
        h = nn.LayerNorm(dtype=HALF, name="input_norm")(x)
        q, k, v = (checkpoint_name(lin(n * size, f"{name}_proj")(h), name).reshape(*h.shape[:2], n, size) for n, name in ((self.heads, "q"), (self.kv, "k"), (self.kv, "v")))
        a = checkpoint_name(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape), "context")
        x = x + lin(x.shape[-1], "o_proj")(a)
        h = nn.LayerNorm(dtype=HALF, name="post_norm")(x)
        up = checkpoint_name(lin(self.hidden, "up_proj")(h), "up")
        x = x + lin(x.shape[-1], "down_proj")(jnp.square(nn.relu(up)))
        return jax.lax.with_sharding_constraint(x, self.where), None


class Decoder(nn.Module):
    words: int
    width: int
    heads: int
    kv: int
    hidden: int
    depth: int
    saved: tuple
    where: Any

    @nn.compact
    def __call__(self, tokens):
        x = jax.lax.with_sharding_constraint(nn.Embed(self.words, self.width, dtype=HALF, name="embed")(tokens), self.where)
        policy = jax.checkpoint_policies.save_only_these_names(*self.saved) if self.saved else None
        layer = nn.remat(Layer, policy=policy, prevent_cse=False)
        scanned = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = scanned(self.heads, self.kv, self.hidden, self.where, name="layers")(x, None)
        return nn.LayerNorm(dtype=HALF, name="norm")(x), self.param("lm_head", nn.initializers.normal(0.02), (self.width, self.words))


def nemotron(topology, chips, batch, length=4096, words=128000, width=3072, heads=24, kv=8, hidden=9216, depth=32, saved=("q", "k", "v", "context", "up"), chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    net = Decoder(words, width, heads, kv, hidden, depth, saved, split)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    make = lambda: train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.zeros((chips, length), "int32"))["params"], tx=transform)
    state = placed(jax.eval_shape(make), largest_dimension(devices, "fsdp", 1 << 17))

    def train_step(state, batch):
        def loss_fn(params):
            x, head = state.apply_fn({"params": params}, batch["tokens"])
            return entropy(x, head, jnp.roll(batch["tokens"], -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    data = {"tokens": jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)}
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, data), classify, (0,) if donate else (), (shardings(state), None))


class Block(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, _):
        lin, width = lambda n, name: nn.Dense(n, dtype=HALF, name=name), x.shape[-1]
        h = nn.LayerNorm(dtype=HALF, name="norm1")(x)
        q, k, v = (a.reshape(*x.shape[:2], self.heads, -1) for a in jnp.split(lin(3 * width, "qkv")(h), 3, -1))
        x = x + lin(width, "out")(jax.nn.dot_product_attention(q, k, v).reshape(x.shape))
        h = nn.LayerNorm(dtype=HALF, name="norm2")(x)
        return x + lin(width, "fc2")(nn.gelu(lin(4 * width, "fc1")(h))), None


class Tower(nn.Module):
    width: int
    heads: int
    depth: int
    remat: bool

    @nn.compact
    def __call__(self, x):
        place = self.param("place", nn.initializers.normal(0.02), (x.shape[1], self.width))
        block = nn.remat(Block, prevent_cse=False) if self.remat else Block
        scanned = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = scanned(self.heads, name="blocks")(x + place.astype(HALF), None)
        x = nn.Dense(512, use_bias=False, name="project")(nn.LayerNorm(dtype=HALF, name="norm")(x).mean(1).astype(jnp.float32))
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


class Clap(nn.Module):
    depth: int
    remat: bool

    @nn.compact
    def __call__(self, sound, text):
        a = nn.Conv(768, (16, 16), (16, 16), dtype=HALF, name="patches")(sound)
        a = Tower(768, 12, self.depth, self.remat, name="audio")(a.reshape(a.shape[0], -1, 768))
        b = Tower(512, 8, self.depth, self.remat, name="text")(nn.Embed(49408, 512, dtype=HALF, name="words")(text))
        return a, b, self.param("scale", nn.initializers.constant(2.65), ())


def clap(topology, chips, batch, frames=512, bands=128, words=64, depth=12, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Clap(depth, remat)
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    one = (jnp.zeros((1, frames, bands, 1)), jnp.zeros((1, words), "int32"))
    make = lambda: train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), *one)["params"], tx=optax.adamw(1e-3, weight_decay=0.2))
    state = placed(jax.eval_shape(make), whole)

    def train_step(state, batch):
        def loss_fn(params):
            a, b, scale = state.apply_fn({"params": params}, batch["mel"], batch["caption"])
            logits = jax.lax.with_sharding_constraint(jnp.exp(scale) * a @ b.T, split)
            labels = jnp.arange(logits.shape[0])
            ce = optax.softmax_cross_entropy_with_integer_labels
            return (ce(logits, labels).mean() + ce(jax.lax.with_sharding_constraint(jnp.exp(scale) * b @ a.T, split), labels).mean()) / 2

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    data = {"mel": S("float32", frames, bands, 1), "caption": S("int32", words)}
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, data), classify, (0,) if donate else (), (shardings(state), None))


class Segmenter(nn.Module):
    width: int
    heads: int
    depth: int
    kinds: int
    remat: bool

    @nn.compact
    def __call__(self, pictures):
        n, side = pictures.shape[:2]
        x = nn.Conv(self.width, (16, 16), (16, 16), dtype=HALF, name="patches")(pictures)
        grid = x.shape[1]
        x = x.reshape(n, -1, self.width) + self.param("place", nn.initializers.normal(0.02), (grid * grid, self.width)).astype(HALF)
        block = nn.remat(Block, prevent_cse=False) if self.remat else Block
        scanned = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = scanned(self.heads, name="blocks")(x, None)
        x = nn.LayerNorm(dtype=HALF, name="norm")(x).reshape(n, grid, grid, self.width)
        for i in range(2):
            x = nn.ConvTranspose(256, (2, 2), (2, 2), dtype=HALF, name=f"grow_{i}")(x)
            x = nn.gelu(nn.LayerNorm(dtype=HALF, name=f"grow_norm_{i}")(x))
        x = nn.Conv(self.kinds, (1, 1), dtype=HALF, name="classes")(x).astype(jnp.float32)
        return jax.image.resize(x, (n, side, side, self.kinds), "bilinear")


def segment(topology, chips, batch, side=512, kinds=150, width=1024, heads=16, depth=24, remat=False, donate=True):
    """ViT large with a decoder of pixels, as of ADE20K: the logits are enlarged to the picture."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Segmenter(width, heads, depth, kinds, remat)
    make = lambda: train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.zeros((1, side, side, 3)))["params"], tx=optax.adamw(1e-4))
    state = placed(jax.eval_shape(make), whole)

    def train_step(state, batch):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, batch["picture"])
            valid = batch["kinds"] != 255
            ce = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.where(valid, batch["kinds"], 0))
            return (ce * valid).sum() / valid.sum()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, side, side, *s), d, sharding=split)
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, {"picture": S("float32", 3), "kinds": S("int32")}), classify, (0,) if donate else (), (shardings(state), None))
