"""Linen: one word for every sequence of a server with a decoder like OLMo 7B (every head its own keys and values), its layers an nn.scan whose `cache` collection is stacked over them; sequences over one axis, heads over the other; weights in bfloat16."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh


def linear(size, names, name):
    return nn.Dense(size, use_bias=False, dtype=HALF, param_dtype=HALF, kernel_init=nn.with_partitioning(nn.initializers.normal(0.02), names), name=name)


def turned(a, where):
    half = a.shape[-1] // 2
    angle = where[:, None, None] * 10000.0 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(a.dtype), jnp.cos(angle).astype(a.dtype), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


class Layer(nn.Module):
    heads: int
    size: int
    hidden: int
    places: int

    @nn.compact
    def __call__(self, x, where):
        rows, width = x.shape
        norm = lambda name: nn.LayerNorm(use_scale=False, use_bias=False, dtype=HALF, name=name)
        h = norm("norm_attention")(x)
        part = lambda name: linear(self.heads * self.size, (None, "model"), name)(h).reshape(rows, self.heads, self.size)
        q, k, v = turned(part("query"), where), turned(part("key"), where), part("value")
        make = lambda: jnp.zeros((rows, self.places, self.heads, self.size), HALF)
        keys, values = self.variable("cache", "keys", make), self.variable("cache", "values", make)
        each = jnp.arange(rows)
        keys.value = keys.value.at[each, where].set(k)
        values.value = values.value.at[each, where].set(v)
        s = jnp.einsum("bhd,bchd->bhc", q, keys.value).astype(jnp.float32) * self.size**-0.5
        p = jax.nn.softmax(jnp.where(jnp.arange(self.places) <= where[:, None, None], s, -1e30)).astype(HALF)
        o = jnp.einsum("bhc,bchd->bhd", p, values.value).reshape(rows, -1)
        x = x + linear(width, ("model", None), "out")(o)
        h = norm("norm_mlp")(x)
        gate, up = (linear(self.hidden, (None, "model"), n)(h) for n in ("gate", "up"))
        return x + linear(width, ("model", None), "down")(nn.silu(gate) * up), None


class Decoder(nn.Module):
    words: int
    width: int
    heads: int
    size: int
    hidden: int
    depth: int
    places: int

    @nn.compact
    def __call__(self, tokens, where):
        table = self.param("embed", nn.with_partitioning(nn.initializers.normal(0.02), ("model", None)), (self.words, self.width), HALF)
        stack = nn.scan(Layer, variable_axes={"params": 0, "cache": 0}, split_rngs={"params": True}, in_axes=nn.broadcast, length=self.depth, metadata_params={nn.PARTITION_NAME: None})
        x, _ = stack(self.heads, self.size, self.hidden, self.places, name="layers")(table[tokens], where)
        x = nn.LayerNorm(use_scale=False, use_bias=False, dtype=HALF, name="norm")(x)
        return linear(self.words, (None, "model"), "head")(x).astype(jnp.float32)


def word(topology, shape, batch, places=2048, words=50304, width=4096, heads=32, size=128, hidden=11008, depth=32, donate=True):
    devices = mesh(topology, shape, ("data", "model"))
    jax.set_mesh(devices).__enter__()
    on = lambda *spec: NamedSharding(devices, P(*spec))
    net = Decoder(words, width, heads, size, hidden, depth, places)
    boxed = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((batch,), "int32"), jnp.zeros((batch,), "int32")))
    params = jax.tree.map(lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on(*s)), jax.eval_shape(nn.meta.unbox, boxed["params"]), nn.get_partition_spec(boxed["params"]))
    cache = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on(None, "data", None, "model")), boxed["cache"])

    def decode_step(params, cache, tokens, where):
        logits, new = net.apply({"params": params, "cache": cache}, tokens, where, mutable=["cache"])
        return new["cache"], jnp.argmax(logits, -1).astype("int32"), where + 1

    S = lambda: jax.ShapeDtypeStruct((batch,), "int32", sharding=on("data"))
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode_step, (params, cache, S(), S()), classify, (1,) if donate else (), (shardings(cache), on("data"), on("data")))
