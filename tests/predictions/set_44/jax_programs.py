"""JAX alone: flow matching (a rectified flow of latents) by a multimodal diffusion transformer, pictures and words in streams of their own that attend to each other, layers one after another, AdamW and an average of the weights, data parallel; and verifying a tree of drafted words (Medusa) by a decoder with grouped queries, caches one for each layer, sequences over one axis, heads over the other."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def mmdit(topology, chips, batch, side=64, patch=2, channels=16, words=128, text=2048, width=1152, heads=18, depth=12, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    dense = lambda a, b: {"kernel": F(a, b), "bias": F(b)}
    places, seen = (side // patch) ** 2, patch * patch * channels

    def stream():
        return {"mod": dense(width, 6 * width), "qkv": dense(width, 3 * width), "q_norm": F(width // heads), "k_norm": F(width // heads), "out": dense(width, width), "up": dense(width, 4 * width), "down": dense(4 * width, width)}

    params = {
        "patch": dense(seen, width), "position": F(places, width), "context": dense(text, width), "time": [dense(256, width), dense(width, width)],
        "blocks": [{"picture": stream(), "words": stream()} for _ in range(depth)], "last_mod": dense(width, 2 * width), "last": dense(width, seen)}
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.95, weight_decay=0.01))
    opt = jax.eval_shape(transform.init, params)
    opt = placed(opt, largest_dimension(devices, "data")) if zero else following(opt, params, whole)

    def on(layer, x):
        return x @ layer["kernel"].astype(HALF) + layer["bias"].astype(HALF)

    def norm(x):
        y = x.astype(jnp.float32)
        y = y - y.mean(-1, keepdims=True)
        return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)).astype(HALF)

    def block(layer, x, c, t):
        mods = {n: jnp.split(on(layer[n]["mod"], jax.nn.silu(t))[:, None], 6, -1) for n in ("picture", "words")}

        def parts(n, a):
            shift, scale = mods[n][:2]
            q, k, v = jnp.split(on(layer[n]["qkv"], norm(a) * (1 + scale) + shift), 3, -1)
            q, k, v = (z.reshape(*z.shape[:2], heads, -1) for z in (q, k, v))
            return rms(q, layer[n]["q_norm"]), rms(k, layer[n]["k_norm"]), v

        q, k, v = (jnp.concatenate(pair, 1) for pair in zip(parts("words", c), parts("picture", x)))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v).reshape(x.shape[0], -1, width)

        def rest(n, a, o):
            _, _, gate, shift, scale, gate_mlp = mods[n]
            a = a + gate * on(layer[n]["out"], o)
            h = on(layer[n]["up"], norm(a) * (1 + scale) + shift)
            return a + gate_mlp * on(layer[n]["down"], jax.nn.gelu(h))

        return rest("picture", x, o[:, words:]), rest("words", c, o[:, :words])

    def velocity(params, latents, context, time):
        rows, n = latents.shape[0], side // patch
        x = latents.astype(HALF).reshape(rows, n, patch, n, patch, channels).swapaxes(2, 3).reshape(rows, places, seen)
        x = on(params["patch"], x) + params["position"].astype(HALF)
        c = on(params["context"], context)
        angle = time[:, None] * 1000 * jnp.exp(-jnp.arange(128) * (jnp.log(10000.0) / 128))
        t = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1).astype(HALF)
        t = on(params["time"][1], jax.nn.silu(on(params["time"][0], t)))
        for layer in params["blocks"]:
            x, c = block(layer, x, c, t)
        shift, scale = jnp.split(on(params["last_mod"], jax.nn.silu(t))[:, None], 2, -1)
        y = on(params["last"], norm(x) * (1 + scale) + shift).astype(jnp.float32)
        return y.reshape(rows, n, n, patch, patch, channels).swapaxes(2, 3).reshape(latents.shape)

    def train_step(params, opt_state, ema, batch, key):
        k1, k2 = jax.random.split(key)
        latents = batch["latents"]
        time = jax.nn.sigmoid(jax.random.normal(k1, latents.shape[:1]))
        noise = jax.lax.with_sharding_constraint(jax.random.normal(k2, latents.shape), split)
        t = time[:, None, None, None]
        mixed, wanted = (1 - t) * latents + t * noise, noise - latents

        def loss_fn(params):
            return jnp.square(velocity(params, mixed, batch["context"], time) - wanted).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, opt_state, optax.incremental_update(params, ema, 1e-4), loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"latents": S("float32", side, side, channels), "context": S("bfloat16", words, text)}
    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype, sharding=whole)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight", "[3]": "input"}.get(path[:3], "other")
    return Program(train_step, (params, opt, params, data, key), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(opt), shardings(params), None))


def medusa(topology, shape, batch, places=4096, words=64000, width=3072, heads=24, kv=8, size=128, hidden=8192, depth=16, ahead=4, kept="bfloat16", donate=True):
    """The tree: 31 words, the children of i are 2 i + 1 and 2 i + 2, so paths of 5."""
    devices = mesh(topology, shape, ("data", "model"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda s, *spec: jax.ShapeDtypeStruct(s, HALF, sharding=on(*spec))
    column, row = lambda a, b: W((a, b), None, "model"), lambda a, b: W((a, b), "model")

    def layer():
        return {"q": column(width, heads * size), "k": column(width, kv * size), "v": column(width, kv * size), "o": row(heads * size, width), "gate": column(width, hidden), "up": column(width, hidden), "down": row(hidden, width), "norm1": W((width,)), "norm2": W((width,))}

    params = {"embed": W((words, width), None, "model"), "layers": [layer() for _ in range(depth)], "norm": W((width,)), "head": column(width, words), "medusa": [column(width, width) for _ in range(ahead)]}
    A = lambda s, d, *spec: jax.ShapeDtypeStruct(s, d, sharding=on(*spec))
    caches = [{n: A((batch, kv, places, size), kept, "data", "model") for n in ("keys", "values")} for _ in range(depth)]
    nodes = 2 ** (ahead + 1) - 1
    parent = [(i - 1) // 2 for i in range(nodes)]

    def line(i):
        return [i] if i == 0 else line(parent[i]) + [i]

    above = jnp.array([[j in line(i) for j in range(nodes)] for i in range(nodes)])
    level = jnp.array([len(line(i)) - 1 for i in range(nodes)])
    paths = jnp.array([line(i) for i in range(nodes // 2, nodes)])
    put = lambda a: jnp.clip(jnp.round(a * 16), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)
    got = lambda a: a.astype(HALF) / 16 if a.dtype == jnp.int8 else a

    def turned(a, where):
        """[batch, heads, nodes, size] at [batch, nodes]."""
        half = size // 2
        angle = where[:, None, :, None] * 5000000.0 ** (-jnp.arange(half) / half)
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def verify_step(params, caches, tree, where):
        """tree [batch, nodes]: words drafted, the first of them sure; where [batch]: how many places each has."""
        rows, x, new = tree.shape[0], params["embed"][tree], []
        spots = where[:, None] + level
        for layer, cache in zip(params["layers"], caches):
            h = rms(x, layer["norm1"])
            q, k, v = ((h @ layer[n]).reshape(rows, nodes, -1, size).swapaxes(1, 2) for n in "qkv")
            q, k = turned(q, spots).reshape(rows, kv, -1, nodes, size), turned(k, spots)
            old = jnp.einsum("bhgtd,bhcd->bhgtc", q, got(cache["keys"])).astype(jnp.float32) * size**-0.5
            old = jnp.where(jnp.arange(places) < where[:, None, None, None, None], old, -1e30)
            own = jnp.where(above, jnp.einsum("bhgtd,bhcd->bhgtc", q, k).astype(jnp.float32) * size**-0.5, -1e30)
            p = jax.nn.softmax(jnp.concatenate([old, own], -1)).astype(HALF)
            o = jnp.einsum("bhgtc,bhcd->bhgtd", p[..., :places], got(cache["values"])) + jnp.einsum("bhgtc,bhcd->bhgtd", p[..., places:], v)
            x = x + o.transpose(0, 3, 1, 2, 4).reshape(rows, nodes, -1) @ layer["o"]
            h = rms(x, layer["norm2"])
            x = x + (jax.nn.silu(h @ layer["gate"]) * (h @ layer["up"])) @ layer["down"]
            new.append({"keys": k, "values": v})
        x = rms(x, params["norm"])
        best = jnp.argmax((x @ params["head"]).astype(jnp.float32), -1)
        right = tree[:, paths[:, 1:]] == best[:, paths[:, :-1]]
        length = jnp.cumprod(right, -1).sum(-1)
        which = jnp.argmax(length, -1)
        path, taken = paths[which], jnp.take_along_axis(length, which[:, None], 1)[:, 0]

        def store(cache, a):
            a = put(jnp.take_along_axis(a, path[:, None, :, None], 2))
            return jax.vmap(lambda c, a, w: jax.lax.dynamic_update_slice(c, a, (0, w, 0)))(cache, a, where)

        caches = [{n: store(cache[n], one[n]) for n in cache} for cache, one in zip(caches, new)]
        last = jnp.take_along_axis(path, taken[:, None], 1)
        h = jnp.take_along_axis(x, last[..., None], 1)[:, 0]
        drafts = [jax.lax.top_k(((h + jax.nn.silu(h @ m)) @ params["head"]).astype(jnp.float32), 2)[1] for m in params["medusa"]]
        sure = jnp.take_along_axis(best, last, 1)
        tree = jnp.concatenate([sure, *[jnp.tile(d, (1, 2**i)) for i, d in enumerate(drafts)]], 1).astype("int32")
        return caches, tree, where + taken + 1

    args = (params, caches, A((batch, nodes), "int32", "data"), A((batch,), "int32", "data"))
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(verify_step, args, classify, (1,) if donate else (), (shardings(caches), on("data"), on("data")))
