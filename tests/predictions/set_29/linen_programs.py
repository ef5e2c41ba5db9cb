"""Linen: a Longformer-like encoder: the sequence in blocks of 256 that see the two beside them; layers under nn.scan; masked words; data parallel."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, shardings
from recipe import Program, mesh, placed


class Layer(nn.Module):
    heads: int
    block: int

    @nn.compact
    def __call__(self, x, _):
        b, t, width = x.shape
        lin = lambda n, name: nn.Dense(n, dtype=HALF, name=name)
        h = nn.LayerNorm(dtype=HALF, name="norm1")(x)
        q, k, v = (lin(width, n)(h).reshape(b, t // self.block, self.block, self.heads, -1) for n in ("query", "key", "value"))
        beside = lambda a: jnp.concatenate([jnp.roll(a, 1, 1), a, jnp.roll(a, -1, 1)], 2)
        s = jnp.einsum("bnqhd,bnkhd->bnhqk", q, beside(k)).astype(jnp.float32) * q.shape[-1] ** -0.5
        i, j = jnp.arange(self.block)[:, None] + self.block, jnp.arange(3 * self.block)
        p = jax.nn.softmax(jnp.where(jnp.abs(i - j) <= self.block, s, -1e30)).astype(HALF)
        x = x + lin(width, "out")(jnp.einsum("bnhqk,bnkhd->bnqhd", p, beside(v)).reshape(x.shape))
        h = nn.LayerNorm(dtype=HALF, name="norm2")(x)
        return x + lin(width, "fc2")(nn.gelu(lin(4 * width, "fc1")(h))), None


class Encoder(nn.Module):
    words: int
    width: int
    heads: int
    depth: int
    block: int
    remat: bool

    @nn.compact
    def __call__(self, tokens):
        place = self.param("position", nn.initializers.normal(0.02), (tokens.shape[1], self.width))
        embed = self.param("word", nn.initializers.normal(0.02), (self.words, self.width))
        x = embed.astype(HALF)[tokens] + place.astype(HALF)
        layer = nn.remat(Layer, prevent_cse=False) if self.remat else Layer
        x, _ = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)(self.heads, self.block, name="layers")(x, None)
        return nn.LayerNorm(dtype=HALF, name="norm")(x), embed


def longformer(topology, chips, batch, length=8192, words=50304, width=768, heads=12, depth=12, block=256, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Encoder(words, width, heads, depth, block, remat)
    make = lambda: train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.zeros((1, length), "int32"))["params"], tx=optax.adamw(1e-4))
    state = placed(jax.eval_shape(make), whole)

    def train_step(state, batch):
        def loss_fn(params):
            x, table = state.apply_fn({"params": params}, batch["tokens"])
            return entropy(x, table.T, batch["labels"], chunks)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    data = {n: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split) for n in ("tokens", "labels")}
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, data), classify, (0,) if donate else (), (shardings(state), None))
