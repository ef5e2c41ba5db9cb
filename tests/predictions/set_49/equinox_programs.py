"""Equinox: a pseudo-spectral solver of two-dimensional turbulence (vorticity, 256 by 256) with a correction by a convolutional network at every step, learnt through 32 steps unrolled in a scan; float32, Adam, on one chip."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


class Correction(eqx.Module):
    layers: list

    def __init__(self, channels, depth, key):
        keys = jax.random.split(key, depth)
        sizes = [3, *[channels] * (depth - 1), 1]
        self.layers = [eqx.nn.Conv2d(a, b, 3, padding="SAME", padding_mode="CIRCULAR", key=k) for a, b, k in zip(sizes, sizes[1:], keys)]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


def turbulence(topology, chips, batch, side=256, steps=32, channels=64, depth=7, step_size=1e-2, viscosity=1e-3, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Correction(channels, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-4))
    opt = placed(jax.eval_shape(transform.init, params), whole)
    ky, kx = jnp.meshgrid(jnp.fft.fftfreq(side, 1 / side), jnp.fft.rfftfreq(side, 1 / side), indexing="ij")
    square = kx**2 + ky**2
    inverse = jnp.where(square == 0, 0.0, -1.0 / jnp.where(square == 0, 1.0, square))
    keep = ((jnp.abs(kx) < side / 3) & (jnp.abs(ky) < side / 3)).astype("float32")
    back = lambda f: jnp.fft.irfft2(f, s=(side, side))

    def advance(net, w):
        """One step: advection explicit, diffusion by Crank and Nicolson, then the correction."""
        f = jnp.fft.rfft2(w)
        stream = inverse * f
        u, v = back(-1j * ky * stream), back(1j * kx * stream)
        moved = u * back(1j * kx * f) + v * back(1j * ky * f)
        half = 0.5 * step_size * viscosity * square
        f = (f * (1 - half) - step_size * keep * jnp.fft.rfft2(moved)) / (1 + half)
        w = back(f)
        seen = jnp.stack([w, u, v]).astype(compute)
        return w + step_size * net(seen)[0].astype("float32")

    def train_step(params, opt_state, data):
        @eqx.filter_value_and_grad
        def loss_fn(params):
            net = eqx.combine(jax.tree.map(lambda a: a.astype(compute), params), static)

            def one(w, wanted):
                w = jax.vmap(lambda w: advance(net, w))(w)
                return w, jnp.square(w - wanted).mean()

            _, losses = jax.lax.scan(jax.checkpoint(one) if remat else one, data["first"], data["wanted"].swapaxes(0, 1))
            return losses.mean()

        loss, grads = loss_fn(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    data = {"first": S(side, side), "wanted": S(steps, side, side)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
