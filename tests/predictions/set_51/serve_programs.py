"""JAX alone: a server of Qwen2.5 14B reads new prompts (whole, from their beginning) into its slots of the caches, layers by lax.scan, the caches in its carry and written in place, heads, MLP and words divided over 8 chips, in bfloat16."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, flash, rms, shardings, turned
from recipe import Program, mesh


def prefill(topology, chips, slots, prompts, length, vocabulary=152064, width=5120, heads=40, kv=8, size=128, hidden=13824, depth=48, kept="bfloat16", kernel=False, donate=False):
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))
    layers = {
        "norm1": W((depth, width)), "norm2": W((depth, width)),
        "q": W((depth, width, heads, size), None, None, "tp"), "k": W((depth, width, kv, size), None, None, "tp"), "v": W((depth, width, kv, size), None, None, "tp"),
        "q_bias": W((depth, heads, size), None, "tp"), "k_bias": W((depth, kv, size), None, "tp"), "v_bias": W((depth, kv, size), None, "tp"),
        "o": W((depth, heads, size, width), None, "tp"), "gate": W((depth, width, hidden), None, None, "tp"), "up": W((depth, width, hidden), None, None, "tp"), "down": W((depth, hidden, width), None, "tp")}
    params = {"embed": W((vocabulary, width), None, "tp"), "layers": layers, "norm": W((width,)), "head": W((width, vocabulary), None, "tp")}
    C = lambda: jax.ShapeDtypeStruct((depth, slots, kv, length, size), kept, sharding=on(None, None, "tp"))
    caches = {"key": C(), "value": C()}
    I = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=on())
    scale = 1 / 16  # of int8

    def encoded(a):
        return jnp.clip(jnp.round(a / scale), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)

    def attend(q, k, v):
        """Of a device: all its queries' heads share its one of keys and values."""
        repeat = lambda a: jnp.repeat(a, q.shape[2] // a.shape[2], 2)
        return (flash if kernel else causal)(q, repeat(k), repeat(v))

    spec = P(None, None, "tp")
    attend = jax.shard_map(attend, mesh=devices, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)

    def prefill_step(params, caches, tokens, ends, slot):
        """Prompts fill the slots from `slot` on."""
        x = jax.lax.with_sharding_constraint(params["embed"][tokens], on())

        def layer(carry, xs):
            x, caches = carry
            w, i = xs
            h = rms(x, w["norm1"])
            q, k, v = (jnp.einsum("btd,dhk->bthk", h, w[n]) + w[n + "_bias"] for n in "qkv")
            q, k = turned(q, 1e6), turned(k, 1e6)
            put = lambda cache, a: jax.lax.dynamic_update_slice(cache, encoded(a).swapaxes(1, 2)[None], (i, slot, 0, 0, 0))
            caches = {"key": put(caches["key"], k), "value": put(caches["value"], v)}
            x = x + jnp.einsum("bthk,hkd->btd", attend(q, k, v), w["o"])
            h = rms(x, w["norm2"])
            x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
            return (jax.lax.with_sharding_constraint(x, on()), caches), None

        (x, caches), _ = jax.lax.scan(layer, (x, caches), (params["layers"], jnp.arange(depth)))
        last = jnp.take_along_axis(x, ends[:, None, None] - 1, 1)[:, 0]
        logits = (rms(last, params["norm"]) @ params["head"]).astype(jnp.float32)
        return caches, jnp.argmax(logits, -1).astype("int32")

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(prefill_step, (params, caches, I(prompts, length), I(prompts), I()), classify, (1,) if donate else (), (shardings(caches), on()))
