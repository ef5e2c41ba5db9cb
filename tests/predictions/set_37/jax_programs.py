"""JAX alone: a GPT of 1.3 billion weights by blocked Shampoo with grafting (roots anew every hundred steps by coupled Newton iterations), data parallel; a step of beam search of Tower 7B (Llama 2), tensor parallel, the cache put in the order of the beams' parents."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, flash, kind_of_step, rms, shardings, turned
from recipe import Program, mesh

BLOCK = 1024


def cut(a):
    """[layers, m, n] as blocks [layers, m / BLOCK, n / BLOCK, BLOCK, BLOCK]."""
    l, m, n = a.shape
    return a.reshape(l, m // BLOCK, BLOCK, n // BLOCK, BLOCK).swapaxes(2, 3)


def sewn(a):
    l, m, n = a.shape[:3]
    return a.swapaxes(2, 3).reshape(l, m * BLOCK, n * BLOCK)


def fourth_root(a):
    """a to the power of -1/4, of matrices [..., BLOCK, BLOCK]."""
    one = jnp.eye(BLOCK)
    a = a + 1e-6 * jnp.trace(a, axis1=-2, axis2=-1)[..., None, None] / BLOCK * one + 1e-12 * one
    z = 5 / (2 * jnp.sqrt(jnp.sum(a * a, (-2, -1), keepdims=True)))

    def newton(_, both):
        m, x = both
        t = (5 * one - m) / 4
        square = t @ t
        return square @ square @ m, x @ t

    return jax.lax.fori_loop(0, 25, newton, (a * z, z**0.25 * one))[1]


def shampoo(topology, chips, batch, length=2048, words=50304, width=2048, heads=16, hidden=8192, depth=24, kept="float32", momentum="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    W = lambda *s, d="float32": jax.ShapeDtypeStruct(s, d, sharding=whole)
    matrices = {"qkv": (width, 3 * width), "proj": (width, width), "up": (width, hidden), "down": (hidden, width)}
    params = {"embed": W(words, width), "norm": W(width), "layers": {n: W(depth, *s) for n, s in matrices.items()} | {"norm1": W(depth, width), "norm2": W(depth, width)}}
    sides = lambda d: {n: {side: W(depth, m // BLOCK, k // BLOCK, BLOCK, BLOCK, d=d) for side in ("left", "right")} for n, (m, k) in matrices.items()}
    like = lambda d: jax.tree.map(lambda a: W(*a.shape, d=d), params)
    opt = {"count": W(d="int32"), "mu": like(momentum), "graft": like("float32"), "stats": sides("float32"), "roots": sides(kept)}
    attend = jax.shard_map(flash, mesh=devices, in_specs=(P("data"),) * 3, out_specs=P("data"), check_vma=False)

    def loss_fn(params, tokens):
        def layer(x, w):
            h = rms(x, w["norm1"]) @ w["qkv"].astype(HALF)
            q, k, v = (a.reshape(*x.shape[:2], heads, -1) for a in jnp.split(h, 3, -1))
            x = x + attend(turned(q, 1e4), turned(k, 1e4), v).reshape(x.shape) @ w["proj"].astype(HALF)
            return x + jax.nn.gelu(rms(x, w["norm2"]) @ w["up"].astype(HALF)) @ w["down"].astype(HALF), None

        x = params["embed"].astype(HALF)[tokens]
        x, _ = jax.lax.scan(jax.checkpoint(layer, prevent_cse=False), x, params["layers"])
        return entropy(rms(x, params["norm"]), params["embed"].T, jnp.roll(tokens, -1, 1), 1)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        stats, cuts = {}, {n: cut(grads["layers"][n]) for n in matrices}
        for n, g in cuts.items():
            old = opt_state["stats"][n]
            stats[n] = {"left": 0.99 * old["left"] + 0.01 * jnp.einsum("lxyab,lxycb->lxyac", g, g), "right": 0.99 * old["right"] + 0.01 * jnp.einsum("lxyab,lxyac->lxybc", g, g)}

        def anew(roots):
            return jax.tree.map(lambda s: jax.lax.map(fourth_root, s).astype(kept), stats)

        roots = jax.lax.cond(opt_state["count"] % 100 == 0, anew, lambda roots: roots, opt_state["roots"])
        graft = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, opt_state["graft"], grads)
        step = jax.tree.map(lambda v, g: g * jax.lax.rsqrt(v + 1e-16), graft, grads)
        for n, g in cuts.items():
            f = lambda a: a.astype(jnp.float32)
            turned_ = sewn(jnp.einsum("lxyab,lxybc,lxycd->lxyad", f(roots[n]["left"]), g, f(roots[n]["right"])))
            size = lambda a: jnp.sqrt(jnp.sum(a * a, (1, 2), keepdims=True))
            step["layers"][n] = turned_ * (size(step["layers"][n]) / (size(turned_) + 1e-16))
        mu = jax.tree.map(lambda m, s: (0.9 * m.astype(jnp.float32) + s).astype(momentum), opt_state["mu"], step)
        params = jax.tree.map(lambda p, m: p - 1e-4 * (m.astype(jnp.float32) + 0.1 * p), params, mu)
        return params, {"count": opt_state["count"] + 1, "mu": mu, "graft": graft, "stats": stats, "roots": roots}, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


def beam(topology, chips, texts, beams=4, context=1024, words=32000, depth=32, width=4096, heads=32, size=128, hidden=11008, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("model",))
    A = lambda d, s, *spec: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*spec)))
    W = lambda s, *spec: A("bfloat16", s, *spec)
    slots = texts * beams
    layers = {"wq": W((depth, width, heads, size), None, None, "model"), "wk": W((depth, width, heads, size), None, None, "model"), "wv": W((depth, width, heads, size), None, None, "model"), "wo": W((depth, heads, size, width), None, "model"),
              "gate": W((depth, width, hidden), None, None, "model"), "up": W((depth, width, hidden), None, None, "model"), "down": W((depth, hidden, width), None, "model"), "norm1": W((depth, width)), "norm2": W((depth, width))}
    params = {"embed": W((words, width), "model"), "head": W((width, words), None, "model"), "norm": W((width,)), "layers": layers}
    cache = {n: A(kept, (depth, slots, heads, context, size), None, None, "model") for n in ("keys", "values")}

    def put(a):
        return jnp.clip(jnp.round(a * 16), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)

    def got(a):
        return a.astype(HALF) / 16 if kept == "int8" else a.astype(HALF)

    def turn(a, where):
        angle = where * 10000.0 ** (-jnp.arange(size // 2) / (size // 2))
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def beam_step(params, cache, tokens, scores, where):
        def layer(carry, xs):
            x, cache = carry
            i, w = xs
            h = rms(x, w["norm1"])
            q, k, v = (jnp.einsum("sd,dhk->shk", h, w[n]) for n in ("wq", "wk", "wv"))
            new = {"keys": put(turn(k, where)), "values": put(v)}
            cache = {n: jax.lax.dynamic_update_slice(cache[n], new[n][None, :, :, None], (i, 0, 0, where, 0)) for n in cache}
            s = jnp.einsum("shk,shck->shc", turn(q, where), got(cache["keys"][i])).astype(jnp.float32) * size**-0.5
            p = jax.nn.softmax(jnp.where(jnp.arange(context) <= where, s, -1e30)).astype(HALF)
            x = x + jnp.einsum("shk,hkd->sd", jnp.einsum("shc,shck->shk", p, got(cache["values"][i])), w["wo"])
            h = rms(x, w["norm2"])
            return (x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], cache), None

        (x, cache), _ = jax.lax.scan(layer, (params["embed"][tokens], cache), (jnp.arange(depth), params["layers"]))
        logp = jax.nn.log_softmax((rms(x, params["norm"]) @ params["head"]).astype(jnp.float32))
        scores, best = jax.lax.top_k((scores[:, None] + logp).reshape(texts, beams * words), beams)
        parents = (best // words + jnp.arange(texts)[:, None] * beams).reshape(-1)
        cache = {n: jnp.take(a, parents, 1) for n, a in cache.items()}
        return cache, (best % words).reshape(-1).astype(jnp.int32), scores.reshape(-1), parents

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(beam_step, (params, cache, A("int32", (slots,)), A("float32", (slots,)), A("int32", ())), classify, (1,) if donate else (), (shardings(cache), None, None, None))
