"""Linen: ViT-L/16 at 384 pixels, scanned, bfloat16, with an average of its weights; GPT-2 medium of nn.MultiHeadDotProductAttention and a TrainState, layers in a Python loop."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class Encoder(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, _):
        h = nn.LayerNorm(dtype=HALF)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True)(h, h)
        h = nn.LayerNorm(dtype=HALF)(x)
        h = nn.Dense(4 * x.shape[-1], dtype=HALF)(h)
        return x + nn.Dense(x.shape[-1], dtype=HALF)(nn.gelu(h)), None


class ViT(nn.Module):
    depth: int
    width: int
    heads: int
    remat: bool

    @nn.compact
    def __call__(self, images):
        x = nn.Conv(self.width, (16, 16), (16, 16), padding="VALID", dtype=HALF, name="embedding")(images)
        x = x.reshape(x.shape[0], -1, self.width)
        x = jnp.concatenate([jnp.tile(self.param("cls", nn.initializers.zeros, (1, 1, self.width)).astype(HALF), (x.shape[0], 1, 1)), x], 1)
        x = x + self.param("pos_embedding", nn.initializers.normal(0.02), (1, x.shape[1], self.width)).astype(HALF)
        block = nn.remat(Encoder, prevent_cse=False) if self.remat else Encoder
        x, _ = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)(self.heads, name="encoder")(x, None)
        return nn.Dense(1000, name="head")(nn.LayerNorm(name="encoder_norm")(x[:, 0].astype(jnp.float32)))


def vit384(topology, chips, batch, size=384, depth=24, width=1024, heads=16, remat=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = ViT(depth, width, heads, remat)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, size, size, 3)))["params"], whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, weight_decay=0.1, mu_dtype=HALF))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def train_step(params, ema, opt_state, batch):
        def loss_fn(params):
            logits = net.apply({"params": params}, batch["image"])
            return optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(batch["label"], 1000), 0.1)).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, optax.incremental_update(params, ema, 1e-4), opt_state, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    data = {"image": S("float32", size, size, 3), "label": S("int32")}
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, params, opt, data), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(params), shardings(opt), None))


class Block(nn.Module):
    heads: int
    dropout: float

    @nn.compact
    def __call__(self, x, mask):
        h = nn.LayerNorm(dtype=HALF, name="ln_1")(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, dropout_rate=0.0, deterministic=True, name="attn")(h, h, mask=mask)
        h = nn.LayerNorm(dtype=HALF, name="ln_2")(x)
        h = nn.Dense(4 * x.shape[-1], dtype=HALF, name="c_fc")(h)
        h = nn.Dense(x.shape[-1], dtype=HALF, name="c_proj")(nn.gelu(h))
        return x + nn.Dropout(self.dropout, deterministic=False)(h)


class GPT(nn.Module):
    words: int
    depth: int
    width: int
    heads: int
    remat: int

    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(self.words, self.width, dtype=HALF, name="wte")
        x = embed(tokens) + nn.Embed(tokens.shape[1], self.width, dtype=HALF, name="wpe")(jnp.arange(tokens.shape[1])[None])
        mask = nn.make_causal_mask(tokens)
        for i in range(self.depth):
            kind = nn.remat(Block) if i < self.remat else Block
            x = kind(self.heads, 0.1, name=f"h_{i}")(x, mask)
        return embed.attend(nn.LayerNorm(dtype=HALF, name="ln_f")(x))


def gpt(topology, chips, batch, length=1024, words=50304, depth=24, width=1024, heads=16, remat=0, donate=True, zero=False):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = GPT(words, depth, width, heads, remat)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(6e-4, b2=0.95, weight_decay=0.1))

    def make(key):
        params = net.init({"params": key, "dropout": key}, jnp.zeros((1, length), jnp.int32))["params"]
        return train_state.TrainState.create(apply_fn=net.apply, params=params, tx=transform)

    where = largest_dimension(devices, "data")
    state = placed(jax.eval_shape(make, jax.random.key(0)), (lambda path, leaf: where(path, leaf) if "opt_state" in path else whole) if zero else whole)

    def train_step(state, tokens, key):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, tokens[:, :-1], rngs={"dropout": jax.random.wrap_key_data(key)}).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=split)
    key = jax.ShapeDtypeStruct((2,), "uint32", sharding=whole)
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, tokens, key), classify, (0,) if donate else (), (shardings(state), None))
