"""JAX's own ragged paged attention while serving (the layers around it put together by us)."""
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
from pieces import rms
from recipe import Program, mesh


def serving(topology, tp, depth, width, heads, kv, size, hidden, pages, page, seqs, toks, vocabulary, cache="bfloat16", donate=False):
    """Layers as of a large Qwen 2.5 over jax's ragged_paged_attention; prefill and decode mixed."""
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
    m = mesh(topology, (tp,), ("model",)); sd = lambda s, d, *p: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(m, P(*p))); H = "bfloat16"
    layer = lambda: dict(q_proj=sd((width, heads, size), H, None, "model"), k_proj=sd((width, kv, size), H, None, "model"), v_proj=sd((width, kv, size), H, None, "model"), o_proj=sd((heads, size, width), H, "model"),
                         gate=sd((width, hidden), H, None, "model"), up=sd((width, hidden), H, None, "model"), down=sd((hidden, width), H, "model"), norm1=sd((width,), H), norm2=sd((width,), H))
    weights = dict(embed=sd((vocabulary, width), H, "model"), layers=[layer() for _ in range(depth)], lm_head=sd((width, vocabulary), H, None, "model"))
    caches = [sd((pages, page, 2 * kv, size), cache, None, None, "model") for _ in range(depth)]
    meta = dict(kv_lens=sd((seqs,), "int32"), page_indices=sd((seqs, pages // seqs), "int32"), cu_q_lens=sd((seqs + 1,), "int32"), num_seqs=sd((1,), "int32"), slot_mapping=sd((toks,), "int32"))
    scale = {} if cache == H else {"k_scale": 1.0, "v_scale": 1.0}
    attend = jax.shard_map(lambda q, c, a, b, d, e: ragged_paged_attention(q, c, a, b, d, e, sm_scale=size ** -0.5, num_kv_pages_per_block=4, num_queries_per_block=32, vmem_limit_bytes=48 << 20, **scale), mesh=m,
                           in_specs=(P(None, "model"), P(None, None, "model"), P(), P(), P(), P()), out_specs=P(None, "model"), check_vma=False)

    def step(weights, kv_caches, input_ids, metadata):
        x = weights["embed"][input_ids]; out = []
        for w, c in zip(weights["layers"], kv_caches):
            h = rms(x, w["norm1"])
            q, k, v = (jnp.einsum("td,dhk->thk", h, w[n]) for n in ("q_proj", "k_proj", "v_proj"))
            new = jnp.stack([k, v], 2).reshape(toks, 2 * kv, size).astype(c.dtype)
            c = c.reshape(-1, 2 * kv, size).at[metadata["slot_mapping"]].set(new).reshape(c.shape); out.append(c)
            x = x + jnp.einsum("thk,hkd->td", attend(q, c, *(metadata[n] for n in ("kv_lens", "page_indices", "cu_q_lens", "num_seqs"))), w["o_proj"])
            h = rms(x, w["norm2"]); x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
        last = x[metadata["cu_q_lens"][1:] - 1]
        return out, jnp.argmax(last @ weights["lm_head"], -1)

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(step, (weights, caches, sd((toks,), "int32"), meta), classify, (1,) if donate else ())
