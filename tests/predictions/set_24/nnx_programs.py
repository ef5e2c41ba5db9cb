"""NNX: a decoder in the style of Llama 3.2 3B that decodes one word for many sequences, nnx.MultiHeadAttention-like with grouped heads and a cache of its own; layers in a Python loop, weights by tensor parallelism."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF
from recipe import Program, mesh


class Attention(nnx.Module):
    def __init__(self, width, heads, kv, size, slots, length, kept, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.q, self.k, self.v, self.o = lin(width, heads * size), lin(width, kv * size), lin(width, kv * size), lin(heads * size, width)
        self.heads, self.kv, self.size = heads, kv, size
        self.cached_key = nnx.Cache(jnp.zeros((slots, length, kv, size), kept))
        self.cached_value = nnx.Cache(jnp.zeros((slots, length, kv, size), kept))

    def __call__(self, x, at):
        b = x.shape[0]
        q = self.q(x).reshape(b, self.kv, self.heads // self.kv, self.size)
        put = lambda cache, new: jax.vmap(lambda c, n, i: jax.lax.dynamic_update_slice(c, n[None], (i, 0, 0)))(cache[...], new.reshape(b, self.kv, self.size).astype(cache[...].dtype), at)
        self.cached_key[...], self.cached_value[...] = put(self.cached_key, self.k(x)), put(self.cached_value, self.v(x))
        k, v = self.cached_key[...].astype(HALF), self.cached_value[...].astype(HALF)
        s = jnp.einsum("bkgd,btkd->bkgt", q, k).astype(jnp.float32) * self.size**-0.5
        s = jnp.where(jnp.arange(k.shape[1]) <= at[:, None, None, None], s, -1e30)
        return self.o(jnp.einsum("bkgt,btkd->bkgd", jax.nn.softmax(s).astype(HALF), v).reshape(b, -1))


class Layer(nnx.Module):
    def __init__(self, width, hidden, heads, kv, size, slots, length, kept, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.attn_norm = nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.mlp_norm = nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.attn = Attention(width, heads, kv, size, slots, length, kept, rngs)
        self.gate, self.up, self.down = lin(width, hidden), lin(width, hidden), lin(hidden, width)

    def __call__(self, x, at):
        x = x + self.attn(self.attn_norm(x), at)
        h = self.mlp_norm(x)
        return x + self.down(nnx.silu(self.gate(h)) * self.up(h))


class Llama(nnx.Module):
    def __init__(self, words, width, depth, *rest, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, *rest, rngs) for _ in range(depth)])
        self.norm = nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)

    def __call__(self, tokens, at):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, at)
        return self.embed.attend(self.norm(x))


def serve(topology, chips, slots, length, words=128256, width=3072, depth=28, hidden=8192, heads=24, kv=8, size=128, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("tp",))
    net = nnx.eval_shape(lambda: Llama(words, width, depth, hidden, heads, kv, size, slots, length, jnp.dtype(kept), rngs=nnx.Rngs(0)))
    graph, params, cache, rest = nnx.split(net, nnx.Param, nnx.Cache, ...)

    def place(path, leaf):
        name = jax.tree_util.keystr(path)
        spec = P()
        if "cached_" in name:
            spec = P(None, None, "tp")
        elif any(f"'{n}'" in name for n in ("q", "k", "v", "gate", "up")):
            spec = P(None, "tp")
        elif any(f"'{n}'" in name for n in ("o", "down", "embed")):
            spec = P("tp")
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(devices, spec))

    params, cache = (jax.tree_util.tree_map_with_path(place, t) for t in (params, cache))

    def decode_step(params, cache, tokens, positions):
        net = nnx.merge(graph, params, cache, rest)
        logits = net(tokens, positions)
        _, _, cache, _ = nnx.split(net, nnx.Param, nnx.Cache, ...)
        return jnp.argmax(logits, -1).astype(jnp.int32), cache

    S = lambda: jax.ShapeDtypeStruct((slots,), "int32", sharding=NamedSharding(devices, P()))
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = (None, jax.tree.map(lambda a: a.sharding, cache))
    return Program(decode_step, (params, cache, S(), S()), classify, (1,) if donate else (), outs)
