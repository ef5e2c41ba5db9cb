"""JAX alone: speculative decoding of an 8B model by a 1B one: both caches are lists of layers, time first; a while_loop until every row has its words."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def speculate(topology, chips, batch, context, guesses=4, words=64, donate=True):
    devices = mesh(topology, (chips,), ("mp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    A = lambda dtype, spec, *s: jax.ShapeDtypeStruct(s, dtype, sharding=on(*spec))
    sizes = {"target": dict(width=4096, heads=32, kv=8, hidden=14336, depth=32, size=128), "draft": dict(width=2048, heads=32, kv=8, hidden=8192, depth=16, size=64)}
    vocabulary = 128256

    def model(width, heads, kv, hidden, depth, size):
        W = lambda spec, *s: A("bfloat16", spec, *s)
        block = lambda: {"attn_norm": W((), width), "q": W((None, "mp"), width, heads, size), "k": W((None, "mp"), width, kv, size), "v": W((None, "mp"), width, kv, size), "o": W(("mp",), heads, size, width),
                         "ffn_norm": W((), width), "w_gate": W((None, "mp"), width, hidden), "w_up": W((None, "mp"), width, hidden), "w_down": W(("mp",), hidden, width)}
        return {"embed": W((None, "mp"), vocabulary, width), "blocks": [block() for _ in range(depth)], "norm": W((), width), "lm_head": W((None, "mp"), width, vocabulary)}

    cache = lambda kv, size, depth, **_: [{n: A("bfloat16", (None, None, "mp"), context, batch, kv, size) for n in ("keys", "values")} for _ in range(depth)]
    params = {n: model(**c) for n, c in sizes.items()}
    caches = {n: cache(**c) for n, c in sizes.items()}

    def run(name, params, cache, tokens, place):
        """tokens [n, batch] at place [batch] and after; returns logits [n, batch, words] and the cache."""
        c = sizes[name]
        n = tokens.shape[0]
        where = place[None] + jnp.arange(n)[:, None]
        x = params["embed"][tokens]
        rows = jnp.arange(batch)[None]
        kept = []
        for w, layer in zip(params["blocks"], cache):
            h = rms(x, w["attn_norm"])
            q, k, v = [jnp.einsum("nbd,dhk->nbhk", h, w[i]) for i in "qkv"]
            keys, values = layer["keys"].at[where, rows].set(k), layer["values"].at[where, rows].set(v)
            q = q.reshape(n, batch, c["kv"], -1, c["size"])
            s = jnp.einsum("nbhgk,tbhk->bhgnt", q, keys).astype(jnp.float32) * c["size"] ** -0.5
            s = jnp.where((jnp.arange(context) <= where.T[:, :, None])[:, None, None], s, -1e30)
            o = jnp.einsum("bhgnt,tbhk->nbhgk", jax.nn.softmax(s).astype(HALF), values).reshape(n, batch, c["heads"], c["size"])
            x = x + jnp.einsum("nbhk,hkd->nbd", o, w["o"])
            h = rms(x, w["ffn_norm"])
            x = x + (jax.nn.silu(h @ w["w_gate"]) * (h @ w["w_up"])) @ w["w_down"]
            kept.append({"keys": keys, "values": values})
        return (rms(x, params["norm"]) @ params["lm_head"]).astype(jnp.float32), kept

    def decode(params, caches, last, place):
        out = jnp.zeros((words + guesses + 1, batch), jnp.int32)

        def more(state):
            return state[4].min() < words

        def one(state):
            big, small, last, place, count, out = state
            tokens, now = [last], last
            for i in range(guesses):
                logits, small = run("draft", params["draft"], small, now[None], place + i)
                now = logits[0].argmax(-1).astype(jnp.int32)
                tokens.append(now)
            logits, big = run("target", params["target"], big, jnp.stack(tokens), place)
            best = logits.argmax(-1).astype(jnp.int32)
            right = jnp.cumprod(best[:-1] == jnp.stack(tokens[1:]), 0)
            n = right.sum(0)
            rows = jnp.arange(batch)
            out = out.at[jnp.minimum(count, words)[None] + jnp.arange(guesses + 1)[:, None], rows[None]].set(best)
            return big, small, best[n, rows], place + n + 1, count + n + 1, out

        big, small, last, place, count, out = jax.lax.while_loop(more, one, (caches["target"], caches["draft"], last, place, jnp.zeros_like(last), out))
        return {"target": big, "draft": small}, last, place, out

    I = A("int32", (), batch)
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode, (params, caches, I, I), classify, (1,) if donate else (), (shardings(caches), None, None, None))
