"""JAX and Optax alone: mip-NeRF 360 (two rounds of proposals by an MLP of 4 layers of 256, then one of 8 layers of 1024; cones' Gaussians, contracted, encoded along 21 directions) in training, float32, Adam, rays divided over devices."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def directions():
    """Those of an icosahedron whose edges are halved, one of each opposite pair: 21 of 3."""
    g = (1 + 5**0.5) / 2
    corners = np.array([p for a in (-1, 1) for b in (-g, g) for p in ((0, a, b), (a, b, 0), (b, 0, a))])
    apart = np.linalg.norm(corners[:, None] - corners[None], axis=-1)
    halves = np.array([(corners[i] + corners[j]) / 2 for i in range(12) for j in range(i) if abs(apart[i, j] - 2) < 1e-6])
    all_ = np.concatenate([corners, halves])
    all_ = all_ / np.linalg.norm(all_, axis=-1, keepdims=True)
    kept = []
    for p in all_:
        if not any(np.allclose(p, -q) for q in kept):
            kept.append(p)
    return np.array(kept, "float32")


def mipnerf360(topology, chips, rays, coarse=64, fine=32, degrees=12, compute="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    basis = directions()
    assert basis.shape == (21, 3)
    given = basis.shape[0] * degrees * 2
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    dense = lambda a, b: {"w": F(a, b), "b": F(b)}

    def mlp(width, depth):
        sizes = [given, *[width + (given if i % 4 == 0 and i > 0 else 0) for i in range(1, depth + 1)]]
        return {"layers": [dense(sizes[i], width) for i in range(depth)], "density": dense(sizes[depth], 1)}, sizes[depth]

    proposal, _ = mlp(256, 4)
    last, end = mlp(1024, 8)
    last |= {"bottleneck": dense(end, 256), "view": dense(256 + 27, 128), "color": dense(128, 3)}
    params = placed({"proposal": proposal, "nerf": last}, whole)
    transform = optax.chain(optax.clip_by_global_norm(1e-3), optax.adam(optax.exponential_decay(2e-3, 250000, 0.01), eps=1e-6))
    opt = placed(jax.eval_shape(transform.init, params), whole)
    through = lambda p, x: x @ p["w"].astype(x.dtype) + p["b"].astype(x.dtype)

    def gaussians(t, origins, ways, radii):
        t0, t1 = t[:, :-1], t[:, 1:]
        mu, hw = (t0 + t1) / 2, (t1 - t0) / 2
        den = 3 * mu**2 + hw**2
        mean = mu + 2 * mu * hw**2 / den
        along = hw**2 / 3 - 4 / 15 * hw**4 * (12 * mu**2 - hw**2) / den**2
        across = radii**2 * (mu**2 / 4 + 5 / 12 * hw**2 - 4 / 15 * hw**4 / den)
        d2 = (ways**2).sum(-1, keepdims=True)[..., None]
        outer = ways[:, :, None] * ways[:, None]
        cov = along[..., None, None] * outer[:, None] + across[..., None, None] * (jnp.eye(3) - outer / d2)[:, None]
        return origins[:, None] + ways[:, None] * mean[..., None], cov

    def contracted(mean, cov):
        def contract(x):
            size = jnp.maximum((x * x).sum(), 1.0)
            return jnp.where(size <= 1.0, x, (2 * jnp.sqrt(size) - 1) / size * x)

        def one(m, c):
            y, push = jax.linearize(contract, m)
            half = jax.vmap(push, 1, 1)(c)
            return y, jax.vmap(push, 1, 1)(half.T)

        return jax.vmap(jax.vmap(one))(mean, cov)

    def encoded(mean, cov):
        m = mean @ basis.T
        v = jnp.einsum("rsij,ki,kj->rsk", cov, basis, basis)
        scale = 2.0 ** jnp.arange(degrees)
        m = (m[..., None, :] * scale[:, None]).reshape(*m.shape[:-1], -1)
        v = (v[..., None, :] * scale[:, None] ** 2).reshape(m.shape)
        damp = jnp.exp(-0.5 * v)
        return jnp.concatenate([damp * jnp.sin(m), damp * jnp.sin(m + jnp.pi / 2)], -1).astype(compute)

    def trunk(p, x):
        h = x
        for i, w in enumerate(p["layers"]):
            h = jax.nn.relu(through(w, h))
            if i % 4 == 3:
                h = jnp.concatenate([h, x], -1)
        return jax.nn.softplus(through(p["density"], h).astype(jnp.float32)[..., 0] - 1.0), h

    def shares(density, t, ways):
        thick = density * jnp.diff(t) * jnp.linalg.norm(ways, axis=-1, keepdims=True)
        before = jnp.exp(-jnp.concatenate([jnp.zeros_like(thick[:, :1]), jnp.cumsum(thick[:, :-1], -1)], -1))
        return (1 - jnp.exp(-thick)) * before

    def drawn(key, s, w, count):
        """Ends of `count` intervals, by the shares of the last round."""
        w = jax.nn.softmax(jnp.log(w + 1e-5))
        total = jnp.concatenate([jnp.zeros_like(w[:, :1]), jnp.minimum(jnp.cumsum(w, -1), 1.0)], -1)
        u = (jnp.arange(count + 1) + jax.random.uniform(key, (s.shape[0], count + 1))) / (count + 1)
        return jax.vmap(jnp.interp)(u, total, s)

    def far(s, near, end):
        return 1 / (s / end + (1 - s) / near)

    def outer_sum(t, w, t2):
        """The share that lies in every interval of t2, from above."""
        total = jnp.concatenate([jnp.zeros_like(w[:, :1]), jnp.cumsum(w, -1)], -1)
        low = jax.vmap(lambda a, b: jnp.searchsorted(a, b, side="right", method="compare_all"))(t, t2[:, :-1]) - 1
        high = jax.vmap(lambda a, b: jnp.searchsorted(a, b, side="left", method="compare_all"))(t, t2[:, 1:])
        pick = lambda i: jnp.take_along_axis(total, jnp.clip(i, 0, total.shape[1] - 1), 1)
        return pick(high) - pick(low)

    def loss_fn(params, batch):
        key = jax.random.fold_in(jax.random.key(0), batch["step"])
        origins, ways = batch["origins"], batch["ways"]
        s = jnp.broadcast_to(jnp.linspace(0.0, 1.0, coarse + 1), (rays, coarse + 1))
        w = jnp.full((rays, coarse), 1.0 / coarse)
        rounds = []
        for level, count in enumerate((coarse, coarse, fine)):
            s = jax.lax.stop_gradient(drawn(jax.random.fold_in(key, level), s, w, count))
            t = far(s, 0.2, 1e6)
            x = encoded(*contracted(*gaussians(t, origins, ways, batch["radii"])))
            density, h = trunk(params["nerf" if count == fine else "proposal"], x)
            w = shares(density, t, ways)
            rounds.append((s, w))
        p = params["nerf"]
        view = ways / jnp.linalg.norm(ways, axis=-1, keepdims=True)
        turned = (view[:, None] * 2.0 ** jnp.arange(4)[:, None]).reshape(rays, -1)
        view = jnp.concatenate([view, jnp.sin(turned), jnp.cos(turned)], -1).astype(compute)
        h = through(p["bottleneck"], h)
        h = jnp.concatenate([h, jnp.broadcast_to(view[:, None], (*h.shape[:2], view.shape[-1]))], -1)
        color = jax.nn.sigmoid(through(p["color"], jax.nn.relu(through(p["view"], h))).astype(jnp.float32)) * 1.002 - 0.001
        out = (w[..., None] * color).sum(1) + (1 - w.sum(-1, keepdims=True))
        loss = jnp.sqrt((out - batch["colors"]) ** 2 + 1e-6).mean()
        for s0, w0 in rounds[:-1]:
            above = outer_sum(s0, w0, s)
            fixed = jax.lax.stop_gradient(w)
            loss = loss + (jnp.maximum(0.0, fixed - above) ** 2 / (fixed + 1e-7)).mean()
        middle = (s[:, 1:] + s[:, :-1]) / 2
        spread = (w * jnp.einsum("rj,rij->ri", w, jnp.abs(middle[:, :, None] - middle[:, None]))).sum(-1) + (w**2 * jnp.diff(s)).sum(-1) / 3
        return loss + 0.01 * spread.mean()

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((rays, *s), "float32", sharding=split)
    batch = {"origins": S(3), "ways": S(3), "radii": S(1), "colors": S(3), "step": jax.ShapeDtypeStruct((), "int32", sharding=whole)}
    return Program(train_step, (params, opt, batch), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
