"""Equinox: a Fourier neural operator in two dimensions, its spectral convolutions with weights of two real parts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step
from recipe import Program, mesh, placed


class SpectralConv2d(eqx.Module):
    real: jax.Array
    imag: jax.Array
    modes: int

    def __init__(self, width, modes, key):
        a, b = jax.random.split(key)
        self.real = jax.random.normal(a, (2, width, width, modes, modes)) / width**2
        self.imag = jax.random.normal(b, (2, width, width, modes, modes)) / width**2
        self.modes = modes

    def __call__(self, x):
        m, (c, h, w) = self.modes, x.shape
        f = jnp.fft.rfft2(x.astype(jnp.float32))
        weight = self.real + 1j * self.imag
        out = jnp.zeros((c, h, w // 2 + 1), jnp.complex64)
        out = out.at[:, :m, :m].set(jnp.einsum("ihw,iohw->ohw", f[:, :m, :m], weight[0]))
        out = out.at[:, -m:, :m].set(jnp.einsum("ihw,iohw->ohw", f[:, -m:, :m], weight[1]))
        return jnp.fft.irfft2(out, s=(h, w)).astype(x.dtype)


class Block(eqx.Module):
    spectral: SpectralConv2d
    bypass: eqx.nn.Conv2d
    norm: eqx.nn.GroupNorm

    def __init__(self, width, modes, key):
        a, b = jax.random.split(key)
        self.spectral, self.bypass = SpectralConv2d(width, modes, a), eqx.nn.Conv2d(width, width, 1, key=b)
        self.norm = eqx.nn.GroupNorm(1, width)

    def __call__(self, x):
        return jax.nn.gelu(self.norm(self.spectral(x) + self.bypass(x)))


class FNO2d(eqx.Module):
    lift: eqx.nn.Conv2d
    blocks: list
    project: eqx.nn.Conv2d
    out: eqx.nn.Conv2d

    def __init__(self, channels, width, modes, depth, key):
        a, b, c, *keys = jax.random.split(key, 3 + depth)
        self.lift, self.project = eqx.nn.Conv2d(channels, width, 1, key=a), eqx.nn.Conv2d(width, 4 * width, 1, key=b)
        self.out = eqx.nn.Conv2d(4 * width, channels, 1, key=c)
        self.blocks = [Block(width, modes, k) for k in keys]

    def __call__(self, x, remat):
        x = self.lift(x)
        for i, block in enumerate(self.blocks):
            x = (eqx.filter_checkpoint(block) if i < remat else block)(x)
        return self.out(jax.nn.gelu(self.project(x)))


def fno(topology, chips, batch, size, channels, width, modes, depth, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = eqx.filter_eval_shape(FNO2d, channels, width, modes, depth, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.adamw(1e-3)

    def loss_fn(params, x, y):
        model = eqx.combine(params, static)
        return jnp.mean((jax.vmap(lambda a: model(a, remat))(x) - y) ** 2)

    def make_step(model, opt_state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(model, x, y)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    field = jax.ShapeDtypeStruct((batch, channels, size, size), "float32", sharding=split)
    args = (placed(arrays, whole), placed(jax.eval_shape(transform.init, arrays), whole), field, field)
    return Program(make_step, args, kind_of_step, (0, 1) if donate else ())
