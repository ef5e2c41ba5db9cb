"""Equinox: DiT-XL/2 at 512 by 512 pixels (latents of 64 by 64), its blocks scanned, an average of the weights beside them; data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, largest_dimension, mesh, placed


class Block(eqx.Module):
    qkv: eqx.nn.Linear
    out: eqx.nn.Linear
    wide: eqx.nn.Linear
    narrow: eqx.nn.Linear
    ada: eqx.nn.Linear
    norm: eqx.nn.LayerNorm
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, key):
        ks = jax.random.split(key, 5)
        lin = eqx.nn.Linear
        self.qkv, self.out, self.wide, self.narrow, self.ada = lin(width, 3 * width, key=ks[0]), lin(width, width, key=ks[1]), lin(width, 4 * width, key=ks[2]), lin(4 * width, width, key=ks[3]), lin(width, 6 * width, key=ks[4])
        self.norm, self.heads = eqx.nn.LayerNorm(width, use_weight=False, use_bias=False, eps=1e-6), heads

    def __call__(self, x, c):  # [places, width], [width]
        s1, b1, g1, s2, b2, g2 = jnp.split(self.ada(jax.nn.silu(c)), 6)
        h = jax.vmap(self.norm)(x) * (1 + s1) + b1
        q, k, v = (a.reshape(x.shape[0], self.heads, -1) for a in jnp.split(jax.vmap(self.qkv)(h), 3, -1))
        p = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5).astype(x.dtype)
        x = x + g1 * jax.vmap(self.out)(jnp.einsum("hqk,khd->qhd", p, v).reshape(x.shape))
        h = jax.vmap(self.norm)(x) * (1 + s2) + b2
        return x + g2 * jax.vmap(self.narrow)(jax.nn.gelu(jax.vmap(self.wide)(h)))


class DiT(eqx.Module):
    enter: eqx.nn.Conv2d
    place: jax.Array
    time1: eqx.nn.Linear
    time2: eqx.nn.Linear
    kinds: jax.Array
    blocks: Block
    ada: eqx.nn.Linear
    leave: eqx.nn.Linear
    remat: bool = eqx.field(static=True)

    def __init__(self, side, width, heads, depth, remat, key):
        ks = jax.random.split(key, 7)
        self.enter, self.place = eqx.nn.Conv2d(4, width, 2, 2, key=ks[0]), jnp.zeros(((side // 2) ** 2, width))
        self.time1, self.time2, self.kinds = eqx.nn.Linear(256, width, key=ks[1]), eqx.nn.Linear(width, width, key=ks[2]), jax.random.normal(ks[3], (1001, width))
        self.blocks = eqx.filter_vmap(lambda k: Block(width, heads, k))(jax.random.split(ks[4], depth))
        self.ada, self.leave, self.remat = eqx.nn.Linear(width, 2 * width, key=ks[5]), eqx.nn.Linear(width, 32, key=ks[6]), remat

    def __call__(self, x, t, y):  # [batch, 4, side, side]
        b, _, side, _ = x.shape
        h = jax.vmap(self.enter)(x).reshape(b, -1, (side // 2) ** 2).swapaxes(1, 2) + self.place
        angles = t[:, None] * jnp.exp(-jnp.log(1e4) * jnp.arange(128) / 128)
        c = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1).astype(x.dtype)
        c = jax.vmap(lambda a: self.time2(jax.nn.silu(self.time1(a))))(c) + self.kinds[y]
        arrays, static = eqx.partition(self.blocks, eqx.is_array)
        body = lambda h, w: (jax.vmap(eqx.combine(w, static))(h, c), None)
        h, _ = jax.lax.scan(jax.checkpoint(body, prevent_cse=False) if self.remat else body, h, arrays)
        s, o = jnp.split(jax.vmap(self.ada)(jax.nn.silu(c))[:, None], 2, -1)
        h = jax.vmap(jax.vmap(self.leave))(h * (1 + s) + o)
        return h.reshape(b, side // 2, side // 2, 2, 2, 8).transpose(0, 5, 1, 3, 2, 4).reshape(b, 8, side, side)[:, :4]


def dit(topology, chips, batch, side=64, width=1152, heads=16, depth=28, remat=False, zero=False, average="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    where = largest_dimension(devices, "data") if zero else whole
    params, static = eqx.partition(eqx.filter_eval_shape(lambda: DiT(side, width, heads, depth, remat, jax.random.key(0))), lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    ema = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, average), params), where)
    transform = optax.adamw(1e-4, weight_decay=0.0)
    opt = placed(jax.eval_shape(transform.init, params), where)
    betas = jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, 1000))

    def train_step(params, opt_state, ema, batch, key):
        k1, k2 = jax.random.split(key)
        latents = batch["latents"]
        t = jax.random.randint(k1, latents.shape[:1], 0, 1000)
        noise = jax.random.normal(k2, latents.shape)
        a = betas[t][:, None, None, None]
        noisy = jnp.sqrt(a) * latents + jnp.sqrt(1 - a) * noise

        def loss_fn(params):
            net = eqx.combine(jax.tree.map(lambda p: p.astype(HALF), params), static)
            out = net(noisy.astype(HALF), t.astype(jnp.float32), batch["kinds"]).astype(jnp.float32)
            return jnp.mean((out - noise) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        params = eqx.apply_updates(params, updates)
        ema = jax.tree.map(lambda e, p: (0.9999 * e + 0.0001 * p).astype(e.dtype), ema, params)
        return params, opt_state, ema, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype, sharding=whole)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight", "[4]": "other"}.get(path[:3], "input")
    return Program(train_step, (params, opt, ema, {"latents": S("float32", 4, side, side), "kinds": S("int32")}, key), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(opt), shardings(ema), None))
