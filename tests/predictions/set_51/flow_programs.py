"""JAX alone: a turbulent flow in a periodic square (velocities of 256 by 256, advection by differences, pressure by FFT) with a network of convolutions that corrects every step, learned through an unroll of the simulator by lax.scan (as learned corrections of JAX-CFD), float32, Adam, one chip."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def corrected(topology, chips, batch, side=256, steps=32, channels=64, depth=6, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    sizes = [2, *[channels] * depth, 2]
    params = placed([{"w": F(3, 3, a, b), "b": F(b)} for a, b in zip(sizes, sizes[1:])], whole)
    transform = optax.adam(1e-4)
    opt = placed(jax.eval_shape(transform.init, params), whole)
    dt, viscosity = 0.002, 1e-4

    def gradient(a):
        """By both places, centred."""
        return tuple((jnp.roll(a, -1, axis) - jnp.roll(a, 1, axis)) * (side / 2) for axis in (1, 2))

    def laplacian(a):
        return (sum(jnp.roll(a, s, axis) for s in (1, -1) for axis in (1, 2)) - 4 * a) * side**2

    def projected(u):
        """Without divergence."""
        wave = 2 * jnp.pi * jnp.fft.fftfreq(side, 1 / side)
        kx, ky = jnp.meshgrid(wave, 2 * jnp.pi * jnp.arange(side // 2 + 1), indexing="ij")
        square = (kx**2 + ky**2).at[0, 0].set(1.0)
        x, y = jnp.fft.rfft2(u[..., 0]), jnp.fft.rfft2(u[..., 1])
        along = (kx * x + ky * y) / square
        back = lambda a: jnp.fft.irfft2(a, s=(side, side))
        return jnp.stack([back(x - kx * along), back(y - ky * along)], -1)

    def network(params, x):
        for i, layer in enumerate(params):
            x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="wrap")
            x = jax.lax.conv_general_dilated(x, layer["w"], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + layer["b"]
            if i < len(params) - 1:
                x = jax.nn.gelu(x)
        return x

    def simulated(params, u):
        def advance(u, _):
            x, y = u[..., 0], u[..., 1]
            change = [viscosity * laplacian(a) - x * gradient(a)[0] - y * gradient(a)[1] for a in (x, y)]
            u = projected(u + dt * jnp.stack(change, -1))
            u = u + dt * network(params, u)
            return u, u

        return jax.lax.scan(jax.checkpoint(advance) if remat else advance, u, None, length=steps)[1]

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            seen = simulated(params, batch["start"])
            return jnp.mean((seen.swapaxes(0, 1) - batch["reference"]) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    data = {"start": S(side, side, 2), "reference": S(steps, side, side, 2)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
