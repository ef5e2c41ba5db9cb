"""Equinox: linear recurrent units (complex, diagonal, by jax.lax.associative_scan) classify pictures read as 16384 pixels, as Path-X of the Long Range Arena; vmap over the batch, float32, AdamW, data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


class LRU(eqx.Module):
    nu: jax.Array
    theta: jax.Array
    gamma: jax.Array
    b_re: jax.Array
    b_im: jax.Array
    c_re: jax.Array
    c_im: jax.Array
    d: jax.Array

    def __init__(self, width, states, key, low=0.9, high=0.999):
        k = jax.random.split(key, 7)
        u = jax.random.uniform(k[0], (states,))
        self.nu = jnp.log(-0.5 * jnp.log(u * (high**2 - low**2) + low**2))
        self.theta = jnp.log(jax.random.uniform(k[1], (states,)) * jnp.pi / 10)
        self.gamma = jnp.log(jnp.sqrt(1 - jnp.exp(-jnp.exp(self.nu)) ** 2))
        normal = lambda key, *s: jax.random.normal(key, s) * (2 * s[-1]) ** -0.5
        self.b_re, self.b_im, self.c_re, self.c_im = normal(k[2], states, width), normal(k[3], states, width), normal(k[4], width, states), normal(k[5], width, states)
        self.d = jax.random.normal(k[6], (width,))

    def __call__(self, x):
        lam = jnp.exp(-jnp.exp(self.nu) + 1j * jnp.exp(self.theta))
        b = (self.b_re + 1j * self.b_im) * jnp.exp(self.gamma)[:, None]
        inputs = jax.vmap(lambda u: b @ u)(x)
        lams = jnp.repeat(lam[None], x.shape[0], 0)
        join = lambda p, q: (q[0] * p[0], q[0] * p[1] + q[1])
        _, states = jax.lax.associative_scan(join, (lams, inputs))
        c = self.c_re + 1j * self.c_im
        return jax.vmap(lambda h, u: (c @ h).real + self.d * u)(states, x)


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    lru: LRU
    glu: eqx.nn.Linear

    def __init__(self, width, states, key):
        k1, k2 = jax.random.split(key)
        self.norm, self.lru, self.glu = eqx.nn.LayerNorm(width), LRU(width, states, k1), eqx.nn.Linear(width, 2 * width, key=k2)

    def __call__(self, x):
        h = jax.nn.gelu(self.lru(jax.vmap(self.norm)(x)))
        a, b = jnp.split(jax.vmap(self.glu)(h), 2, -1)
        return x + a * jax.nn.sigmoid(b)


class Model(eqx.Module):
    encoder: eqx.nn.Linear
    blocks: list
    head: eqx.nn.Linear

    def __init__(self, width, states, depth, classes, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.encoder, self.head = eqx.nn.Linear(1, width, key=k1), eqx.nn.Linear(width, classes, key=k2)
        self.blocks = [Block(width, states, k) for k in jax.random.split(k3, depth)]

    def __call__(self, x, remat):
        x = jax.vmap(self.encoder)(x)
        for block in self.blocks:
            x = eqx.filter_checkpoint(block)(x) if remat else block(x)
        return self.head(x.mean(0))


def lru(topology, chips, batch, length=16384, width=128, states=128, depth=6, classes=2, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Model(width, states, depth, classes, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.adamw(1e-3, weight_decay=0.05)
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def make_step(params, opt_state, batch):
        @eqx.filter_value_and_grad
        def loss_fn(model):
            logits = jax.vmap(lambda x: model(x, remat))(batch["pixels"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        loss, grads = loss_fn(eqx.combine(params, static))
        updates, opt_state = transform.update(eqx.filter(grads, eqx.is_array), opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"pixels": S("float32", length, 1), "labels": S("int32")}
    return Program(make_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
