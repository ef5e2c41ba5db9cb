"""NNX: serving with a decoder of 12 layers (grouped-query attention; a distilled assistant), layers one after another, each with its own keys and values; a while_loop draws words until every sequence has ended; sequences over one axis, heads over the other."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh


def turned(a, where):
    """[batch, heads, 1, size] at one place of all sequences."""
    half = a.shape[-1] // 2
    angle = where * 500000.0 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(a.dtype), jnp.cos(angle).astype(a.dtype), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


def put(a, kept):
    return jnp.clip(jnp.round(a * 16), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)


def got(a):
    return a.astype(HALF) / 16 if a.dtype == jnp.int8 else a


class Layer(nnx.Module):
    def __init__(self, width, heads, kv, size, hidden, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.q, self.k, self.v, self.o = lin(width, heads * size), lin(width, kv * size), lin(width, kv * size), lin(heads * size, width)
        self.gate, self.up, self.down = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.norm1, self.norm2 = (nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs) for _ in "12")
        self.kv, self.size = kv, size

    def __call__(self, x, cache, where):
        """x [batch, width]; cache keys and values [batch, kv, places, size]."""
        rows = x.shape[0]
        h = self.norm1(x)
        q, k, v = (f(h).reshape(rows, -1, 1, self.size) for f in (self.q, self.k, self.v))
        kept = cache["keys"].dtype.name
        new = {"keys": put(turned(k, where), kept), "values": put(v, kept)}
        cache = {n: jax.lax.dynamic_update_slice(cache[n], new[n], (0, 0, where, 0)) for n in cache}
        q = turned(q, where).reshape(rows, self.kv, -1, self.size)
        s = jnp.einsum("bhgd,bhcd->bhgc", q, got(cache["keys"])).astype(jnp.float32) * self.size**-0.5
        s = jnp.where(jnp.arange(s.shape[-1]) <= where, s, -1e30)
        o = jnp.einsum("bhgc,bhcd->bhgd", jax.nn.softmax(s).astype(HALF), got(cache["values"]))
        x = x + self.o(o.reshape(rows, -1))
        h = self.norm2(x)
        return x + self.down(nnx.silu(self.gate(h)) * self.up(h)), cache


class Decoder(nnx.Module):
    def __init__(self, words, width, heads, kv, size, hidden, depth, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, heads, kv, size, hidden, rngs) for _ in range(depth)])
        self.norm = nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)

    def __call__(self, words, caches, where):
        x, out = self.embed(words), []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache, where)
            out.append(cache)
        return self.embed.attend(self.norm(x)).astype(jnp.float32), out


def answer(topology, shape, batch, places=3072, words=65536, width=2048, heads=16, kv=8, size=128, hidden=5632, depth=12, end=2, kept="bfloat16", donate=True):
    devices = mesh(topology, shape, ("data", "model"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: Decoder(words, width, heads, kv, size, hidden, depth, nnx.Rngs(0))), nnx.Param, ...)
    rest = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest)

    def where_of(path, leaf):
        name = jax.tree_util.keystr(path)
        if "embed" in name:
            return on("model")
        if leaf.ndim < 2:
            return on()
        return on("model", None) if "'o'" in name or "'down'" in name else on(None, "model")

    params = jax.tree_util.tree_map_with_path(lambda p, a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=where_of(p, a)), params)
    A = lambda s, d, *spec: jax.ShapeDtypeStruct(s, d, sharding=on(*spec))
    caches = [{n: A((batch, kv, places, size), kept, "data", "model") for n in ("keys", "values")} for _ in range(depth)]

    def generate(params, caches, tokens, start, key):
        net = nnx.merge(graph, params, rest)

        def going(s):
            return (s["where"] < places - 1) & ~s["done"].all()

        def word(s):
            last = jax.lax.dynamic_index_in_dim(s["tokens"], s["where"], 1, keepdims=False)
            logits, caches = net(last, s["caches"], s["where"])
            key, use = jax.random.split(s["key"])
            drawn = jnp.where(s["done"], 0, jax.random.categorical(use, logits / 0.7).astype("int32"))
            tokens = jax.lax.dynamic_update_slice(s["tokens"], drawn[:, None], (0, s["where"] + 1))
            return {"caches": caches, "tokens": tokens, "where": s["where"] + 1, "done": s["done"] | (drawn == end), "key": key}

        s = {"caches": caches, "tokens": tokens, "where": start, "done": jnp.zeros(tokens.shape[0], bool), "key": key}
        s = jax.lax.while_loop(going, word, s)
        return s["caches"], s["tokens"], s["where"]

    classify = lambda path: {"[0]": "weight", "[1]": "cache", "[4]": "other"}.get(path[:3], "input")
    args = (params, caches, A((batch, places), "int32", "data"), A((), "int32"), A((), jax.random.key(0).dtype))
    return Program(generate, args, classify, (1,) if donate else (), (shardings(caches), on("data"), on()))
