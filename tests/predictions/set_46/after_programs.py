"""A GRU over chunks of steps (a scan in a scan); blocks of real diagonal recurrences by associative_scan; gated MLPs: JAX alone, Adam, data parallel."""
import jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh

def _program(loss, shapes, data, topology, chips):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    opt = optax.adam(1e-3)
    state = jax.eval_shape(lambda: (lambda p: (p, opt.init(p)))(jax.tree.map(lambda s: jnp.zeros(s, jnp.float32), shapes, is_leaf=lambda x: isinstance(x, tuple) and all(isinstance(i, int) for i in x))))
    at = lambda t, s: jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s), t)
    def step(params, opt_state, x, y):
        grads = jax.grad(loss)(params, x, y)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state
    args = (at(state[0], whole), at(state[1], whole), *(at(d, split) for d in data))
    return Program(step, args, lambda p: "input" if p[1] in "23" else "weight" if p.startswith("[0]") else "opt", (0, 1))

def chunked(topology, chips, batch, chunks=64, steps=32, width=512, remat=False):
    def cell(p, h, x):
        zr = jax.nn.sigmoid(x @ p["wzr"] + h @ p["uzr"])
        z, r = jnp.split(zr, 2, -1)
        n = jnp.tanh(x @ p["wn"] + (r * h) @ p["un"])
        return (1 - z) * n + z * h
    def loss(p, x, y):
        def chunk(h, xs):
            h, _ = jax.lax.scan(lambda h, x: (cell(p, h, x), None), h, xs)
            return h, h
        chunk = jax.checkpoint(chunk) if remat else chunk
        h, hs = jax.lax.scan(chunk, jnp.zeros((x.shape[0], width)), x.transpose(1, 2, 0, 3))
        return jnp.mean((hs.transpose(1, 0, 2) @ p["out"] - y) ** 2)
    shapes = dict(wzr=(64, 2 * width), uzr=(width, 2 * width), wn=(64, width), un=(width, width), out=(width, 64))
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32")
    return _program(loss, shapes, (S(chunks, steps, 64), S(chunks, 64)), topology, chips)

def deep(topology, chips, batch, length=4096, width=256, depth=8, remat=False):
    def block(p, x):
        n = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * p["g"]
        u = n @ p["b"]
        a = jax.nn.sigmoid(n @ p["a"])
        join = lambda l, r: (r[0] * l[0], r[0] * l[1] + r[1])
        _, h = jax.lax.associative_scan(join, (a, (1 - a) * u), axis=1)
        return x + jax.nn.gelu(h @ p["c"]) * jax.nn.sigmoid(n @ p["s"])
    def loss(p, x, y):
        x = x @ p["in"]
        for i in range(depth):
            with jax.named_scope(f"block_{i}"):
                x = (jax.checkpoint(block) if remat else block)(p[f"block_{i}"], x)
        return jnp.mean(((x.mean(1) @ p["out"]) - y) ** 2)
    shapes = {f"block_{i}": dict(g=(width,), a=(width, width), b=(width, width), c=(width, width), s=(width, width)) for i in range(depth)} | {"in": (16, width), "out": (width, 10)}
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32")
    return _program(loss, shapes, (S(length, 16), S(10)), topology, chips)

def gated(topology, chips, batch, length=2048, width=1024, depth=10, remat=False):
    def block(p, x):
        h = jax.nn.silu(x @ p["u"]) * (x @ p["v"])
        return x + h @ p["d"]
    def loss(p, x, y):
        x = x @ p["in"]
        for i in range(depth):
            with jax.named_scope(f"layer_{i}"):
                x = (jax.checkpoint(block) if remat else block)(p[f"layer_{i}"], x)
        return jnp.mean(((x.mean(1) @ p["out"]) - y) ** 2)
    shapes = {f"layer_{i}": dict(u=(width, 4 * width), v=(width, 4 * width), d=(4 * width, width)) for i in range(depth)} | {"in": (16, width), "out": (width, 10)}
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32")
    return _program(loss, shapes, (S(length, 16), S(10)), topology, chips)
