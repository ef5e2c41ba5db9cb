"""JAX alone: GPT-2 medium as nanoGPT trains it, on one chip; beam search of an NLLB-like translator; a long prompt in chunks through Llama 70B; full waveform inversion."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, flash, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def nanogpt(topology, batch, length=1024, depth=24, width=1024, heads=16, vocabulary=50304, remat=0, chunks=1, kernel=False, micro=1, donate=True):
    """One chip, float32 state, bfloat16 compute, tied embeddings, AdamW with decay on matrices only."""
    devices = mesh(topology, (1,), ("x",))
    here = NamedSharding(devices, P())
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=here)
    block = lambda: {"ln_1": {"w": F(width), "b": F(width)}, "c_attn": {"w": F(width, 3 * width), "b": F(3 * width)}, "c_proj": {"w": F(width, width), "b": F(width)},
                     "ln_2": {"w": F(width), "b": F(width)}, "c_fc": {"w": F(width, 4 * width), "b": F(4 * width)}, "mlp_proj": {"w": F(4 * width, width), "b": F(width)}}
    params = {"wte": F(vocabulary, width), "wpe": F(length, width), "h": [block() for _ in range(depth)], "ln_f": {"w": F(width), "b": F(width)}}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(
        optax.warmup_cosine_decay_schedule(0.0, 6e-4, 2000, 600000, 6e-5), b2=0.95, weight_decay=0.1, mask=jax.tree.map(lambda p: p.ndim >= 2, params)))
    state = placed(jax.eval_shape(transform.init, params), here)

    def linear(x, p):
        return x @ p["w"].astype(HALF) + p["b"].astype(HALF)

    def norm(x, p):
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return (y * p["w"] + p["b"]).astype(HALF)

    def layer(x, p):
        with jax.named_scope("attn"):
            q, k, v = [a.reshape(*a.shape[:2], heads, -1) for a in jnp.split(linear(norm(x, p["ln_1"]), p["c_attn"]), 3, -1)]
            y = (flash if kernel else causal)(q, k, v)
            x = x + linear(y.reshape(x.shape), p["c_proj"])
        with jax.named_scope("mlp"):
            return x + linear(jax.nn.gelu(linear(norm(x, p["ln_2"]), p["c_fc"])), p["mlp_proj"])

    def loss_fn(params, tokens, targets):
        x = (params["wte"][tokens] + params["wpe"]).astype(HALF)
        for i, p in enumerate(params["h"]):
            with jax.named_scope(f"h_{i}"):
                x = (jax.checkpoint(layer) if i < remat else layer)(x, p)
        x = norm(x, params["ln_f"])

        def piece(x, y):
            logits = (x @ params["wte"].T.astype(HALF)).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).sum()

        with jax.named_scope("loss"):
            if chunks == 1:
                return piece(x, targets) / targets.size
            cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
            return jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, (cut(x), cut(targets)))[0] / targets.size

    def train_step(params, opt_state, tokens, targets):
        if micro == 1:
            loss, grads = jax.value_and_grad(loss_fn)(params, tokens, targets)
        else:
            cut = lambda a: a.reshape(micro, -1, length)
            def one(total, part):
                loss, g = jax.value_and_grad(loss_fn)(params, *part)
                return jax.tree.map(jnp.add, total, g), loss
            grads, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), (cut(tokens), cut(targets)))
            grads, loss = jax.tree.map(lambda g: g / micro, grads), losses.mean()
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    I = jax.ShapeDtypeStruct((batch, length), "int32", sharding=here)
    return Program(train_step, (params, state, I, I), kind_of_step, (0, 1) if donate else ())


def beam(topology, chips, batch, source=256, target=128, beams=4, width=2048, heads=16, hidden=8192, depth=24, vocabulary=256206, weights="bfloat16", shard=False):
    """NLLB 3.3B: the encoder once, then beam search with caches that are reordered at every word."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    size = width // heads
    W = lambda *s: jax.ShapeDtypeStruct(s, weights)
    attention = lambda: {n: W(depth, width, width) for n in "qkvo"}
    mlp = lambda: {"up": W(depth, width, hidden), "down": W(depth, hidden, width)}
    params = {"embed": W(vocabulary, width),
              "encoder": {"attn": attention(), "mlp": mlp(), "n1": W(depth, width), "n2": W(depth, width)},
              "decoder": {"attn": attention(), "cross": attention(), "mlp": mlp(), "n1": W(depth, width), "n2": W(depth, width), "n3": W(depth, width)},
              "n_enc": W(width), "n_dec": W(width)}
    params = placed(params, largest_dimension(devices, "data") if shard else whole)
    cut = lambda x: x.reshape(*x.shape[:-1], heads, size)
    part = lambda a: jax.lax.with_sharding_constraint(a, split)

    def norm(x, s):
        y = x.astype(jnp.float32)
        return ((y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)).astype(HALF) * s.astype(HALF)

    def attend(q, k, v, mask):
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * size**-0.5
        p = jax.nn.softmax(jnp.where(mask, s, -1e9)).astype(HALF)
        o = jnp.einsum("bhqk,bkhd->bqhd", p, v)
        return o.reshape(*o.shape[:2], width)

    feed = lambda h, w: jax.nn.relu(h @ w["up"]) @ w["down"]

    def encode(params, tokens):
        mask = (tokens > 0)[:, None, None]

        def one(x, w):
            h = norm(x, w["n1"])
            x = x + attend(cut(h @ w["attn"]["q"]), cut(h @ w["attn"]["k"]), cut(h @ w["attn"]["v"]), mask) @ w["attn"]["o"]
            return x + feed(norm(x, w["n2"]), w["mlp"]), None

        x, _ = jax.lax.scan(one, part(params["embed"][tokens]), params["encoder"])
        return norm(x, params["n_enc"])

    def generate(params, tokens):
        rows = batch * beams
        memory = encode(params, tokens)
        memory, mask = jnp.repeat(memory, beams, 0), jnp.repeat(tokens > 0, beams, 0)[:, None, None]
        cross = jax.lax.map(lambda w: (part(cut(memory @ w["k"])), part(cut(memory @ w["v"]))), params["decoder"]["cross"])
        empty = jax.lax.with_sharding_constraint(jnp.zeros((depth, rows, target, heads, size), HALF), NamedSharding(devices, P(None, "data")))
        start = (jnp.zeros((batch, beams, target), jnp.int32), jnp.tile(jnp.array([0.0] + [-1e9] * (beams - 1)), (batch, 1)), empty, empty)

        def step(t, carry):
            words, scores, ks, vs = carry
            last = jax.lax.dynamic_index_in_dim(words, jnp.maximum(t - 1, 0), 2, False).reshape(rows, 1)
            seen = (jnp.arange(target) <= t)[None, None, None]

            def one(x, xs):
                w, k, v, ck, cv = xs
                h = norm(x, w["n1"])
                k = jax.lax.dynamic_update_slice_in_dim(k, cut(h @ w["attn"]["k"]), t, 1)
                v = jax.lax.dynamic_update_slice_in_dim(v, cut(h @ w["attn"]["v"]), t, 1)
                x = x + attend(cut(h @ w["attn"]["q"]), k, v, seen) @ w["attn"]["o"]
                x = x + attend(cut(norm(x, w["n2"]) @ w["cross"]["q"]), ck, cv, mask) @ w["cross"]["o"]
                return x + feed(norm(x, w["n3"]), w["mlp"]), (k, v)

            x, (ks, vs) = jax.lax.scan(one, part(params["embed"][last]), (params["decoder"], ks, vs, *cross))
            logits = (norm(x[:, 0], params["n_dec"]) @ params["embed"].T).astype(jnp.float32)
            total = scores[..., None] + jax.nn.log_softmax(logits).reshape(batch, beams, vocabulary)
            scores, index = jax.lax.top_k(total.reshape(batch, beams * vocabulary), beams)
            parent, word = index // vocabulary, (index % vocabulary).astype(jnp.int32)
            words = jnp.take_along_axis(words, parent[..., None], 1).at[:, :, t].set(word)

            def reorder(cache):
                c = cache.reshape(depth, batch, beams, *cache.shape[2:])
                return jnp.take_along_axis(c, parent[None, :, :, None, None, None], 2).reshape(cache.shape)

            return words, scores, reorder(ks), reorder(vs)

        words, scores, _, _ = jax.lax.fori_loop(0, target, step, start)
        return words[:, 0], scores[:, 0]

    tokens = jax.ShapeDtypeStruct((batch, source), "int32", sharding=split)
    return Program(generate, (params, tokens), lambda path: "weight" if path.startswith("[0]") else "input")


