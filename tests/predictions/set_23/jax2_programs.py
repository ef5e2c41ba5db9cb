"""JAX alone: optimal transport between clouds of points by Sinkhorn's iterations, differentiated through; recommendation with a softmax over all items (SASRec); a recurrent Q-learner on frames (R2D2)."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings
from recipe import Program, mesh, placed


def transport(topology, chips, points, steps=40, size=64, hidden=1024, epsilon=0.05, remat=False, donate=True):
    """A network moves the first cloud onto the second; the rows of the costs are on different chips."""
    devices = mesh(topology, (chips,), ("rows",))
    on = lambda *s: NamedSharding(devices, P(*s))
    sizes = [size, hidden, hidden, size]
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=on())
    params = [{"w": F(a, b), "b": F(b)} for a, b in zip(sizes, sizes[1:])]
    transform = optax.adam(1e-3)
    opt = placed(jax.eval_shape(transform.init, params), on())

    def move(params, x):
        for i, w in enumerate(params):
            y = x @ w["w"] + w["b"]
            x = y if i == len(params) - 1 else jax.nn.silu(y)
        return x

    def sinkhorn(x, y):
        cost = ((x**2).sum(-1)[:, None] + (y**2).sum(-1)[None] - 2 * x @ y.T) / epsilon
        cost = jax.lax.with_sharding_constraint(cost, on("rows"))
        n = -jnp.log(float(points))

        def one(fg, _):
            f, g = fg
            f = -jax.nn.logsumexp(g[None] - cost + n, 1)
            g = -jax.nn.logsumexp(f[:, None] - cost + n, 0)
            return (f, g), None

        (f, g), _ = jax.lax.scan(jax.checkpoint(one) if remat else one, (jnp.zeros(points), jnp.zeros(points)), None, length=steps)
        return epsilon * (f.mean() + g.mean())

    def step(params, opt_state, source, target):
        def loss_fn(params):
            x = source + move(params, source)
            return sinkhorn(x, target)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((points, *s), "float32", sharding=on("rows"))
    return Program(step, (params, opt, S(size), S(size)), kind_of_step, (0, 1) if donate else ())


def sasrec(topology, chips, batch, items=1_000_000, length=200, width=256, heads=4, depth=4, chunks=1, rows=False, half=False, donate=True):
    """Self-attentive recommendation; the softmax is over all items; lazy users whose table is whole or cut by rows."""
    devices = mesh(topology, (chips,), ("data",))
    on = lambda *s: NamedSharding(devices, P(*s))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=on())
    block = lambda: {"n1": F(width), "qkv": F(width, 3, heads, width // heads), "o": F(heads, width // heads, width), "n2": F(width), "up": F(width, 4 * width), "down": F(4 * width, width)}
    table = jax.ShapeDtypeStruct((items, width), "float32", sharding=on("data") if rows else on())
    params = {"items": table, "places": F(length, width), "blocks": [block() for _ in range(depth)], "norm": F(width)}
    transform = optax.adam(1e-3)
    opt = following(jax.eval_shape(transform.init, params), params, on())
    dtype = HALF if half else jnp.float32

    def norm(x, w):
        x = x.astype(jnp.float32)
        return ((x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * w).astype(dtype)

    def loss_fn(params, history, target):
        p = jax.tree.map(lambda a: a.astype(dtype), params)
        x = p["items"][history] + p["places"]
        for w in p["blocks"]:
            q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", norm(x, w["n1"]), w["qkv"]), 2, 0)
            s = jnp.einsum("bqhk,bthk->bhqt", q, k).astype(jnp.float32) * (width // heads) ** -0.5
            s = jnp.where(jnp.tril(jnp.ones((length, length), bool)), s, -1e30)
            x = x + jnp.einsum("bhqt,bthk,hkd->bqd", jax.nn.softmax(s).astype(dtype), v, w["o"])
            x = x + jax.nn.gelu(norm(x, w["n2"]) @ w["up"]) @ w["down"]
        x = norm(x, p["norm"])

        def piece(x, y):
            logits = (x @ p["items"].T).astype(jnp.float32)
            return (optax.softmax_cross_entropy_with_integer_labels(logits, y) * (y > 0)).sum()

        if chunks == 1:
            total = piece(x, target)
        else:
            cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
            total = jax.lax.map(jax.checkpoint(lambda xs: piece(*xs)), (cut(x), cut(target))).sum()
        return total / (target > 0).sum()

    def train_step(params, opt_state, history, target):
        loss, grads = jax.value_and_grad(loss_fn)(params, history, target)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    I = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    return Program(train_step, (params, opt, I, I), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


class Torso(nn.Module):
    actions: int
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, frames):
        """[time, batch, 84, 84, 4] to values [time, batch, actions]."""
        t, b = frames.shape[:2]
        x = frames.reshape(t * b, *frames.shape[2:]).astype(self.dtype) / 255
        for n, k, s in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = nn.relu(nn.Conv(n, (k, k), (s, s), padding="VALID", dtype=self.dtype)(x))
        x = nn.relu(nn.Dense(512, dtype=self.dtype)(x.reshape(t * b, -1))).reshape(t, b, 512)
        x = nn.RNN(nn.OptimizedLSTMCell(512, dtype=self.dtype), time_major=True)(x)
        value, more = nn.Dense(1, dtype=self.dtype)(x), nn.Dense(self.actions, dtype=self.dtype)(x)
        return (value + more - more.mean(-1, keepdims=True)).astype(jnp.float32)


def r2d2(topology, chips, batch, time=120, actions=18, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole = NamedSharding(devices, P())
    net = (nn.remat(Torso) if remat else Torso)(actions, HALF if half else jnp.float32)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((2, 1, 84, 84, 4), jnp.uint8)), whole)
    transform = optax.adam(1e-4, eps=1e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def learn(params, opt_state, target, data):
        def loss_fn(params):
            q = net.apply(params, data["frames"])
            ahead = net.apply(target, data["frames"])
            best = q[1:].argmax(-1)
            future = jnp.take_along_axis(ahead[1:], best[..., None], -1)[..., 0]
            aim = data["rewards"][:-1] + 0.997 * data["going"][:-1] * jax.lax.stop_gradient(future)
            taken = jnp.take_along_axis(q[:-1], data["actions"][:-1, :, None], -1)[..., 0]
            error = aim - taken
            return (data["weight"] * (error**2).mean(0)).mean(), jnp.abs(error).max(0)

        (loss, priority), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, priority, loss

    T = lambda dtype, *s: jax.ShapeDtypeStruct((time, batch, *s), dtype, sharding=NamedSharding(devices, P(None, "data")))
    data = {"frames": T("uint8", 84, 84, 4), "actions": T("int32"), "rewards": T("float32"), "going": T("float32"), "weight": jax.ShapeDtypeStruct((batch,), "float32", sharding=NamedSharding(devices, P("data")))}
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(learn, (params, opt, target_of(params), data), classify, (0, 1) if donate else ())


def target_of(params):
    return params
