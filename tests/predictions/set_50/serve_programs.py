"""JAX alone: beam search (4 beams) of Llama 3.1 8B for 32 texts at once, its words to 8192 by one while loop, its caches taken anew in the order of the beams after each word; heads and MLP divided over 8 chips, in bfloat16."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def beam(topology, chips, batch, beams=4, length=3072, vocabulary=128256, width=4096, heads=32, kv=8, size=128, hidden=14336, depth=32, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))
    layer = lambda: {
        "norm1": W((width,)), "norm2": W((width,)), "q": W((width, heads, size), None, "tp"), "k": W((width, kv, size), None, "tp"), "v": W((width, kv, size), None, "tp"),
        "o": W((heads, size, width), "tp"), "gate": W((width, hidden), None, "tp"), "up": W((width, hidden), None, "tp"), "down": W((hidden, width), "tp")}
    params = {"embed": W((vocabulary, width), None, "tp"), "layers": [layer() for _ in range(depth)], "norm": W((width,)), "head": W((width, vocabulary), None, "tp")}
    C = lambda: jax.ShapeDtypeStruct((batch, beams, kv, length, size), kept, sharding=on(None, None, "tp"))
    caches = [{"key": C(), "value": C()} for _ in range(depth)]
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on())
    beams_state = {"words": A("int32", batch, beams, length), "scores": A("float32", batch, beams), "ended": A("bool", batch, beams), "at": A("int32")}
    end, scale = 128001, 1 / 16  # of int8

    def rotated(a, at):
        half = size // 2
        angle = at * 500000.0 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    encoded = lambda a: jnp.clip(jnp.round(a / scale), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)
    decoded = lambda a: a.astype(HALF) * scale if kept == "int8" else a.astype(HALF)

    def attend(w, h, cache, at):
        q, k, v = (jnp.einsum("bmd,dhk->bmhk", h, w[n]) for n in "qkv")
        q, k = rotated(q, at).reshape(batch, beams, kv, heads // kv, size), rotated(k, at)
        store = lambda a, b: jax.lax.dynamic_update_slice(a, encoded(b)[:, :, :, None], (0, 0, 0, at, 0))
        cache = {"key": store(cache["key"], k), "value": store(cache["value"], v)}
        s = jnp.einsum("bmngd,bmntd->bmngt", q, decoded(cache["key"])).astype(jnp.float32) * size**-0.5
        s = jnp.where(jnp.arange(length) <= at, s, -1e30)
        o = jnp.einsum("bmngt,bmntd->bmngd", jax.nn.softmax(s).astype(HALF), decoded(cache["value"]))
        return jnp.einsum("bmhk,hkd->bmd", o.reshape(batch, beams, heads, size), w["o"]), cache

    def forward(params, caches, tokens, at):
        x, new = jax.lax.with_sharding_constraint(params["embed"][tokens], on()), []
        for w, cache in zip(params["layers"], caches):
            o, cache = attend(w, rms(x, w["norm1"]), cache, at)
            x = x + o
            h = rms(x, w["norm2"])
            x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
            new.append(cache)
        return (rms(x, params["norm"]) @ params["head"]).astype(jnp.float32), new

    def beam_search(params, caches, state):
        def body(carry):
            caches, s = carry
            tokens = jax.lax.dynamic_index_in_dim(s["words"], s["at"], 2, False)
            logits, caches = forward(params, caches, tokens, s["at"])
            logps = jax.nn.log_softmax(logits)
            only_end = jnp.where(jnp.arange(vocabulary) == end, 0.0, -1e30)
            totals = s["scores"][..., None] + jnp.where(s["ended"][..., None], only_end, logps)
            scores, best = jax.lax.top_k(totals.reshape(batch, -1), beams)
            parent, word = best // vocabulary, (best % vocabulary).astype("int32")
            order = lambda a: jnp.take_along_axis(a, parent.reshape(batch, beams, *[1] * (a.ndim - 2)), 1)
            caches = jax.tree.map(order, caches)
            words = jax.lax.dynamic_update_slice(order(s["words"]), word[..., None], (0, 0, s["at"] + 1))
            return caches, {"words": words, "scores": scores, "ended": order(s["ended"]) | (word == end), "at": s["at"] + 1}

        return jax.lax.while_loop(lambda c: (c[1]["at"] < length - 1) & ~c[1]["ended"].all(), body, (caches, state))

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(beam_search, (params, caches, beams_state), classify, (1, 2) if donate else (), (shardings(caches), shardings(beams_state)))