def prefill(topology, chips, chunk=2048, context=131072, depth=80, width=8192, heads=64, kv=8, hidden=28672, vocabulary=128256, blocks=1, donate=True, cache="bfloat16"):
    """Llama 3.1 70B, one chunk of one long prompt: tensor parallel, the cache divided by heads."""
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    size = width // heads
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, "bfloat16", sharding=on(*spec))
    layers = {"q": W((depth, width, heads, size), None, None, "tp"), "k": W((depth, width, kv, size), None, None, "tp"), "v": W((depth, width, kv, size), None, None, "tp"),
              "o": W((depth, heads, size, width), None, "tp"), "gate": W((depth, width, hidden), None, None, "tp"), "up": W((depth, width, hidden), None, None, "tp"),
              "down": W((depth, hidden, width), None, "tp"), "n1": W((depth, width)), "n2": W((depth, width))}
    params = {"embed": W((vocabulary, width), None, "tp"), "head": W((width, vocabulary), None, "tp"), "norm": W((width,)), "layers": layers}
    kept = {n: jax.ShapeDtypeStruct((depth, kv, context, size), cache, sharding=on(None, "tp")) for n in ("k", "v")}

    def rope(x, at):  # [time, heads, size]
        f = at[:, None] * 500000.0 ** (-jnp.arange(size // 2) / (size // 2))
        c, s = jnp.cos(f)[:, None].astype(HALF), jnp.sin(f)[:, None].astype(HALF)
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * c - b * s, b * c + a * s], -1)

    def attend(q, k, v, at):
        """q: [time, kv, group, size]; k, v: [kv, context, size]."""
        def scores(k, places):
            s = jnp.einsum("tgnd,gkd->gntk", q, k.astype(HALF)).astype(jnp.float32) * size**-0.5
            return jnp.where(places <= at[:, None], s, -1e30)

        if blocks == 1:
            p = jax.nn.softmax(scores(k, jnp.arange(context))).astype(HALF)
            return jnp.einsum("gntk,gkd->tgnd", p, v.astype(HALF))
        piece = context // blocks

        def one(carry, i):
            m, l, o = carry
            part = lambda a: jax.lax.dynamic_slice_in_dim(a, i * piece, piece, 1)
            s = scores(part(k), i * piece + jnp.arange(piece))
            new = jnp.maximum(m, s.max(-1))
            p, fade = jnp.exp(s - new[..., None]), jnp.exp(m - new)
            o = o * fade[..., None] + jnp.einsum("gntk,gkd->gntd", p.astype(HALF), part(v).astype(HALF)).astype(jnp.float32)
            return (new, l * fade + p.sum(-1), o), None

        shape = (kv, heads // kv, chunk)
        start = (jnp.full(shape, -1e30), jnp.zeros(shape), jnp.zeros((*shape, size)))
        (m, l, o), _ = jax.lax.scan(one, start, jnp.arange(blocks))
        return jnp.moveaxis((o / l[..., None]).astype(HALF), 2, 0)

    def prefill_chunk(params, kv_cache, tokens, start):
        at = start + jnp.arange(chunk)
        x = params["embed"][tokens]

        def one(carry, w):
            x, cache, i = carry
            h = rms(x, w["n1"])
            q = rope(jnp.einsum("td,dhk->thk", h, w["q"]), at)
            k, v = rope(jnp.einsum("td,dhk->thk", h, w["k"]), at), jnp.einsum("td,dhk->thk", h, w["v"])
            put = lambda c, new: jax.lax.dynamic_update_slice(c, new.swapaxes(0, 1)[None].astype(c.dtype), (i, 0, start, 0))
            cache = {"k": put(cache["k"], k), "v": put(cache["v"], v)}
            o = attend(q.reshape(chunk, kv, -1, size), cache["k"][i], cache["v"][i], at)
            x = x + jnp.einsum("thk,hkd->td", o.reshape(chunk, heads, size), w["o"])
            h = rms(x, w["n2"])
            return (x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], cache, i + 1), None

        (x, kv_cache, _), _ = jax.lax.scan(one, (x, kv_cache, 0), params["layers"])
        return rms(x[-1], params["norm"]) @ params["head"], kv_cache

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    args = (params, kept, jax.ShapeDtypeStruct((chunk,), "int32", sharding=on()), jax.ShapeDtypeStruct((), "int32", sharding=on()))
    return Program(prefill_chunk, args, classify, (1,) if donate else (), (on("tp"), shardings(kept)))


