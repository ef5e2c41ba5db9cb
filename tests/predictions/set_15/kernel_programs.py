"""JAX's own paged attention in a decoding loop; every layer's cache is a part of one array, which a scan over the layers takes and gives."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms
from recipe import Program, mesh


def paged(topology, tp, depth, width, heads, kv, size, hidden, pages, page, seqs, length, vocabulary, steps, donate=False):
    """`steps` tokens of `seqs` sequences, greedily; a sequence has length / page pages."""
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    devices = mesh(topology, (tp,), ("model",))
    sd = lambda s, d, *p: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*p)))
    H = "bfloat16"
    layers = dict(
        q=sd((depth, width, heads, size), H, None, None, "model"), k=sd((depth, width, kv, size), H, None, None, "model"),
        v=sd((depth, width, kv, size), H, None, None, "model"), o=sd((depth, heads, size, width), H, None, "model"),
        gate=sd((depth, width, hidden), H, None, None, "model"), up=sd((depth, width, hidden), H, None, None, "model"),
        down=sd((depth, hidden, width), H, None, "model"), norm1=sd((depth, width), H), norm2=sd((depth, width), H))
    params = dict(embed=sd((vocabulary, width), H, "model"), norm=sd((width,), H), layers=layers)
    cache = {name: sd((depth, kv, pages, page, size), H, None, "model") for name in ("k_pages", "v_pages")}
    meta = dict(lengths=sd((seqs,), "int32"), page_indices=sd((seqs, length // page), "int32"))
    attend = jax.shard_map(
        lambda q, k, v, n, i: paged_attention(q, k, v, n, i, pages_per_compute_block=4), mesh=devices,
        in_specs=(P(None, "model"), P("model"), P("model"), P(), P()), out_specs=P(None, "model"), check_vma=False)

    def decode(params, cache, tokens, meta):
        def one(i, carry):
            cache, tokens, answer = carry
            lengths = meta["lengths"] + i
            place = jnp.take_along_axis(meta["page_indices"], (lengths // page)[:, None], 1)[:, 0]

            def layer(x, scanned):
                w, c = scanned
                h = rms(x, w["norm1"])
                q, k, v = (jnp.einsum("sd,dhk->shk", h, w[n]) for n in "qkv")
                put = lambda a, new: a.at[:, place, lengths % page].set(new.swapaxes(0, 1))
                c = {"k_pages": put(c["k_pages"], k), "v_pages": put(c["v_pages"], v)}
                x = x + jnp.einsum("shk,hkd->sd", attend(q * size**-0.5, c["k_pages"], c["v_pages"], lengths + 1, meta["page_indices"]).astype(HALF), w["o"])
                h = rms(x, w["norm2"])
                return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], c

            x, cache = jax.lax.scan(layer, params["embed"][tokens], (params["layers"], cache))
            tokens = jnp.argmax(rms(x, params["norm"]) @ params["embed"].T, -1).astype(jnp.int32)
            return cache, tokens, answer.at[:, i].set(tokens)

        return jax.lax.fori_loop(0, steps, one, (cache, tokens, jnp.zeros((seqs, steps), "int32")))

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode, (params, cache, sd((seqs,), "int32"), meta), classify, (1,) if donate else ())
