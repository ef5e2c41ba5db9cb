"""Written after the score: a server whose caches have their pages first and one that belongs to nobody (JAX alone), an encoder in micro-batches (Equinox), a decoder that learns from the words that a larger one thinks likely (NNX)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed

HALF = jnp.bfloat16
CLASSES = lambda path: "input" if path.startswith("[2]") else "weight" if path.startswith("[0]") else "opt"


def pages(topology, chips, users, length=4096, page=32, width=2048, heads=16, kv=8, depth=24, vocabulary=32000, donate=True):
    devices, size = mesh(topology, (chips,), ("x",)), width // heads
    on = lambda *spec: NamedSharding(devices, P(*spec))
    W = lambda shape, *spec: jax.ShapeDtypeStruct(shape, HALF, sharding=on(*spec))
    layer = lambda: {"q": W((width, heads, size), None, "x"), "kv": W((width, kv, 2 * size), None, "x"), "o": W((heads, size, width), "x"), "up": W((width, 4 * width), None, "x"), "down": W((4 * width, width), "x")}
    params = {"embed": W((vocabulary, width)), "layers": [layer() for _ in range(depth)]}
    of_each = length // page
    pool = users * of_each + 1
    store = [jax.ShapeDtypeStruct((pool, page, kv, 2 * size), HALF, sharding=on(None, None, "x")) for _ in range(depth)]
    I = lambda *s: jax.ShapeDtypeStruct((users, *s), "int32", sharding=on())

    def decode_step(params, store, tokens, block_tables, context_lens):
        x, new = params["embed"][tokens], []
        for w, pool_of in zip(params["layers"], store):
            q, k = jnp.einsum("ud,dhk->uhk", x, w["q"]), jnp.einsum("ud,dhk->uhk", x, w["kv"])
            which = jnp.take_along_axis(block_tables, (context_lens // page)[:, None], 1)[:, 0]
            pool_of = pool_of.at[which, context_lens % page].set(k)
            seen = pool_of[block_tables].reshape(users, length, kv, 2 * size)
            keys, values = jnp.split(seen, 2, -1)
            s = jnp.einsum("ugnk,usgk->ugns", q.reshape(users, kv, heads // kv, size), keys).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(length) <= context_lens[:, None, None, None], s, -1e30)
            o = jnp.einsum("ugns,usgk->ugnk", jax.nn.softmax(s).astype(HALF), values).reshape(users, heads, size)
            x = x + jnp.einsum("uhk,hkd->ud", o, w["o"])
            x = x + jax.nn.gelu(x @ w["up"]) @ w["down"]
            new.append(pool_of)
        return new, jnp.argmax(x @ params["embed"].T, -1).astype("int32"), context_lens + 1

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = (jax.tree.map(lambda a: a.sharding, store), on(), on())
    return Program(decode_step, (params, store, I(), I(of_each), I()), classify, (1,) if donate else (), outs)


class Block(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    norm: eqx.nn.LayerNorm

    def __init__(self, width, key):
        a, b, c = jax.random.split(key, 3)
        self.attention = eqx.nn.MultiheadAttention(8, width, key=a)
        self.first, self.second = eqx.nn.Linear(width, 4 * width, key=b), eqx.nn.Linear(4 * width, width, key=c)
        self.norm = eqx.nn.LayerNorm(width)

    def __call__(self, x):
        h = jax.vmap(self.norm)(x)
        x = x + self.attention(h, h, h)
        return x + jax.vmap(self.second)(jax.nn.gelu(jax.vmap(self.first)(x)))


def encoder(topology, chips, batch, parts, width=1024, depth=8, length=512, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda k: [Block(width, one) for one in jax.random.split(k, depth)], jax.random.key(0))
    params, rest = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.adamw(1e-4)
    state = placed(jax.eval_shape(transform.init, params), whole)
    data = {"x": jax.ShapeDtypeStruct((batch, length, width), "float32", sharding=split), "y": jax.ShapeDtypeStruct((batch, length, width), "float32", sharding=split)}

    def loss(params, x, y):
        for block in eqx.combine(params, rest):
            run = jax.vmap(block)
            x = (jax.checkpoint(run) if remat else run)(x)
        return jnp.mean((x - y) ** 2)

    def train_step(params, state, data):
        cut = lambda a: jax.lax.with_sharding_constraint(a.reshape(parts, a.shape[0] // parts, *a.shape[1:]), NamedSharding(devices, P(None, "data")))

        def one(total, part):
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, *part)), None

        total, _ = jax.lax.scan(one, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), params), (cut(data["x"]), cut(data["y"])))
        updates, state = transform.update(jax.tree.map(lambda g: g / parts, total), state, params)
        return optax.apply_updates(params, updates), state

    outs = tuple(jax.tree.map(lambda a: a.sharding, t) for t in (params, state))
    return Program(train_step, (params, state, data), CLASSES, (0, 1), outs)


class Student(nnx.Module):
    def __init__(self, width, depth, vocabulary, rngs):
        self.embed = nnx.Embed(vocabulary, width, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(width, width, rngs=rngs) for _ in range(depth)])
        self.head = nnx.Linear(width, vocabulary, rngs=rngs)

    def __call__(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + jax.nn.silu(layer(x))
        return self.head(x)


def distil(topology, chips, batch, length=512, width=1024, depth=8, vocabulary=50304, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    graph, params = jax.eval_shape(lambda: nnx.split(Student(width, depth, vocabulary, nnx.Rngs(0))))
    params = placed(params, whole)
    transform = optax.adam(1e-4)
    state = placed(jax.eval_shape(transform.init, params), whole)
    data = {"tokens": jax.ShapeDtypeStruct((batch, length), "int32", sharding=split), "teacher": jax.ShapeDtypeStruct((batch, length, vocabulary), "bfloat16", sharding=split)}

    def loss(params, data):
        logits = nnx.merge(graph, params)(data["tokens"]).astype(jnp.float32)
        wanted = jax.nn.softmax(data["teacher"].astype(jnp.float32))
        return -(wanted * jax.nn.log_softmax(logits)).sum(-1).mean()

    def train_step(params, state, data):
        value, grads = jax.value_and_grad(loss)(params, data)
        updates, state = transform.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    outs = (*(jax.tree.map(lambda a: a.sharding, t) for t in (params, state)), whole)
    return Program(train_step, (params, state, data), CLASSES, (0, 1) if donate else (), outs)
