"""Equinox: a weather model after Pangu (windows of a sphere's grid in three dimensions, down, across and up)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed

WINDOW = (2, 6, 12)


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array

    def __init__(self, inward, out, key):
        self.weight, self.bias = jax.random.normal(key, (inward, out)) * inward**-0.5, jnp.zeros(out)

    def __call__(self, x):
        return x @ self.weight.astype(x.dtype) + self.bias.astype(x.dtype)


class Norm(eqx.Module):
    scale: jax.Array
    bias: jax.Array

    def __init__(self, width):
        self.scale, self.bias = jnp.ones(width), jnp.zeros(width)

    def __call__(self, x):
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return (y * self.scale + self.bias).astype(x.dtype)


class Block(eqx.Module):
    norm1: Norm
    norm2: Norm
    qkv: Linear
    out: Linear
    up: Linear
    down: Linear
    bias: jax.Array
    heads: int = eqx.field(static=True)
    shift: bool = eqx.field(static=True)

    def __init__(self, width, heads, shift, key):
        a, b, c, d = jax.random.split(key, 4)
        n = WINDOW[0] * WINDOW[1] * WINDOW[2]
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.qkv, self.out, self.up, self.down = Linear(width, 3 * width, a), Linear(width, width, b), Linear(width, 4 * width, c), Linear(4 * width, width, d)
        self.bias, self.heads, self.shift = jnp.zeros((heads, n, n)), heads, shift

    def __call__(self, x):  # [levels, latitudes, longitudes, width]
        z, h, w, width = x.shape
        a, b, c = WINDOW
        y = self.norm1(x)
        y = jnp.roll(y, (-a // 2, -b // 2, -c // 2), (0, 1, 2)) if self.shift else y
        y = y.reshape(z // a, a, h // b, b, w // c, c, width).transpose(0, 2, 4, 1, 3, 5, 6).reshape(-1, a * b * c, width)
        q, k, v = jnp.moveaxis(self.qkv(y).reshape(*y.shape[:2], 3, self.heads, -1), 2, 0)
        s = jnp.einsum("wqhd,wkhd->whqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5 + self.bias
        o = jnp.einsum("whqk,wkhd->wqhd", jax.nn.softmax(s).astype(x.dtype), v).reshape(y.shape)
        o = self.out(o).reshape(z // a, h // b, w // c, a, b, c, width).transpose(0, 3, 1, 4, 2, 5, 6).reshape(x.shape)
        o = jnp.roll(o, (a // 2, b // 2, c // 2), (0, 1, 2)) if self.shift else o
        x = x + o
        return x + self.down(jax.nn.gelu(self.up(self.norm2(x))))


class Weather(eqx.Module):
    air: Linear
    surface: Linear
    first: list
    inner: list
    last: list
    shrink: Linear
    grow: Linear
    air_out: Linear
    surface_out: Linear

    def __init__(self, width, depths, key):
        keys = iter(jax.random.split(key, 64))
        blocks = lambda n, w, h: [Block(w, h, i % 2 == 1, next(keys)) for i in range(n)]
        self.air, self.surface = Linear(2 * 16 * 5, width, next(keys)), Linear(16 * 7, width, next(keys))
        self.first, self.inner, self.last = blocks(depths[0], width, 6), blocks(depths[1], 2 * width, 12), blocks(depths[2], width, 6)
        self.shrink, self.grow = Linear(4 * width, 2 * width, next(keys)), Linear(2 * width, 4 * width, next(keys))
        self.air_out, self.surface_out = Linear(2 * width, 2 * 16 * 5, next(keys)), Linear(2 * width, 16 * 4, next(keys))

    def __call__(self, air, surface, remat, dtype):
        """air: [14, 720, 1440, 5]; surface: [720, 1440, 7], the constant masks among them."""
        h, w = air.shape[1] // 4, air.shape[2] // 4
        a = air.astype(dtype).reshape(7, 2, h, 4, w, 4, 5).transpose(0, 2, 4, 1, 3, 5, 6).reshape(7, h, w, -1)
        s = surface.astype(dtype).reshape(h, 4, w, 4, 7).transpose(0, 2, 1, 3, 4).reshape(1, h, w, -1)
        x = jnp.concatenate([self.surface(s), self.air(a)], 0)
        run = (lambda block, x: eqx.filter_checkpoint(lambda b, x: b(x))(block, x)) if remat else (lambda block, x: block(x))
        for i, block in enumerate(self.first):
            with jax.named_scope(f"first_{i}"):
                x = run(block, x)
        skip, width = x, x.shape[-1]
        x = x.reshape(8, h // 2, 2, w // 2, 2, width).transpose(0, 1, 3, 2, 4, 5).reshape(8, h // 2, w // 2, -1)
        x = self.shrink(x)
        for i, block in enumerate(self.inner):
            with jax.named_scope(f"inner_{i}"):
                x = run(block, x)
        x = self.grow(x).reshape(8, h // 2, w // 2, 2, 2, width).transpose(0, 1, 3, 2, 4, 5).reshape(8, h, w, width)
        for i, block in enumerate(self.last):
            with jax.named_scope(f"last_{i}"):
                x = run(block, x)
        x = jnp.concatenate([x, skip], -1)
        out = self.air_out(x[1:]).reshape(7, h, w, 2, 4, 4, 5).transpose(0, 3, 1, 4, 2, 5, 6).reshape(air.shape)
        low = self.surface_out(x[0]).reshape(h, w, 4, 4, 4).transpose(0, 2, 1, 3, 4).reshape(4 * h, 4 * w, 4)
        return out.astype(jnp.float32), low.astype(jnp.float32)


def pangu(topology, chips, batch, width=192, depths=(2, 6, 2), remat=False, dtype="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = eqx.filter_eval_shape(Weather, width, depths, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    arrays = placed(arrays, whole)
    transform = optax.adamw(5e-4, weight_decay=3e-6)
    opt = placed(jax.eval_shape(transform.init, arrays), whole)

    def loss_fn(params, air, surface, air_next, surface_next):
        model = eqx.combine(params, static)
        out, low = jax.vmap(lambda a, s: model(a, s, remat, dtype))(air, surface)
        return jnp.abs(out - air_next).mean() + 0.25 * jnp.abs(low - surface_next).mean()

    def make_step(model, opt_state, air, surface, air_next, surface_next):
        loss, grads = jax.value_and_grad(loss_fn)(model, air, surface, air_next, surface_next)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    data = (S(14, 720, 1440, 5), S(720, 1440, 7), S(14, 720, 1440, 5), S(720, 1440, 4))
    return Program(make_step, (arrays, opt, *data), kind_of_step, (0, 1) if donate else (), (shardings(arrays), shardings(opt), None))
