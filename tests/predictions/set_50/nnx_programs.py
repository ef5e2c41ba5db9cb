"""Flax NNX: a server of a vision-language model as LLaVA-OneVision 7B (SigLIP so400m on pictures of 384, Qwen2 7B) reads 1024 words more of every prompt, the first 729 of them a picture; caches of 16384 places; heads and MLP divided over 4 chips, the picture encoder whole and its pictures divided, in bfloat16."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh, placed


def linear(a, b, rngs, bias=True):
    return nnx.Linear(a, b, use_bias=bias, dtype=HALF, param_dtype=HALF, rngs=rngs)


class Seer(nnx.Module):
    """One layer of SigLIP."""

    def __init__(self, width, hidden, heads, rngs):
        self.norm1, self.norm2 = (nnx.LayerNorm(width, epsilon=1e-6, dtype=HALF, param_dtype=HALF, rngs=rngs) for _ in range(2))
        self.query, self.key, self.value, self.out = (linear(width, width, rngs) for _ in range(4))
        self.up, self.down = linear(width, hidden, rngs), linear(hidden, width, rngs)
        self.heads = heads

    def __call__(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).reshape(*h.shape[:2], self.heads, -1) for f in (self.query, self.key, self.value))
        x = x + self.out(jax.nn.dot_product_attention(q, k, v).reshape(x.shape))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class Sight(nnx.Module):
    def __init__(self, width, hidden, heads, depth, places, rngs):
        self.patches = nnx.Conv(3, width, (14, 14), (14, 14), padding="VALID", dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.places = nnx.Param(jnp.zeros((places, width), HALF))

        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def create(rngs):
            return Seer(width, hidden, heads, rngs)

        self.layers = create(rngs)
        self.norm = nnx.LayerNorm(width, epsilon=1e-6, dtype=HALF, param_dtype=HALF, rngs=rngs)

    def __call__(self, pictures):
        x = self.patches(pictures.astype(HALF))
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + self.places[...]
        run = nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(lambda x, layer: layer(x))
        return self.norm(run(x, self.layers))


def turned(a, where):
    half = a.shape[-1] // 2
    angle = where[..., None, None] * 1e6 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


class Layer(nnx.Module):
    """One layer of Qwen2."""

    def __init__(self, width, hidden, heads, kv, size, rows, rngs):
        norm = lambda: nnx.RMSNorm(width, epsilon=1e-6, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.norm1, self.norm2 = norm(), norm()
        self.query, self.key, self.value = linear(width, heads * size, rngs), linear(width, kv * size, rngs), linear(width, kv * size, rngs)
        self.out = linear(heads * size, width, rngs, False)
        self.gate, self.up, self.down = linear(width, hidden, rngs, False), linear(width, hidden, rngs, False), linear(hidden, width, rngs, False)
        self.heads, self.kv, self.size, self.rows = heads, kv, size, rows

    def attend(self, x, cache, start):
        batch, words, _ = x.shape
        where = start[:, None] + jnp.arange(words)
        q = turned(self.query(x).reshape(batch, words, self.heads, self.size), where).reshape(batch, words, self.kv, -1, self.size)
        k = turned(self.key(x).reshape(batch, words, self.kv, self.size), where)
        v = self.value(x).reshape(batch, words, self.kv, self.size)
        store = jax.vmap(lambda a, b, i: jax.lax.dynamic_update_slice(a, b.swapaxes(0, 1).astype(a.dtype), (0, i, 0)))
        cache = {"key": store(cache["key"], k, start), "value": store(cache["value"], v, start)}
        places = jnp.arange(cache["key"].shape[2])

        def part(q, where):
            s = jnp.einsum("btngd,bnsd->bngts", q, cache["key"]).astype(jnp.float32) * self.size**-0.5
            s = jnp.where(places <= where[:, None, None, :, None], s, -1e30)
            return jnp.einsum("bngts,bnsd->btngd", jax.nn.softmax(s).astype(HALF), cache["value"])

        if self.rows:
            cut = lambda a: jnp.moveaxis(a.reshape(batch, words // self.rows, self.rows, *a.shape[2:]), 1, 0)
            o = jnp.moveaxis(jax.lax.map(lambda pair: part(*pair), (cut(q), cut(where))), 0, 1)
        else:
            o = part(q, where)
        return self.out(o.reshape(batch, words, -1)), cache

    def __call__(self, x, cache, start):
        o, cache = self.attend(self.norm1(x), cache, start)
        x = x + o
        h = self.norm2(x)
        return x + self.down(nnx.silu(self.gate(h)) * self.up(h)), cache


class VLM(nnx.Module):
    def __init__(self, depth, seers, rows, rngs):
        width = 3584
        self.sight = Sight(1152, 4304, 16, seers, 729, rngs)
        self.project1, self.project2 = linear(1152, width, rngs), linear(width, width, rngs)
        self.embed = nnx.Embed(152064, width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, 18944, 28, 4, 128, rows, rngs) for _ in range(depth)])
        self.norm = nnx.RMSNorm(width, epsilon=1e-6, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.head = linear(width, 152064, rngs, False)

    def __call__(self, caches, pictures, tokens, start, apart, together):
        seen = self.sight(jax.lax.with_sharding_constraint(pictures, apart))
        seen = self.project2(nnx.gelu(self.project1(seen)))
        x = self.embed(tokens)
        x = jax.lax.with_sharding_constraint(jnp.concatenate([seen, x[:, seen.shape[1]:]], 1), together)
        new = []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache, start)
            new.append(cache)
        return new, jnp.argmax(self.head(self.norm(x[:, -1])).astype(jnp.float32), -1).astype("int32")


def vlm(topology, chips, batch, words=1024, length=16384, depth=28, seers=27, rows=0, donate=False):
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    model = nnx.eval_shape(lambda: VLM(depth, seers, rows, nnx.Rngs(0)))
    graph, state = nnx.split(model)

    def where(path, leaf):
        if "sight" in path or "project" in path or "norm" in path:
            return on()
        if "embedding" in path:
            return on(None, "tp")
        if "'out'" in path or "'down'" in path:
            return on("tp", None)
        return on(None, "tp") if leaf.ndim == 2 else on("tp")

    params = placed(nnx.to_pure_dict(state), where)
    C = lambda: jax.ShapeDtypeStruct((batch, 4, length, 128), HALF, sharding=on(None, "tp"))
    caches = [{"key": C(), "value": C()} for _ in range(depth)]
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=on())

    def prefill(params, caches, pictures, tokens, start):
        state = nnx.state(model)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(graph, state)(caches, pictures, tokens, start, on("tp"), on())

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(prefill, (params, caches, S("float32", 384, 384, 3), S("int32", words), S("int32")), classify, (1,) if donate else (), (shardings(caches), on()))
