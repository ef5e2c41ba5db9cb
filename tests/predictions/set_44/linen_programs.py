"""Linen: ESM-2 3B (a masked language model of proteins: rotary positions, all see all) pruned to 12 layers and trained further, layers one after another, weights and state in float32, computing in bfloat16, fully sharded over 8 devices."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings, training_step, turned
from recipe import Program, largest_dimension, mesh, placed


class Layer(nn.Module):
    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x, mask):
        width = x.shape[-1]
        dense = lambda size, name: nn.Dense(size, dtype=HALF, name=name)
        norm = lambda name: nn.LayerNorm(dtype=HALF, name=name)
        h = norm("norm_attention")(x)
        q, k, v = (dense(width, n)(h).reshape(*x.shape[:2], self.heads, -1) for n in ("query", "key", "value"))
        q, k = turned(q, 10000.0), turned(k, 10000.0)
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        s = jnp.where(mask[:, None, None], s, -1e30)
        o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)
        x = x + dense(width, "out")(o.reshape(x.shape))
        return x + dense(width, "down")(nn.gelu(dense(self.hidden, "up")(norm("norm_mlp")(x)), approximate=False))


class Protein(nn.Module):
    words: int
    width: int
    heads: int
    hidden: int
    depth: int
    remat: bool

    @nn.compact
    def __call__(self, tokens, mask):
        embed = nn.Embed(self.words, self.width, dtype=HALF, name="embed")
        x = embed(tokens)
        for i in range(self.depth):
            x = (nn.remat(Layer) if self.remat else Layer)(self.heads, self.hidden, name=f"layer_{i}")(x, mask)
        x = nn.LayerNorm(dtype=HALF, name="norm")(x)
        x = nn.LayerNorm(dtype=HALF, name="head_norm")(nn.gelu(nn.Dense(self.width, dtype=HALF, name="head_dense")(x)))
        return embed.attend(x).astype(jnp.float32)


def protein(topology, chips, batch, length=1024, words=33, width=2560, heads=40, hidden=10240, depth=12, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    net = Protein(words, width, heads, hidden, depth, remat)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, length), "int32"), jnp.ones((1, length), bool)))["params"]
    params = placed(params, largest_dimension(devices, "fsdp"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.98, weight_decay=0.01))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def loss_fn(params, data):
        logits = net.apply({"params": params}, data["tokens"], data["tokens"] != 1)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, data["labels"])
        return (losses * data["hidden"]).sum() / data["hidden"].sum()

    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=NamedSharding(devices, P("fsdp")))
    data = {"tokens": S("int32"), "labels": S("int32"), "hidden": S("float32")}
    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
