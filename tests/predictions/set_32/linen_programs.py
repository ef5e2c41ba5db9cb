"""Linen: prefill of Qwen 2.5 14B, tensor parallel, keys and values repeated for their groups; layers in nn.scan, caches of them returned."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, flash, turned
from recipe import Program, mesh, placed


class Layer(nn.Module):
    heads: int
    kv: int
    hidden: int
    attend: object

    @nn.compact
    def __call__(self, x, _):
        width, size = x.shape[-1], x.shape[-1] // self.heads
        lin = lambda n, name, bias=False: nn.Dense(n, use_bias=bias, dtype=HALF, param_dtype=HALF, name=name)
        norm = lambda name: nn.RMSNorm(dtype=HALF, param_dtype=HALF, name=name)
        h = norm("input_layernorm")(x)
        q = lin(width, "q_proj", True)(h).reshape(*h.shape[:2], self.heads, size)
        k, v = (lin(self.kv * size, n, True)(h).reshape(*h.shape[:2], self.kv, size) for n in ("k_proj", "v_proj"))
        q, k = turned(q, 1e6), turned(k, 1e6)
        group = self.heads // self.kv
        seen = self.attend(q, jnp.repeat(k, group, axis=2), jnp.repeat(v, group, axis=2))
        x = x + lin(width, "o_proj")(seen.reshape(x.shape))
        h = norm("post_attention_layernorm")(x)
        return x + lin(width, "down_proj")(nn.silu(lin(self.hidden, "gate_proj")(h)) * lin(self.hidden, "up_proj")(h)), {"key": k, "value": v}


class Qwen(nn.Module):
    words: int
    width: int
    heads: int
    kv: int
    hidden: int
    depth: int
    attend: object

    @nn.compact
    def __call__(self, tokens, lengths):
        x = nn.Embed(self.words, self.width, dtype=HALF, param_dtype=HALF, name="embed_tokens")(tokens)
        stack = nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, cache = stack(self.heads, self.kv, self.hidden, self.attend, name="layers")(x, None)
        x = nn.RMSNorm(dtype=HALF, param_dtype=HALF, name="norm")(jnp.take_along_axis(x, lengths[:, None, None] - 1, 1)[:, 0])
        return nn.Dense(self.words, use_bias=False, dtype=HALF, param_dtype=HALF, name="lm_head")(x), cache


def prefill(topology, chips, batch, length=4096, words=152064, width=5120, heads=40, kv=8, hidden=13824, depth=48, blockwise=False):
    devices = mesh(topology, (chips,), ("model",))
    where = lambda *spec: NamedSharding(devices, P(*spec))
    by_heads = P(None, None, "model")
    attend = jax.shard_map(flash if blockwise else causal, mesh=devices, in_specs=by_heads, out_specs=by_heads, check_vma=False)
    net = Qwen(words, width, heads, kv, hidden, depth, attend)
    small = Qwen(words, width, heads, kv, hidden, depth, causal)
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=where())
    params = jax.eval_shape(small.init, jax.random.PRNGKey(0), S(1, 128), S(1))

    def place(path, leaf):
        if "norm" in path:
            return where()
        if "embed" in path:
            return where(None, "model")
        rows = any(n in path for n in ("o_proj", "down_proj"))
        if path.endswith("['bias']"):
            return where(None, "model")
        if "lm_head" in path:
            return where(None, "model")
        return where(None, "model", None) if rows else where(None, None, "model")

    def prefill(params, tokens, lengths):
        return net.apply(params, tokens, lengths)

    classify = lambda path: "weight" if path.startswith("[0]") else "input"
    stored = where(None, None, None, "model")
    return Program(prefill, (placed(params, place), S(batch, length), S(batch)), classify, (), (where(None, "model"), {"key": stored, "value": stored}))
