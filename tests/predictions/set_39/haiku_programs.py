"""Haiku: a Fourier neural operator in three dimensions (PDEBench's compressible Navier-Stokes: five fields of ten moments in, five out, 64 by 64 by 64 places), four layers one after another, spectral weights as pairs of real ones, in float32; data parallel, whole state on every device."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


class Fourier(hk.Module):
    def __init__(self, modes, compute, name):
        super().__init__(name=name)
        self.modes, self.compute = modes, compute

    def __call__(self, x):
        """x [batch, channels, a, b, c]."""
        rows, width, a, b, c = x.shape
        m = self.modes
        f = jnp.fft.rfftn(x.astype(jnp.float32), axes=(2, 3, 4))
        out = jnp.zeros(f.shape, f.dtype)
        for i, where in enumerate([(slice(0, m), slice(0, m)), (slice(-m, None), slice(0, m)), (slice(0, m), slice(-m, None)), (slice(-m, None), slice(-m, None))]):
            w = hk.get_parameter(f"corner_{i}", (2, width, width, m, m, m), init=hk.initializers.RandomUniform(0, 1 / width**2))
            part = (slice(None), slice(None), *where, slice(0, m))
            out = out.at[part].set(jnp.einsum("bixyz,ioxyz->boxyz", f[part], jax.lax.complex(w[0], w[1])))
        y = jnp.fft.irfftn(out, s=(a, b, c), axes=(2, 3, 4)).astype(self.compute)
        w = hk.get_parameter("pointwise_w", (width, width), init=hk.initializers.TruncatedNormal(width**-0.5))
        bias = hk.get_parameter("pointwise_b", (width,), init=jnp.zeros)
        return jax.nn.gelu(y + jnp.einsum("biuvw,io->bouvw", x, w.astype(x.dtype)) + bias.astype(x.dtype)[:, None, None, None])


def fno3d(topology, chips, batch, side=64, fields=5, moments=10, width=32, modes=12, depth=4, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def operator(data):
        x = data["before"].astype(compute)
        places = jnp.stack(jnp.meshgrid(*[jnp.linspace(0, 1, side)] * 3, indexing="ij"), -1).astype(compute)
        x = jnp.concatenate([x, jnp.broadcast_to(places, (x.shape[0], *places.shape))], -1)
        lin = lambda n, name: hk.Linear(n, name=name)
        x = jnp.moveaxis(lin(width, "lift")(x), -1, 1)
        for i in range(depth):
            layer = Fourier(modes, compute, name=f"fourier_{i}")
            x = (hk.remat(layer) if remat else layer)(x)
        x = jax.nn.gelu(lin(128, "project_in")(jnp.moveaxis(x, 1, -1)))
        return lin(fields, "project_out")(x).astype(jnp.float32)

    net = hk.without_apply_rng(hk.transform(operator))
    S = lambda n: jax.ShapeDtypeStruct((batch, side, side, side, n), "float32", sharding=split)
    data = {"before": S(fields * moments), "after": S(fields)}
    params = jax.eval_shape(net.init, jax.random.key(0), data)
    params = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "float32"), params), whole)
    transform = optax.adam(1e-3)
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, data):
        far = net.apply(params, data) - data["after"]
        return (jnp.sqrt(jnp.square(far).sum((1, 2, 3))) / jnp.sqrt(jnp.square(data["after"]).sum((1, 2, 3)) + 1e-6)).mean()

    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
