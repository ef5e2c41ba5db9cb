"""JAX alone: Qwen 2.5 32B served with weights in int8 and a scale for each column, tensor parallel, one word with caches [layers, batch, length, heads, size]."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms
from recipe import Program, mesh


def serve(topology, chips, batch, length=8192, words=152064, width=5120, heads=40, kv=8, hidden=27648, depth=64, cache_type="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("model",))
    where = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda d, spec, *s: jax.ShapeDtypeStruct(s, d, sharding=where(*spec))
    size, group, step = width // heads, heads // kv, 1 / 16
    size = 128

    def lin(rows, columns, axis):  # axis: which of the two is divided
        return {"kernel": F("int8", (None, "model", None) if axis == 0 else (None, None, "model"), depth, rows, columns),
                "scale": F("float32", (None, None) if axis == 0 else (None, "model"), depth, columns)}

    layers = {"q_proj": lin(width, heads * size, 1), "k_proj": lin(width, kv * size, 1), "v_proj": lin(width, kv * size, 1), "o_proj": lin(heads * size, width, 0),
              "gate_proj": lin(width, hidden, 1), "up_proj": lin(width, hidden, 1), "down_proj": lin(hidden, width, 0),
              "input_layernorm": F("bfloat16", (), depth, width), "post_attention_layernorm": F("bfloat16", (), depth, width),
              "q_bias": F("bfloat16", (None, "model"), depth, heads * size), "k_bias": F("bfloat16", (None, "model"), depth, kv * size), "v_bias": F("bfloat16", (None, "model"), depth, kv * size)}
    params = {"embed_tokens": F("bfloat16", (None, "model"), words, width), "lm_head": {"kernel": F("int8", (None, "model"), width, words), "scale": F("float32", ("model",), words)},
              "norm": F("bfloat16", (), width), "layers": layers}
    spec = (None, None, None, "model", None)
    cache = {"key": F(cache_type, spec, depth, batch, length, kv, size), "value": F(cache_type, spec, depth, batch, length, kv, size)}

    def dot(x, w):  # the input in int8 as well, a scale for each row
        top = jnp.max(jnp.abs(x.astype(jnp.float32)), -1, keepdims=True) / 127 + 1e-8
        y = jax.lax.dot_general(jnp.round(x / top).astype(jnp.int8), w["kernel"], (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        return (y.astype(jnp.float32) * top * w["scale"]).astype(HALF)

    def turn(a, at):  # [batch, heads, size]
        half = size // 2
        angle = at[:, None, None] * 1e6 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def packed(a):
        return a.astype(HALF) if cache_type == "bfloat16" else jnp.clip(jnp.round(a / step), -127, 127).astype(cache_type)

    def unpacked(a):
        return a if cache_type == "bfloat16" else a.astype(HALF) * HALF(step)

    def decode_step(params, cache, tokens, positions):
        x = params["embed_tokens"][tokens]
        rows = jnp.arange(batch)

        def layer(number, carry):
            x, keys, values = carry
            w = jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, number, 0, keepdims=False), params["layers"])
            h = rms(x, w["input_layernorm"])
            q, k, v = ((dot(h, w[n + "_proj"]) + w[n + "_bias"]).reshape(batch, -1, size) for n in "qkv")
            q, k = turn(q, positions), turn(k, positions)
            keys = keys.at[number, rows, positions].set(packed(k))
            values = values.at[number, rows, positions].set(packed(v))
            k, v = (unpacked(jax.lax.dynamic_index_in_dim(a, number, 0, keepdims=False)) for a in (keys, values))
            scores = jnp.einsum("bkgd,btkd->bkgt", q.reshape(batch, kv, group, size), k).astype(jnp.float32) * size**-0.5
            scores = jnp.where(jnp.arange(length) <= positions[:, None, None, None], scores, -1e30)
            seen = jnp.einsum("bkgt,btkd->bkgd", jax.nn.softmax(scores).astype(HALF), v)
            x = x + dot(seen.reshape(batch, -1), w["o_proj"])
            h = rms(x, w["post_attention_layernorm"])
            return x + dot(jax.nn.silu(dot(h, w["gate_proj"])) * dot(h, w["up_proj"]), w["down_proj"]), keys, values

        x, keys, values = jax.lax.fori_loop(0, depth, layer, (x, cache["key"], cache["value"]))
        logits = dot(rms(x, params["norm"]), params["lm_head"])
        return jnp.argmax(logits, -1), {"key": keys, "value": values}, positions + 1

    A = lambda: F("int32", (), batch)
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = (where(), jax.tree.map(lambda a: a.sharding, cache), where())
    return Program(decode_step, (params, cache, A(), A()), classify, (1,) if donate else (), outs)
