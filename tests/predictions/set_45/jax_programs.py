"""JAX alone: DeepSeek V2 Lite (latent attention, 64 experts) pruned to 16 layers writes 32 words for many sequences: latent caches, projections absorbed, experts divided between the chips."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, rms, shardings
from recipe import Program, mesh


def latent_decode(topology, chips, batch, places=8192, steps=32, words=102400, width=2048, heads=16, nope=128, turn=64, latent=512, experts=64, chosen=6, hidden=1408, dense=10944, depth=16, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("x",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda *s, spec=(): jax.ShapeDtypeStruct(s, HALF, sharding=on(*spec))

    def layer(i):
        attention = {
            "norm1": W(width), "norm2": W(width), "norm_latent": W(latent), "q": W(width, heads, nope + turn), "down": W(width, latent + turn),
            "up_k": W(latent, heads, nope), "up_v": W(latent, heads, nope), "o": W(heads, nope, width)}
        mlp = lambda size: {"gate": W(width, size), "up": W(width, size), "out": W(size, width)}
        if i == 0:
            return attention | {"mlp": mlp(dense)}
        cut = lambda a, b: W(experts, a, b, spec=("x",))
        return attention | {"mlp": mlp(2 * hidden), "router": W(width, experts), "experts": {"gate": cut(width, hidden), "up": cut(width, hidden), "out": cut(hidden, width)}}

    params = {"embed": W(words, width), "layers": [layer(i) for i in range(depth)], "norm": W(width), "head": W(width, words)}
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on("x"))
    caches = [{"latent": A(kept, batch, places, latent), "turned": A(kept, batch, places, turn)} for _ in range(depth)]
    put = lambda a: jnp.clip(jnp.round(a * 16), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)
    got = lambda a: a.astype(HALF) / 16 if a.dtype == jnp.int8 else a

    def rotated(a, where):
        half = a.shape[-1] // 2
        angle = where * 10000.0 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def swiglu(w, x):
        return (jax.nn.silu(x @ w["gate"]) * (x @ w["up"])) @ w["out"]

    def mixture(w, router, x):
        """Each chip has all sequences' words by its own experts; the sums go back to the sequences' chips."""
        score = jax.nn.softmax((x @ router).astype(jnp.float32))
        best, which = jax.lax.top_k(score, chosen)
        weight = jnp.zeros_like(score).at[jnp.arange(len(x))[:, None], which].set(best).astype(HALF)

        def local(w, x, weight):
            every, weight = jax.lax.all_gather(x, "x", tiled=True), jax.lax.all_gather(weight, "x", tiled=True)
            count = experts // chips
            mine = jax.lax.dynamic_slice_in_dim(weight, jax.lax.axis_index("x") * count, count, 1)
            h = jax.nn.silu(jnp.einsum("td,edf->etf", every, w["gate"])) * jnp.einsum("td,edf->etf", every, w["up"])
            y = jnp.einsum("etf,efd,te->td", h, w["out"], mine)
            return jax.lax.psum_scatter(y, "x", tiled=True)

        return jax.shard_map(local, mesh=devices, in_specs=(P("x"), P("x"), P("x")), out_specs=P("x"), check_vma=False)(w, x, weight)

    def one(params, caches, token, where):
        x, new = params["embed"][token], []
        for w, cache in zip(params["layers"], caches):
            h = rms(x, w["norm1"])
            q = jnp.einsum("bd,dhk->bhk", h, w["q"])
            q_turned = rotated(q[..., nope:], where)
            q_latent = jnp.einsum("bhk,chk->bhc", q[..., :nope], w["up_k"])
            down = h @ w["down"]
            fresh = {"latent": rms(down[:, :latent], w["norm_latent"]), "turned": rotated(down[:, latent:], where)}
            cache = {n: jax.lax.dynamic_update_slice_in_dim(cache[n], put(fresh[n])[:, None], where, 1) for n in cache}
            s = jnp.einsum("bhc,btc->bht", q_latent, got(cache["latent"])) + jnp.einsum("bhr,btr->bht", q_turned, got(cache["turned"]))
            s = jnp.where(jnp.arange(places) <= where, s.astype(jnp.float32) * (nope + turn) ** -0.5, -1e30)
            o = jnp.einsum("bht,btc->bhc", jax.nn.softmax(s).astype(HALF), got(cache["latent"]))
            x = x + jnp.einsum("bhc,chk,hkd->bd", o, w["up_v"], w["o"])
            h = rms(x, w["norm2"])
            x = x + swiglu(w["mlp"], h) + (mixture(w["experts"], w["router"], h) if "experts" in w else 0)
            new.append(cache)
        return new, (rms(x, params["norm"]) @ params["head"]).astype(jnp.float32)

    def decode(params, caches, token, where, key):
        def step(carry, key):
            caches, token, where = carry
            caches, logits = one(params, caches, token, where)
            token = jax.random.categorical(key, logits / 0.7).astype("int32")
            return (caches, token, where + 1), token

        (caches, token, where), written = jax.lax.scan(step, (caches, token, where), jax.random.split(key, steps))
        return caches, written.T

    whole = lambda d: jax.ShapeDtypeStruct((), d, sharding=on())
    args = (params, caches, A("int32", batch), whole("int32"), whole(jax.random.key(0).dtype))
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode, args, classify, (1,) if donate else (), (shardings(caches), on("x")))
