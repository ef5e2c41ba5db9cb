"""JAX alone: a server of Llama 3.3 70B says one word more of each of its texts: 80 layers by lax.scan over stacked weights and caches of 4096 places, heads and MLP divided over 8 chips, in bfloat16; the caches are not donated."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def llama(topology, chips, batch, length=4096, vocabulary=128256, width=8192, heads=64, kv=8, size=128, hidden=28672, depth=80, kept="bfloat16", donate=False, carried=False):
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))
    layers = {
        "norm1": W((depth, width)), "norm2": W((depth, width)), "q": W((depth, width, heads, size), None, None, "tp"), "k": W((depth, width, kv, size), None, None, "tp"),
        "v": W((depth, width, kv, size), None, None, "tp"), "o": W((depth, heads, size, width), None, "tp"), "gate": W((depth, width, hidden), None, None, "tp"),
        "up": W((depth, width, hidden), None, None, "tp"), "down": W((depth, hidden, width), None, "tp")}
    params = {"embed": W((vocabulary, width), None, "tp"), "layers": layers, "norm": W((width,)), "head": W((width, vocabulary), None, "tp")}
    C = lambda: jax.ShapeDtypeStruct((depth, batch, kv, length, size), kept, sharding=on(None, None, "tp"))
    caches = {"key": C(), "value": C()}
    A = lambda d: jax.ShapeDtypeStruct((batch,), d, sharding=on())
    scale = 1 / 16  # of int8

    def turned(a, at):
        half = size // 2
        angle = at[:, None, None] * 500000.0 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    encoded = lambda a: jnp.clip(jnp.round(a / scale), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)
    decoded = lambda a: a.astype(HALF) * scale if kept == "int8" else a.astype(HALF)

    def decode_step(params, caches, tokens, at):
        store = jax.vmap(lambda a, b, i: jax.lax.dynamic_update_slice(a, encoded(b)[:, None], (0, i, 0)))

        def layer(x, xs):
            w, cache = xs
            h = rms(x, w["norm1"])
            q, k, v = (jnp.einsum("bd,dhk->bhk", h, w[n]) for n in "qkv")
            q, k = turned(q, at).reshape(batch, kv, heads // kv, size), turned(k, at)
            cache = {"key": store(cache["key"], k, at), "value": store(cache["value"], v, at)}
            s = jnp.einsum("bngd,bntd->bngt", q, decoded(cache["key"])).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(length) <= at[:, None, None, None], s, -1e30)
            o = jnp.einsum("bngt,bntd->bngd", jax.nn.softmax(s).astype(HALF), decoded(cache["value"]))
            x = x + jnp.einsum("bhk,hkd->bd", o.reshape(batch, heads, size), w["o"])
            h = rms(x, w["norm2"])
            return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], cache

        x = jax.lax.with_sharding_constraint(params["embed"][tokens], on())
        if carried:
            def carry(state, xs):
                x, caches = state
                w, i = xs
                own = jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, i, keepdims=False), caches)
                x, own = layer(x, (w, own))
                return (x, jax.tree.map(lambda a, b: jax.lax.dynamic_update_index_in_dim(a, b, i, 0), caches, own)), None

            (x, caches), _ = jax.lax.scan(carry, (x, caches), (params["layers"], jnp.arange(depth)))
        else:
            x, caches = jax.lax.scan(layer, x, (params["layers"], caches))
        logits = (rms(x, params["norm"]) @ params["head"]).astype(jnp.float32)
        return caches, jnp.argmax(logits, -1).astype("int32"), at + 1

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode_step, (params, caches, A("int32"), A("int32")), classify, (1,) if donate else (), (shardings(caches), on(), on()))