def fwi(topology, chips, shots, nz=384, nx=1024, steps=1000, remat=False, segments=1):
    """Two-dimensional acoustic full waveform inversion: the gradient of the misfit of all shots, an Adam step of the velocity."""
    devices = mesh(topology, (chips,), ("shots",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("shots"))
    coefficients = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
    dt, dx, edge = 1e-3, 10.0, 40
    transform = optax.adam(10.0)

    def laplacian(u):
        p = jnp.pad(u, ((4, 4), (4, 4)))
        total = 2 * coefficients[0] * u
        for i, c in enumerate(coefficients[1:], 1):
            total += c * (p[4 + i: 4 + i + nz, 4:-4] + p[4 - i: 4 - i + nz, 4:-4] + p[4:-4, 4 + i: 4 + i + nx] + p[4:-4, 4 - i: 4 - i + nx])
        return total / dx**2

    def sponge():
        z, x = jnp.arange(nz), jnp.arange(nx)
        near = jnp.minimum(jnp.minimum(z, nz - 1 - z)[:, None], jnp.minimum(x, nx - 1 - x)[None])
        return jnp.where(near < edge, jnp.exp(-((0.0053 * (edge - near)) ** 2)), 1.0)

    def shoot(velocity, wavelet, place):
        fade, speed = sponge(), (velocity * dt) ** 2

        def one(carry, w):
            past, now = carry
            new = (2 * now - past + speed * laplacian(now)).at[place[0], place[1]].add(w * dt**2)
            return (now * fade, new * fade), new[8]

        start = (jnp.zeros((nz, nx)), jnp.zeros((nz, nx)))
        if segments == 1:
            return jax.lax.scan(jax.checkpoint(one) if remat else one, start, wavelet)[1]
        segment = jax.checkpoint(lambda carry, w: jax.lax.scan(one, carry, w))
        return jax.lax.scan(segment, start, wavelet.reshape(segments, -1))[1].reshape(steps, nx)

    def invert_step(model, opt_state, wavelet, places, observed):
        def misfit(model):
            predicted = jax.vmap(shoot, (None, None, 0))(model["velocity"], wavelet, places)
            return ((predicted - observed) ** 2).sum()

        loss, grads = jax.value_and_grad(misfit)(model)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(model, updates), opt_state, loss

    model = {"velocity": jax.ShapeDtypeStruct((nz, nx), "float32", sharding=whole)}
    state = placed(jax.eval_shape(transform.init, model), whole)
    args = (model, state, jax.ShapeDtypeStruct((steps,), "float32", sharding=whole),
            jax.ShapeDtypeStruct((shots, 2), "int32", sharding=split), jax.ShapeDtypeStruct((shots, steps, nx), "float32", sharding=split))
    return Program(invert_step, args, kind_of_step, (0, 1))
