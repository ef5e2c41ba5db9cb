"""JAX' own ragged paged attention (Pallas): a step of a server of Llama 3.1 8B, words of prompts and of answers mixed, pages of keys and values written in place; heads, hidden and words divided over the chips, in bfloat16."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def step(topology, chips, pages, sequences=256, words_at_once=2048, page=32, pages_each=256, vocabulary=128256, width=4096, heads=32, kv=8, size=128, hidden=14336, depth=32, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))
    layer = lambda: {
        "norm1": W((width,)), "norm2": W((width,)), "q": W((width, heads, size), None, "tp"), "k": W((width, kv, size), None, "tp"), "v": W((width, kv, size), None, "tp"),
        "o": W((heads, size, width), "tp"), "gate": W((width, hidden), None, "tp"), "up": W((width, hidden), None, "tp"), "down": W((hidden, width), "tp")}
    params = {"embed": W((vocabulary, width), None, "tp"), "layers": [layer() for _ in range(depth)], "norm": W((width,)), "head": W((width, vocabulary), None, "tp")}
    caches = [jax.ShapeDtypeStruct((pages, page, 2 * kv, size), kept, sharding=on(None, None, "tp")) for _ in range(depth)]
    I = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=on())
    batch = {"tokens": I(words_at_once), "positions": I(words_at_once), "slots": I(words_at_once), "kv_lens": I(sequences), "page_indices": I(sequences, pages_each), "cu_q_lens": I(sequences + 1), "num_seqs": I(1)}
    scale = {} if kept == "bfloat16" else {"k_scale": 1.0, "v_scale": 1.0}

    def rotated(a, where):
        half = size // 2
        angle = where[:, None, None] * 500000.0 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def attend(q, k, v, cache, b):
        fresh = jnp.stack([k, v], 2).reshape(k.shape[0], -1, size).astype(cache.dtype)  # keys and values by turns
        cache = cache.reshape(-1, *cache.shape[2:]).at[b["slots"]].set(fresh).reshape(cache.shape)
        out = ragged_paged_attention(q, cache, b["kv_lens"], b["page_indices"], b["cu_q_lens"], b["num_seqs"], sm_scale=size**-0.5, num_kv_pages_per_block=16, num_queries_per_block=32, **scale)
        return out, cache

    attend = jax.shard_map(attend, mesh=devices, in_specs=(P(None, "tp"), P(None, "tp"), P(None, "tp"), P(None, None, "tp"), P()), out_specs=(P(None, "tp"), P(None, None, "tp")), check_vma=False)

    def model_step(params, caches, b):
        x, new = params["embed"][b["tokens"]], []
        for w, cache in zip(params["layers"], caches):
            h = rms(x, w["norm1"])
            q, k, v = (jnp.einsum("td,dhk->thk", h, w[n]) for n in "qkv")
            out, cache = attend(rotated(q, b["positions"]), rotated(k, b["positions"]), v, cache, b)
            x = x + jnp.einsum("thk,hkd->td", out, w["o"])
            h = rms(x, w["norm2"])
            x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
            new.append(cache)
        last = rms(x, params["norm"])[b["cu_q_lens"][1:] - 1]
        return new, jnp.argmax((last @ params["head"]).astype(jnp.float32), -1).astype("int32")

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(model_step, (params, caches, batch), classify, (1,) if donate else (), (shardings(caches), on()))
