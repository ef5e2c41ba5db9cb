"""Equinox: S5, state spaces solved by an associative scan, on long sequences of bytes; layers not scanned, the batch by vmap."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


class Layer(eqx.Module):
    norm: eqx.nn.LayerNorm
    a_re: jax.Array
    a_im: jax.Array
    step: jax.Array
    b: jax.Array
    c: jax.Array
    d: jax.Array
    gate: eqx.nn.Linear

    def __init__(self, width, states, key):
        k = jax.random.split(key, 4)
        self.norm = eqx.nn.LayerNorm(width)
        self.a_re, self.a_im, self.step = jnp.full(states, -0.5), jnp.arange(states) * jnp.pi, jnp.zeros(states)
        self.b = jax.random.normal(k[0], (states, width, 2))
        self.c = jax.random.normal(k[1], (width, states, 2))
        self.d = jnp.ones(width)
        self.gate = eqx.nn.Linear(width, 2 * width, key=k[2])

    def __call__(self, x):
        u = jax.vmap(self.norm)(x)
        lam, dt = jax.lax.complex(self.a_re, self.a_im), jnp.exp(self.step)
        bar = jnp.exp(lam * dt)
        b = jax.lax.complex(self.b[..., 0], self.b[..., 1]) * ((bar - 1) / lam)[:, None]
        drive = u.astype(jnp.complex64) @ b.T
        join = lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])
        _, states = jax.lax.associative_scan(join, (jnp.broadcast_to(bar, drive.shape), drive))
        y = 2 * (states @ jax.lax.complex(self.c[..., 0], self.c[..., 1]).T).real + self.d * u
        h = jax.vmap(self.gate)(jax.nn.gelu(y))
        a, g = jnp.split(h, 2, -1)
        return x + a * jax.nn.sigmoid(g)


class Model(eqx.Module):
    embed: eqx.nn.Embedding
    layers: list
    head: eqx.nn.Linear
    remat: int = eqx.field(static=True)

    def __init__(self, depth, width, states, words, remat, key):
        k = jax.random.split(key, depth + 2)
        self.embed = eqx.nn.Embedding(words, width, key=k[0])
        self.layers = [Layer(width, states, k[i + 2]) for i in range(depth)]
        self.head = eqx.nn.Linear(width, words, key=k[1])
        self.remat = remat

    def __call__(self, tokens):
        x = jax.vmap(self.embed)(tokens)
        for i, layer in enumerate(self.layers):
            x = (eqx.filter_checkpoint(layer) if i < self.remat else layer)(x)
        return jax.vmap(self.head)(x)


def s5(topology, chips, batch, length=4096, depth=8, width=512, states=256, words=256, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Model(depth, width, states, words, remat, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.adamw(1e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def make_step(model, opt_state, tokens):
        def loss_fn(model):
            net = eqx.combine(model, static)
            logits = jax.vmap(net)(tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(model)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(make_step, (params, opt, tokens), classify, (0, 1) if donate else ())
