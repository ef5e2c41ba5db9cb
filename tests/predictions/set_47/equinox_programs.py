"""Equinox: FourCastNet (adaptive Fourier neural operators: 20 fields of 720 by 1440, patches of 8, 12 blocks of 768, 8 blocks of modes) learns the weather six hours on; vmap over the batch, float32, AdamW, data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


class Filter(eqx.Module):
    """The layer of a spectrum: two complex layers, the same at every mode, of 8 blocks of channels, then a soft threshold."""

    w1: jax.Array
    b1: jax.Array
    w2: jax.Array
    b2: jax.Array
    blocks: int = eqx.field(static=True)

    def __init__(self, width, blocks, key):
        k1, k2 = jax.random.split(key)
        size = width // blocks
        self.blocks = blocks
        self.w1, self.w2 = (0.02 * jax.random.normal(k, (2, blocks, size, size)) for k in (k1, k2))
        self.b1, self.b2 = jnp.zeros((2, blocks, size)), jnp.zeros((2, blocks, size))

    def __call__(self, x):
        high, wide, width = x.shape
        f = jnp.fft.rfft2(x, axes=(0, 1), norm="ortho").reshape(high, wide // 2 + 1, self.blocks, -1)
        re, im = f.real, f.imag
        times = lambda a, w: jnp.einsum("yxbi,bio->yxbo", a, w)
        one = jax.nn.relu(times(re, self.w1[0]) - times(im, self.w1[1]) + self.b1[0])
        two = jax.nn.relu(times(im, self.w1[0]) + times(re, self.w1[1]) + self.b1[1])
        re = times(one, self.w2[0]) - times(two, self.w2[1]) + self.b2[0]
        im = times(two, self.w2[0]) + times(one, self.w2[1]) + self.b2[1]
        soft = lambda a: jnp.sign(a) * jax.nn.relu(jnp.abs(a) - 0.01)
        f = jax.lax.complex(soft(re), soft(im)).reshape(high, wide // 2 + 1, width)
        return x + jnp.fft.irfft2(f, s=(high, wide), axes=(0, 1), norm="ortho")


class Block(eqx.Module):
    norm1: eqx.nn.LayerNorm
    filter: Filter
    norm2: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, blocks, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(width, eps=1e-6), eqx.nn.LayerNorm(width, eps=1e-6)
        self.filter = Filter(width, blocks, k1)
        self.up, self.down = eqx.nn.Linear(width, 4 * width, key=k2), eqx.nn.Linear(4 * width, width, key=k3)

    def __call__(self, x):
        each = lambda f: jax.vmap(jax.vmap(f))
        x = x + self.filter(each(self.norm1)(x))  # the double skip
        return x + each(self.down)(jax.nn.gelu(each(self.up)(each(self.norm2)(x)), approximate=False))


class FourCastNet(eqx.Module):
    patches: eqx.nn.Conv2d
    places: jax.Array
    blocks: list
    head: eqx.nn.Linear
    patch: int = eqx.field(static=True)

    def __init__(self, high, wide, fields, patch, width, depth, groups, key):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        self.patch = patch
        self.patches = eqx.nn.Conv2d(fields, width, patch, patch, key=k1)
        self.places = 0.02 * jax.random.normal(k2, (high // patch, wide // patch, width))
        self.blocks = [Block(width, groups, k) for k in jax.random.split(k3, depth)]
        self.head = eqx.nn.Linear(width, fields * patch * patch, use_bias=False, key=k4)

    def __call__(self, x, remat):
        fields, high, wide = x.shape
        p = self.patch
        x = jnp.moveaxis(self.patches(x), 0, -1) + self.places
        for block in self.blocks:
            x = eqx.filter_checkpoint(block)(x) if remat else block(x)
        x = jax.vmap(jax.vmap(self.head))(x).reshape(high // p, wide // p, p, p, fields)
        return x.transpose(4, 0, 2, 1, 3).reshape(fields, high, wide)


def fourcastnet(topology, chips, batch, high=720, wide=1440, fields=20, patch=8, width=768, depth=12, groups=8, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: FourCastNet(high, wide, fields, patch, width, depth, groups, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.adamw(optax.cosine_decay_schedule(5e-4, 150000))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def make_step(params, opt_state, batch):
        @eqx.filter_value_and_grad
        def loss_fn(model):
            out = jax.vmap(lambda x: model(x, remat))(batch["now"])
            size = lambda a: jnp.sqrt(jnp.sum(a * a, (1, 2, 3)))
            return jnp.mean(size(out - batch["next"]) / size(batch["next"]))

        loss, grads = loss_fn(eqx.combine(params, static))
        updates, opt_state = transform.update(eqx.filter(grads, eqx.is_array), opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, fields, high, wide), "float32", sharding=split)
    data = {"now": S(), "next": S()}
    return Program(make_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
