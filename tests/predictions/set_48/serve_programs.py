"""JAX alone: one word more for every sequence of a server of Llama 3.1 8B with 64 users' adapters (LoRA of rank 16 on all seven matrices, each sequence its own, taken by its number), heads and MLP divided over 8 chips, caches written in place, in bfloat16."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def lora(topology, chips, batch, length=8192, users=64, rank=16, vocabulary=128256, width=4096, heads=32, kv=8, size=128, hidden=14336, depth=32, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))
    shapes = {"q": (width, heads * size), "k": (width, kv * size), "v": (width, kv * size), "o": (heads * size, width), "gate": (width, hidden), "up": (width, hidden), "down": (hidden, width)}
    rows = ("o", "down")  # their first dimension is divided; of the others, the second

    def weights():
        made = {name: W(shape, "tp") if name in rows else W(shape, None, "tp") for name, shape in shapes.items()}
        return made | {"norm1": W((width,)), "norm2": W((width,))}

    def adapter(name):
        a, b = shapes[name]
        if name in rows:
            return {"a": W((users, rank, a), None, None, "tp"), "b": W((users, rank, b))}
        return {"a": W((users, rank, a)), "b": W((users, rank, b), None, None, "tp")}

    params = {"embed": W((vocabulary, width), None, "tp"), "layers": [weights() for _ in range(depth)], "norm": W((width,)), "head": W((width, vocabulary), None, "tp")}
    adapters = [{name: adapter(name) for name in shapes} for _ in range(depth)]
    C = lambda: jax.ShapeDtypeStruct((batch, kv, length, size), kept, sharding=on(None, "tp"))
    caches = [{"key": C(), "value": C()} for _ in range(depth)]
    I = lambda: jax.ShapeDtypeStruct((batch,), "int32", sharding=on())
    scale = 1 / 16  # of int8

    def rotated(a, where):
        half = size // 2
        angle = where[:, None, None] * 500000.0 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def through(w, more, name, x, who):
        down = jnp.einsum("bi,bri->br", x, more[name]["a"][who])
        return x @ w[name] + jnp.einsum("br,bro->bo", down, more[name]["b"][who])

    def encoded(a):
        return jnp.clip(jnp.round(a / scale), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)

    def decoded(a):
        return a.astype(HALF) * scale if kept == "int8" else a.astype(HALF)

    def attend(w, more, h, cache, where, who):
        q = rotated(through(w, more, "q", h, who).reshape(batch, heads, size), where).reshape(batch, kv, heads // kv, size)
        k = rotated(through(w, more, "k", h, who).reshape(batch, kv, size), where)
        v = through(w, more, "v", h, who).reshape(batch, kv, size)
        store = jax.vmap(lambda a, b, i: jax.lax.dynamic_update_slice(a, b[:, None], (0, i, 0)))
        cache = {"key": store(cache["key"], encoded(k), where), "value": store(cache["value"], encoded(v), where)}
        s = jnp.einsum("bngd,bntd->bngt", q, decoded(cache["key"])).astype(jnp.float32) * size**-0.5
        s = jnp.where(jnp.arange(length) <= where[:, None, None, None], s, -1e30)
        o = jnp.einsum("bngt,bntd->bngd", jax.nn.softmax(s).astype(HALF), decoded(cache["value"]))
        return through(w, more, "o", o.reshape(batch, heads * size), who), cache

    def decode_step(params, adapters, caches, tokens, where, who):
        x, new = jax.lax.with_sharding_constraint(params["embed"][tokens], on()), []
        for w, more, cache in zip(params["layers"], adapters, caches):
            out, cache = attend(w, more, rms(x, w["norm1"]), cache, where, who)
            x = x + out
            h = rms(x, w["norm2"])
            x = x + through(w, more, "down", jax.nn.silu(through(w, more, "gate", h, who)) * through(w, more, "up", h, who), who)
            new.append(cache)
        logits = rms(x, params["norm"]) @ params["head"]
        return new, jnp.argmax(logits.astype(jnp.float32), -1).astype("int32"), where + 1

    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "cache"}.get(path[:3], "input")
    return Program(decode_step, (params, adapters, caches, I(), I(), I()), classify, (2,) if donate else (), (shardings(caches), on(), on()))
