"""JAX alone: four-dimensional variational assimilation of shallow water (the ensemble is the last axis); a reversible transformer by custom_vjp."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def assimilate(topology, chips, members, steps=240, ny=256, nx=512, remat=False, donate=True):
    """The gradient of the misfit with observed heights at each step, by the initial state; an Adam step of it. Fields are [y, x, member]."""
    devices = mesh(topology, (chips,), ("ens",))
    last = lambda n: NamedSharding(devices, P(*[None] * (n - 1), "ens"))
    whole = NamedSharding(devices, P())
    dx, dt, g, nu = 10e3, 20.0, 9.81, 1e3
    transform = optax.adam(0.05)
    ddx = lambda a: (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1)) / (2 * dx)
    ddy = lambda a: (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0)) / (2 * dx)
    lap = lambda a: (jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a) / dx**2

    def tendency(s, coriolis):
        u, v, h = s["u"], s["v"], s["h"]
        zeta = ddx(v) - ddy(u) + coriolis
        energy = g * h + 0.5 * (u * u + v * v)
        return {"u": zeta * v - ddx(energy) + nu * lap(u), "v": -zeta * u - ddy(energy) + nu * lap(v), "h": -ddx(h * u) - ddy(h * v)}

    def advance(s, coriolis):
        half = jax.tree.map(lambda a, d: a + 0.5 * dt * d, s, tendency(s, coriolis))
        return jax.tree.map(lambda a, d: a + dt * d, s, tendency(half, coriolis))

    def fourdvar(guess, opt_state, background, coriolis, heights):
        def cost(guess):
            def one(s, seen):
                s = advance(s, coriolis[:, :, None])
                return s, ((s["h"] - seen[:, :, None]) ** 2).sum((0, 1))

            _, misfit = jax.lax.scan(jax.checkpoint(one) if remat else one, guess, heights)
            prior = sum(((a - b) ** 2).sum() for a, b in zip(jax.tree.leaves(guess), jax.tree.leaves(background)))
            return misfit.sum() + prior

        value, grads = jax.value_and_grad(cost)(guess)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(guess, updates), opt_state, value

    F = lambda: jax.ShapeDtypeStruct((ny, nx, members), "float32", sharding=last(3))
    state = {"u": F(), "v": F(), "h": F()}
    opt = following(jax.eval_shape(transform.init, state), state, whole)
    W = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    return Program(fourdvar, (state, opt, state, W(ny, nx), W(steps, ny, nx)), kind_of_step, (0, 1) if donate else ())


def reversible(topology, chips, batch, length=2048, depth=24, width=2048, heads=16, hidden=8192, vocabulary=128000, chunks=1, zero=False, donate=True):
    """Two streams; the backward pass computes each layer's inputs again from its outputs."""
    devices = mesh(topology, (chips,), ("dp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("dp"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    size = width // heads
    params = {"wte": F(vocabulary, width), "lnf": F(2 * width), "proj": F(2 * width, width),
              "stack": {"f": {"g": F(depth, width), "qkv": F(depth, width, 3 * width), "o": F(depth, width, width)}, "g": {"g": F(depth, width), "w1": F(depth, width, hidden), "w2": F(depth, hidden, width)}}}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-4))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "dp") if zero else whole)

    def f(x, w):
        h = rms(x, w["g"])
        q, k, v = jnp.split((h @ w["qkv"].astype(HALF)).reshape(*h.shape[:2], heads, 3 * size), 3, -1)
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * size**-0.5
        s = jnp.where(jnp.tril(jnp.ones((h.shape[1], h.shape[1]), bool)), s, -1e30)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v).reshape(h.shape) @ w["o"].astype(HALF)

    def g(x, w):
        return jnp.square(jax.nn.relu(rms(x, w["g"]) @ w["w1"].astype(HALF))) @ w["w2"].astype(HALF)

    def forth(pair, w):
        a, b = pair
        a = a + f(b, w["f"])
        return (a, b + g(a, w["g"])), None

    @jax.custom_vjp
    def stack(pair, w):
        return jax.lax.scan(forth, pair, w)[0]

    def stack_fwd(pair, w):
        out = stack(pair, w)
        return out, (out, w)

    def stack_bwd(kept, grad):
        out, w = kept

        def back(carry, w):
            (a, b), (da, db) = carry
            ga, pull = jax.vjp(g, a, w["g"])
            b = b - ga
            da2, dwg = pull(db)
            da = da + da2
            fb, pull = jax.vjp(f, b, w["f"])
            a = a - fb
            db2, dwf = pull(da)
            return ((a, b), (da, db + db2)), {"f": dwf, "g": dwg}

        (_, grad), dw = jax.lax.scan(back, (out, grad), w, reverse=True)
        return grad, dw

    stack.defvjp(stack_fwd, stack_bwd)

    def loss_fn(params, ids, labels):
        x = params["wte"].astype(HALF)[ids]
        a, b = stack((x, x), params["stack"])
        x = rms(jnp.concatenate([a, b], -1), params["lnf"]) @ params["proj"].astype(HALF)

        def piece(x, y):
            logits = (x @ params["wte"].astype(HALF).T).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).sum()

        if chunks == 1:
            return piece(x, labels) / labels.size
        cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
        return jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, (cut(x), cut(labels)))[0] / labels.size

    def train_step(params, opt_state, ids, labels):
        loss, grads = jax.value_and_grad(loss_fn)(params, ids, labels)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    I = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, I, I), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
