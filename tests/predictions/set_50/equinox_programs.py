"""Equinox: a NeRF (two networks of eight layers of 256, 64 places along a ray and 128 more where the first saw something) learns a scene from rays of its pictures, float32, Adam, data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


def encoded(x, levels):
    angle = (x[..., None, :] * 2.0 ** jnp.arange(levels)[:, None]).reshape(*x.shape[:-1], -1)
    return jnp.concatenate([x, jnp.sin(angle), jnp.cos(angle)], -1)


class Field(eqx.Module):
    layers: list
    density: eqx.nn.Linear
    feature: eqx.nn.Linear
    view: eqx.nn.Linear
    colour: eqx.nn.Linear

    def __init__(self, width, depth, key):
        k = jax.random.split(key, depth + 4)
        sizes = [63 if i == 0 else width + 63 if i == 5 else width for i in range(depth)]
        self.layers = [eqx.nn.Linear(size, width, key=k[i]) for i, size in enumerate(sizes)]
        self.density, self.feature = eqx.nn.Linear(width, 1, key=k[-4]), eqx.nn.Linear(width, width, key=k[-3])
        self.view, self.colour = eqx.nn.Linear(width + 27, width // 2, key=k[-2]), eqx.nn.Linear(width // 2, 3, key=k[-1])

    def __call__(self, place, direction):
        """Of one place."""
        given = h = encoded(place, 10).astype(self.layers[0].weight.dtype)
        for i, layer in enumerate(self.layers):
            h = jax.nn.relu(layer(jnp.concatenate([given, h]) if i == 5 else h))
        density = self.density(h)[0]
        h = jnp.concatenate([self.feature(h), encoded(direction, 4).astype(h.dtype)])
        return jax.nn.sigmoid(self.colour(jax.nn.relu(self.view(h)))).astype(jnp.float32), jax.nn.relu(density).astype(jnp.float32)


def drawn(field, origin, direction, depths):
    """Of one ray: its colour and what each place adds."""
    colours, density = jax.vmap(lambda t: field(origin + t * direction, direction))(depths)
    gaps = jnp.append(jnp.diff(depths), 1e10)
    alpha = 1 - jnp.exp(-density * gaps)
    through = jnp.cumprod(jnp.append(1.0, 1 - alpha[:-1] + 1e-10))
    weights = alpha * through
    return weights @ colours, weights


def finer(key, depths, weights, count):
    middle = (depths[1:] + depths[:-1]) / 2
    share = weights[1:-1] + 1e-5
    total = jnp.append(0.0, jnp.cumsum(share / share.sum()))
    u = jax.random.uniform(key, (count,))
    at = jnp.clip(jnp.searchsorted(total, u, side="right"), 1, total.size - 1)
    low, high = total[at - 1], total[at]
    part = (u - low) / jnp.where(high - low < 1e-5, 1.0, high - low)
    more = middle[at - 1] + part * (middle[at] - middle[at - 1])
    return jnp.sort(jnp.concatenate([depths, jax.lax.stop_gradient(more)]))


def nerf(topology, chips, rays, coarse=64, fine=128, width=256, depth=8, micro=1, compute="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: [Field(width, depth, jax.random.key(i)) for i in range(2)])
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.adam(optax.exponential_decay(5e-4, 250000, 0.1))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, batch):
        first, second = eqx.combine(jax.tree.map(lambda a: a.astype(compute), params), static)

        def one(origin, direction, seed):
            k1, k2 = jax.random.split(jax.random.wrap_key_data(seed))
            depths = 2.0 + 4.0 * (jnp.arange(coarse) + jax.random.uniform(k1, (coarse,))) / coarse
            rough, weights = drawn(first, origin, direction, depths)
            sharp, _ = drawn(second, origin, direction, finer(k2, depths, jax.lax.stop_gradient(weights), fine))
            return rough, sharp

        rough, sharp = jax.vmap(one)(batch["origins"], batch["directions"], batch["seeds"])
        return jnp.mean((rough - batch["colours"]) ** 2) + jnp.mean((sharp - batch["colours"]) ** 2)

    def gradients(params, batch):
        if micro == 1:
            return jax.value_and_grad(loss_fn)(params, batch)

        def parts(a):
            a = a.reshape(chips, micro, -1, *a.shape[1:]).swapaxes(0, 1)
            return jax.lax.with_sharding_constraint(a.reshape(micro, -1, *a.shape[3:]), NamedSharding(devices, P(None, "data")))

        def add(total, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, total, grads), loss

        grads, losses = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), jax.tree.map(parts, batch))
        return losses.mean(), jax.tree.map(lambda g: g / micro, grads)

    def make_step(params, opt_state, batch):
        loss, grads = gradients(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda d, n: jax.ShapeDtypeStruct((rays, n), d, sharding=split)
    data = {"origins": S("float32", 3), "directions": S("float32", 3), "colours": S("float32", 3), "seeds": S("uint32", 2)}
    return Program(make_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
