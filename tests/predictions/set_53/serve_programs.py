"""JAX alone: speculative decoding of Qwen2.5 14B, 5 words at once: Qwen2.5 0.5B, whole on every chip and its texts divided, guesses four words one after another, the large model, its heads and MLP divided over 8 chips, reads them all over pages of 64 places; layers one after another, in bfloat16; caches are donated."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def turned(a, at):
    """Queries or keys [batch, words, heads, size], at places [batch, words]."""
    half = a.shape[-1] // 2
    angle = at[:, :, None, None] * 1e6 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


def speculative(topology, chips, batch, length=8192, page=64, guesses=4, vocabulary=152064, depth=48, draft_depth=24, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    scale = 1 / 16  # of int8
    encoded = lambda a: jnp.clip(jnp.round(a / scale), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)
    decoded = lambda a: a.astype(HALF) * scale if kept == "int8" else a.astype(HALF)

    def weights(depth, width, heads, kv, size, hidden, cut, tied):
        W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec) if cut else on())
        layer = lambda: {
            "norm1": W((width,)), "norm2": W((width,)), "q": W((width, heads, size), None, "tp"), "k": W((width, kv, size), None, "tp"), "v": W((width, kv, size), None, "tp"),
            "q_bias": W((heads, size), "tp"), "k_bias": W((kv, size), "tp"), "v_bias": W((kv, size), "tp"), "o": W((heads, size, width), "tp"),
            "gate": W((width, hidden), None, "tp"), "up": W((width, hidden), None, "tp"), "down": W((hidden, width), "tp")}
        made = {"embed": W((vocabulary, width), None, "tp"), "layers": [layer() for _ in range(depth)], "norm": W((width,))}
        return made if tied else {**made, "head": W((width, vocabulary), None, "tp")}

    pages = batch * length // page
    pool = lambda: jax.ShapeDtypeStruct((8, pages, page, 128), kept, sharding=on("tp"))
    row = lambda: jax.ShapeDtypeStruct((batch, 2, length, 64), kept, sharding=on("tp"))
    target, draft = weights(depth, 5120, 40, 8, 128, 13824, True, False), weights(draft_depth, 896, 14, 2, 64, 4864, False, True)
    pools, rows = [{"key": pool(), "value": pool()} for _ in range(depth)], [{"key": row(), "value": row()} for _ in range(draft_depth)]
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on())

    def queries(w, h, at):
        q, k, v = (jnp.einsum("btd,dhk->bthk", h, w[n]) + w[f"{n}_bias"] for n in "qkv")
        return turned(q, at), turned(k, at), v

    def grouped(q, k, v, at):
        """q [batch, words, heads, size]; k and v [kv, batch, places, size]"""
        b, t, heads, size = q.shape
        s = jnp.einsum("btngd,nbsd->bntgs", q.reshape(b, t, k.shape[0], -1, size), k).astype(jnp.float32) * size**-0.5
        s = jnp.where(jnp.arange(k.shape[2]) <= at[:, None, :, None, None], s, -1e30)
        return jnp.einsum("bntgs,nbsd->btngd", jax.nn.softmax(s).astype(HALF), v).reshape(b, t, heads, size)

    def through(params, caches, tokens, at, look):
        x, new = params["embed"][tokens], []
        for w, cache in zip(params["layers"], caches):
            q, k, v = queries(w, rms(x, w["norm1"]), at)
            o, cache = look(cache, q, k, v, at)
            x = x + jnp.einsum("bthk,hkd->btd", o, w["o"])
            h = rms(x, w["norm2"])
            x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
            new.append(cache)
        return rms(x, params["norm"]), new

    def decode_step(target, draft, pools, rows, table, tokens, at):
        def own(cache, q, k, v, at):
            store = jax.vmap(lambda a, b, i: jax.lax.dynamic_update_slice(a, encoded(b).swapaxes(0, 1), (0, i, 0)))
            cache = {"key": store(cache["key"], k, at[:, 0]), "value": store(cache["value"], v, at[:, 0])}
            first = lambda a: decoded(a).swapaxes(0, 1)
            return grouped(q, first(cache["key"]), first(cache["value"]), at), cache

        def paged(cache, q, k, v, at):
            where, rest = jnp.take_along_axis(table, at // page, 1), at % page
            store = lambda a, b: a.at[:, where, rest].set(encoded(jnp.moveaxis(b, 2, 0)))
            cache = {"key": store(cache["key"], k), "value": store(cache["value"], v)}
            read = lambda a: decoded(a[:, table]).reshape(8, batch, length, 128)
            return grouped(q, read(cache["key"]), read(cache["value"]), at), cache

        def guess(carry, _):
            rows, word, at = carry
            x, rows = through(draft, rows, word[:, None], at[:, None], own)
            word = jnp.argmax((x[:, 0] @ draft["embed"].T).astype(jnp.float32), -1).astype("int32")
            return (rows, word, at + 1), word

        apart = jax.lax.with_sharding_constraint((tokens, at), on("tp"))
        (rows, _, _), guessed = jax.lax.scan(guess, (rows, *apart), None, guesses)
        together = jax.lax.with_sharding_constraint(jnp.concatenate([tokens[:, None], guessed.T], 1), on())
        x, pools = through(target, pools, together, at[:, None] + jnp.arange(guesses + 1), paged)
        said = jnp.argmax((x @ target["head"]).astype(jnp.float32), -1).astype("int32")
        right = jnp.cumprod((said[:, :-1] == together[:, 1:]).astype("int32"), 1).sum(1)
        return pools, rows, jnp.take_along_axis(said, right[:, None], 1)[:, 0], at + right + 1

    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "cache", "[3]": "cache"}.get(path[:3], "input")
    args = (target, draft, pools, rows, A("int32", batch, length // page), A("int32", batch), A("int32", batch))
    return Program(decode_step, args, classify, (2, 3) if donate else (), (shardings(pools), shardings(rows), on(), on()))
