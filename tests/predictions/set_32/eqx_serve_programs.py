"""Equinox: Llama 3.1 8B served with weights in int8 and a scale for each row of output, tensor parallel, layers in a list, a cache [batch, length, heads, size] for each."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from eqx_programs import rms
from pieces import HALF
from recipe import Program, mesh, placed


class Int8Linear(eqx.Module):
    weight_q: jax.Array
    scale: jax.Array

    def __init__(self, columns, rows):
        self.weight_q, self.scale = jnp.zeros((rows, columns), jnp.int8), jnp.zeros((rows,), HALF)

    def __call__(self, x):
        return jnp.einsum("bi,oi->bo", x, self.weight_q.astype(HALF)) * self.scale


class Attention(eqx.Module):
    q_proj: Int8Linear
    k_proj: Int8Linear
    v_proj: Int8Linear
    o_proj: Int8Linear
    size: int = eqx.field(static=True)

    def __init__(self, width, heads, kv):
        self.size = width // heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = Int8Linear(width, width), Int8Linear(width, kv * self.size), Int8Linear(width, kv * self.size), Int8Linear(width, width)

    def __call__(self, x, cache, at):
        def turn(a):
            half = self.size // 2
            angle = at[:, None, None] * 5e5 ** (-jnp.arange(half) / half)
            s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
            return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

        q, k, v = (f(x).reshape(x.shape[0], -1, self.size) for f in (self.q_proj, self.k_proj, self.v_proj))
        put = jax.vmap(lambda c, new, i: jax.lax.dynamic_update_slice(c, new[None].astype(c.dtype), (i, 0, 0)))
        cache = {"k": put(cache["k"], turn(k), at), "v": put(cache["v"], v, at)}
        q = turn(q).reshape(x.shape[0], cache["k"].shape[2], -1, self.size)
        scores = jnp.einsum("bkgd,btkd->bkgt", q, cache["k"].astype(HALF)).astype(jnp.float32) * self.size**-0.5
        scores = jnp.where(jnp.arange(scores.shape[-1]) <= at[:, None, None, None], scores, -1e30)
        seen = jnp.einsum("bkgt,btkd->bkgd", jax.nn.softmax(scores).astype(HALF), cache["v"].astype(HALF))
        return self.o_proj(seen.reshape(x.shape)), cache


class Layer(eqx.Module):
    attention: Attention
    gate_proj: Int8Linear
    up_proj: Int8Linear
    down_proj: Int8Linear
    norm1: jax.Array
    norm2: jax.Array

    def __init__(self, width, heads, kv, hidden):
        self.attention = Attention(width, heads, kv)
        self.gate_proj, self.up_proj, self.down_proj = Int8Linear(width, hidden), Int8Linear(width, hidden), Int8Linear(hidden, width)
        self.norm1, self.norm2 = jnp.zeros((width,), HALF), jnp.zeros((width,), HALF)

    def __call__(self, x, cache, at):
        seen, cache = self.attention(rms(x, self.norm1), cache, at)
        x = x + seen
        h = rms(x, self.norm2)
        return x + self.down_proj(jax.nn.silu(self.gate_proj(h)) * self.up_proj(h)), cache


class Llama(eqx.Module):
    embed: jax.Array
    layers: list
    norm: jax.Array
    lm_head: Int8Linear

    def __init__(self, words, width, heads, kv, hidden, depth):
        self.embed, self.norm, self.lm_head = jnp.zeros((words, width), HALF), jnp.zeros((width,), HALF), Int8Linear(width, words)
        self.layers = [Layer(width, heads, kv, hidden) for _ in range(depth)]

    def __call__(self, token, caches, at):
        x, out = self.embed[token], []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache, at)
            out.append(cache)
        return self.lm_head(rms(x, self.norm)), out


def serve(topology, chips, batch, length=8192, words=128256, width=4096, heads=32, kv=8, hidden=14336, depth=32, cache_type="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("tp",))
    where = lambda *spec: NamedSharding(devices, P(*spec))
    model = eqx.filter_eval_shape(lambda: Llama(words, width, heads, kv, hidden, depth))
    model, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))

    def place(path, leaf):
        if "norm" in path:
            return where()
        if "embed" in path:
            return where(None, "tp")
        if "o_proj" in path or "down_proj" in path:
            return where(None, "tp") if leaf.ndim == 2 else where()
        return where("tp")

    one = jax.ShapeDtypeStruct((batch, length, kv, width // heads), cache_type, sharding=where(None, None, "tp"))
    caches = [{"k": one, "v": one} for _ in range(depth)]

    def generate_token(model, caches, token, at):
        logits, caches = eqx.combine(model, static)(token, caches, at)
        return jnp.argmax(logits, -1), caches, at + 1

    A = lambda: jax.ShapeDtypeStruct((batch,), "int32", sharding=where())
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(generate_token, (placed(model, place), caches, A(), A()), classify, (1,) if donate else (), (where(), jax.tree.map(lambda a: a.sharding, caches), where()))
