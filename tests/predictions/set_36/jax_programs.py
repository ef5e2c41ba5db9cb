"""JAX alone: a round of speculative decoding, Llama 3.1 8B with a draft like Llama 3.2 1B: four words drafted greedily, all seen by the large model at once; tensor parallel, both caches together."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh

LARGE = dict(depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336)
DRAFT = dict(depth=16, width=2048, heads=32, kv=8, size=64, hidden=8192)


def turned(a, where):
    """[slots, time, heads, size], of positions [slots, time]."""
    half = a.shape[-1] // 2
    angle = where[..., None, None] * 500000.0 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


def speculate(topology, chips, slots, context=4096, words=128256, ahead=4, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("model",))
    A = lambda d, s, *spec: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*spec)))
    every = jnp.arange(slots)[:, None]

    def weights(depth, width, heads, kv, size, hidden):
        W = lambda s, *spec: A("bfloat16", s, *spec)
        layers = {"wq": W((depth, width, heads, size), None, None, "model"), "wk": W((depth, width, kv, size), None, None, "model"), "wv": W((depth, width, kv, size), None, None, "model"), "wo": W((depth, heads, size, width), None, "model"),
                  "gate": W((depth, width, hidden), None, None, "model"), "up": W((depth, width, hidden), None, None, "model"), "down": W((depth, hidden, width), None, "model"), "norm1": W((depth, width)), "norm2": W((depth, width))}
        return {"embed": W((words, width), "model"), "head": W((width, words), None, "model"), "norm": W((width,)), "layers": layers}

    def caches(depth, kv, size, **_):
        return {n: A(kept, (depth, slots, kv, context, size), None, None, "model") for n in ("keys", "values")}

    def put(a):
        return jnp.clip(jnp.round(a * 16), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)

    def got(a):
        return a.astype(HALF) / 16 if kept == "int8" else a.astype(HALF)

    def forward(params, cache, tokens, lengths, depth, kv, size, heads, **_):
        where = lengths[:, None] + jnp.arange(tokens.shape[1])  # [slots, time]

        def layer(carry, xs):
            x, cache = carry
            i, w = xs
            h = rms(x, w["norm1"])
            q, k, v = (jnp.einsum("std,dhk->sthk", h, w[n]) for n in ("wq", "wk", "wv"))
            q, k = turned(q, where).reshape(*where.shape, kv, heads // kv, size), turned(k, where)
            new = {"keys": put(k), "values": put(v)}
            cache = {n: cache[n].at[i, every, :, where].set(new[n]) for n in cache}
            s = jnp.einsum("sthgk,shck->shgtc", q, got(cache["keys"][i])).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(context) <= where[:, None, None, :, None], s, -1e30)
            o = jnp.einsum("shgtc,shck->sthgk", jax.nn.softmax(s).astype(HALF), got(cache["values"][i]))
            x = x + jnp.einsum("sthk,hkd->std", o.reshape(*where.shape, heads, size), w["wo"])
            h = rms(x, w["norm2"])
            return (x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], cache), None

        (x, cache), _ = jax.lax.scan(layer, (params["embed"][tokens], cache), (jnp.arange(depth), params["layers"]))
        return jnp.argmax(rms(x, params["norm"]) @ params["head"], -1).astype(jnp.int32), cache

    def speculative_round(params, cache, tokens, lengths):
        def guess(carry, i):
            small, last = carry
            word, small = forward(params["draft"], small, last[:, None], lengths + i, **DRAFT)
            return (small, word[:, 0]), word[:, 0]

        (small, _), drafted = jax.lax.scan(guess, (cache["draft"], tokens), jnp.arange(ahead))
        drafted = drafted.T
        seen, large = forward(params["large"], cache["large"], jnp.concatenate([tokens[:, None], drafted], 1), lengths, **LARGE)
        right = jnp.cumprod(drafted == seen[:, :-1], 1).sum(1)
        last = jnp.take_along_axis(seen, right[:, None], 1)[:, 0]
        return {"large": large, "draft": small}, last, lengths + right + 1, seen

    params = {"large": weights(**LARGE), "draft": weights(**DRAFT)}
    cache = {"large": caches(**LARGE), "draft": caches(**DRAFT)}
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(speculative_round, (params, cache, A("int32", (slots,)), A("int32", (slots,))), classify, (1,) if donate else (), (shardings(cache), None, None, None))
