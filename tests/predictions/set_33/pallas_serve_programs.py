"""JAX alone: Mistral Small 24B served with continuous batching: prefill and decode mixed in one step of tokens, pages of keys and values interleaved, the ragged paged attention kernel; tensor parallel."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms
from recipe import Program, mesh


def ragged(topology, chips, tokens=2048, slots=256, pages=10240, page=32, table=256, depth=40, width=5120, heads=32, kv=8, size=128, hidden=32768, words=131072, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("model",))
    A = lambda d, s, *spec: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*spec)))
    W = lambda s, *spec: A("bfloat16", s, *spec)
    layer_of = lambda: {"q_proj": W((width, heads * size), None, "model"), "k_proj": W((width, kv * size), None, "model"), "v_proj": W((width, kv * size), None, "model"), "o_proj": W((heads * size, width), "model"),
                        "gate_proj": W((width, hidden), None, "model"), "up_proj": W((width, hidden), None, "model"), "down_proj": W((hidden, width), "model"), "input_layernorm": W((width,)), "post_attention_layernorm": W((width,))}
    params = {"embed_tokens": W((words, width), None, "model"), "lm_head": W((width, words), None, "model"), "norm": W((width,)), "layers": [layer_of() for _ in range(depth)]}
    caches = [A(kept, (pages, page, 2 * kv, size), None, None, "model") for _ in range(depth)]
    scale = None if kept == "bfloat16" else 1 / 16

    def turn(a, at):  # [tokens, heads, size]
        half = size // 2
        angle = at[:, None, None] * 1e8 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def attend(q, k, v, cache, meta):
        new = jnp.stack([k, v], 2).reshape(k.shape[0], -1, size)
        if scale:
            new = jnp.clip(jnp.round(new / scale), -127, 127)
        flat = cache.reshape(-1, *cache.shape[2:])
        cache = flat.at[meta["slot_mapping"]].set(new.astype(cache.dtype)).reshape(cache.shape)
        out = ragged_paged_attention(q, cache, meta["kv_lens"], meta["page_indices"], meta["cu_q_lens"], meta["num_seqs"], sm_scale=size**-0.5, k_scale=scale, v_scale=scale, num_kv_pages_per_block=16, num_queries_per_block=32, vmem_limit_bytes=64 << 20)
        return out, cache

    by = P(None, "model")
    attention = jax.shard_map(attend, mesh=devices, in_specs=(by, by, by, P(None, None, "model"), P()), out_specs=(by, P(None, None, "model")), check_vma=False)

    def step(params, kv_caches, ids, positions, meta):
        x, out = params["embed_tokens"][ids], []
        for w, cache in zip(params["layers"], kv_caches):
            h = rms(x, w["input_layernorm"])
            q, k, v = ((h @ w[n]).reshape(tokens, -1, size) for n in ("q_proj", "k_proj", "v_proj"))
            o, cache = attention(turn(q, positions), turn(k, positions), v, cache, meta)
            out.append(cache)
            x = x + o.reshape(tokens, -1) @ w["o_proj"]
            h = rms(x, w["post_attention_layernorm"])
            x = x + (jax.nn.silu(h @ w["gate_proj"]) * (h @ w["up_proj"])) @ w["down_proj"]
        last = rms(x, params["norm"])[meta["cu_q_lens"][1:] - 1]
        return jnp.argmax(last @ params["lm_head"], -1), out

    step.__name__ = "model_step"
    I = lambda *s: A("int32", s)
    meta = {"slot_mapping": I(tokens), "kv_lens": I(slots), "page_indices": I(slots, table), "cu_q_lens": I(slots + 1), "num_seqs": I(1)}
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(step, (params, caches, I(tokens), I(tokens), meta), classify, (1,) if donate else (), (None, [c.sharding for c in caches]))
