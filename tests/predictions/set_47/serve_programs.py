"""JAX alone: one word more for every sequence of a server of DeepSeek-V2-Lite (multi-head latent attention with its absorbed matrices, caches of latents written in place; 64 experts, 6 a word); sequences, experts and words of the table divided over the chips, attention's weights whole, in bfloat16."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def mla(topology, chips, batch, length=8192, vocabulary=102400, width=2048, heads=16, latent=512, nope=128, rope=64, size=128, depth=27, experts=64, chosen=6, hidden=1408, first=10944, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("x",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))

    def mlp(size):
        return {"gate": W((width, size), None, "x"), "up": W((width, size), None, "x"), "down": W((size, width), "x")}

    def layer(i):
        attention = {
            "norm1": W((width,)), "norm2": W((width,)), "norm_kv": W((latent,)), "q": W((width, heads, nope + rope)), "kv": W((width, latent + rope)),
            "k_up": W((latent, heads, nope)), "v_up": W((latent, heads, size)), "o": W((heads, size, width))}
        if i == 0:
            return attention | {"mlp": mlp(first)}
        many = {"gate": W((experts, width, hidden), "x"), "up": W((experts, width, hidden), "x"), "down": W((experts, hidden, width), "x")}
        return attention | {"mlp": mlp(2 * hidden), "router": W((width, experts)), "experts": many}

    params = {"embed": W((vocabulary, width), "x"), "layers": [layer(i) for i in range(depth)], "norm": W((width,)), "head": W((width, vocabulary), None, "x")}
    C = lambda n: jax.ShapeDtypeStruct((batch, length, n), kept, sharding=on("x"))
    caches = [{"latent": C(latent), "key": C(rope)} for _ in range(depth)]
    I = lambda: jax.ShapeDtypeStruct((batch,), "int32", sharding=on("x"))

    def rotated(a, where):
        """[batch, ..., rope], turned by its place."""
        half = rope // 2
        angle = where[:, None] * 10000.0 ** (-jnp.arange(half) / half)
        angle = angle.reshape(where.shape[0], *[1] * (a.ndim - 2), half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def attend(w, h, cache, where):
        q = jnp.einsum("bd,dhk->bhk", h, w["q"])
        kv = h @ w["kv"]
        c, k = rms(kv[:, :latent], w["norm_kv"]), rotated(kv[:, latent:], where)
        store = jax.vmap(lambda a, b, i: jax.lax.dynamic_update_slice(a, b[None].astype(kept), (i, 0)))
        cache = {"latent": store(cache["latent"], c, where), "key": store(cache["key"], k, where)}
        absorbed = jnp.einsum("bhn,lhn->bhl", q[..., :nope], w["k_up"])
        s = jnp.einsum("bhl,btl->bht", absorbed, cache["latent"].astype(HALF)) + jnp.einsum("bhr,btr->bht", rotated(q[..., nope:], where), cache["key"].astype(HALF))
        s = jnp.where(jnp.arange(length) <= where[:, None, None], s.astype(jnp.float32) * (nope + rope) ** -0.5, -1e30)
        o = jnp.einsum("bht,btl->bhl", jax.nn.softmax(s).astype(HALF), cache["latent"].astype(HALF))
        return jnp.einsum("bhs,hsd->bd", jnp.einsum("bhl,lhs->bhs", o, w["v_up"]), w["o"]), cache

    plain = lambda w, h: (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]

    def moe(w, h):
        """Every chip runs all words through its experts; the sum over the chips takes what was chosen."""
        share = jax.nn.softmax((h @ w["router"]).astype(jnp.float32))
        best, which = jax.lax.top_k(share, chosen)
        weight = (jax.nn.one_hot(which, experts) * best[..., None]).sum(1)
        e = w["experts"]
        up = jax.nn.silu(jnp.einsum("bd,edf->ebf", h, e["gate"])) * jnp.einsum("bd,edf->ebf", h, e["up"])
        up = up * weight.T[..., None].astype(HALF)
        return jnp.einsum("ebf,efd->bd", up, e["down"])

    def decode_step(params, caches, tokens, where):
        everywhere = lambda a: jax.lax.with_sharding_constraint(a, on())
        divided = lambda a: jax.lax.with_sharding_constraint(a, on("x"))
        x, new = divided(params["embed"][tokens]), []
        for w, cache in zip(params["layers"], caches):
            out, cache = attend(w, rms(x, w["norm1"]), cache, where)
            x = x + out
            h = everywhere(rms(x, w["norm2"]))
            more = plain(w["mlp"], h)
            if "experts" in w:
                more = more + moe(w, h)
            x = x + divided(more)
            new.append(cache)
        logits = everywhere(rms(x, params["norm"])) @ params["head"]
        return new, divided(jnp.argmax(logits.astype(jnp.float32), -1).astype("int32")), where + 1

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode_step, (params, caches, I(), I()), classify, (1,) if donate else (), (shardings(caches), on("x"), on("x")))
