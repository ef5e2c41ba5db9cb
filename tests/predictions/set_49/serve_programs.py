"""JAX alone: a server of Llama 3 8B checks 8 words that a small model has drafted for each of many sequences (speculative decoding), caches in pages of 64 places that tables of pages point to, written in place; tensor parallel, in bfloat16."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def verify(topology, chips, batch, length=8192, drafted=8, page=64, vocabulary=128256, width=4096, heads=32, kv=8, hidden=14336, depth=32, kept="bfloat16", donate=True):
    devices, size = mesh(topology, (chips,), ("x",)), width // heads
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))
    layer = lambda: {
        "norm1": W((width,)), "norm2": W((width,)), "q": W((width, heads, size), None, "x"), "k": W((width, kv, size), None, "x"), "v": W((width, kv, size), None, "x"), "o": W((heads, size, width), "x"),
        "gate": W((width, hidden), None, "x"), "up": W((width, hidden), None, "x"), "down": W((hidden, width), "x")}
    params = {"embed": W((vocabulary, width), "x"), "layers": [layer() for _ in range(depth)], "norm": W((width,)), "head": W((width, vocabulary), None, "x")}
    pool = batch * length // page
    C = lambda: jax.ShapeDtypeStruct((kv, pool, page, size), kept, sharding=on("x"))
    caches = [{"k": C(), "v": C()} for _ in range(depth)]
    I = lambda *s: jax.ShapeDtypeStruct((batch, *s), "int32", sharding=on())
    put = lambda a: jnp.clip(jnp.round(a * 16), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)
    got = lambda a: a.astype(HALF) / 16 if a.dtype == jnp.int8 else a

    def rotated(a, places):
        half = size // 2
        angle = places[..., None, None] * 500000.0 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def attend(w, h, cache, tables, places):
        q = rotated(jnp.einsum("btd,dhk->bthk", h, w["q"]), places)
        k, v = rotated(jnp.einsum("btd,dhk->bthk", h, w["k"]), places), jnp.einsum("btd,dhk->bthk", h, w["v"])
        which, slot = jnp.take_along_axis(tables, places // page, 1), places % page
        store = lambda pages, new: pages.at[:, which, slot].set(put(jnp.moveaxis(new, 2, 0)))
        cache = {"k": store(cache["k"], k), "v": store(cache["v"], v)}
        everything = lambda pages: got(pages[:, tables].reshape(kv, batch, length, size))
        keys, values = everything(cache["k"]), everything(cache["v"])
        q = q.reshape(batch, drafted, kv, heads // kv, size)
        s = jnp.einsum("btgnk,gbsk->bgnts", q, keys).astype(jnp.float32) * size**-0.5
        s = jnp.where(jnp.arange(length) <= places[:, None, None, :, None], s, -1e30)
        o = jnp.einsum("bgnts,gbsk->btgnk", jax.nn.softmax(s).astype(HALF), values).reshape(batch, drafted, heads, size)
        return jnp.einsum("bthk,hkd->btd", o, w["o"]), cache

    def verify_step(params, caches, tokens, tables, where):
        places, x, new = where[:, None] + jnp.arange(drafted), params["embed"][tokens], []
        for w, cache in zip(params["layers"], caches):
            out, cache = attend(w, rms(x, w["norm1"]), cache, tables, places)
            x = x + out
            h = rms(x, w["norm2"])
            x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
            new.append(cache)
        best = jnp.argmax((rms(x, params["norm"]) @ params["head"]).astype(jnp.float32), -1).astype("int32")
        right = jnp.cumprod((best[:, :-1] == tokens[:, 1:]).astype("int32"), 1).sum(1)
        return new, best, where + right + 1

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(verify_step, (params, caches, I(drafted), I(length // page), I()), classify, (1,) if donate else (), (shardings(caches), on(), on()))
