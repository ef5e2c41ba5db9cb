"""Equinox: the projector of a vision-language model (LLaVA's first stage); picture encoder and language model frozen, in bfloat16, their layers scanned."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, shardings
from recipe import Program, largest_dimension, mesh, placed


class Layer(eqx.Module):
    norm1: eqx.nn.RMSNorm
    norm2: eqx.nn.RMSNorm
    qkv: eqx.nn.Linear
    out: eqx.nn.Linear
    wide: eqx.nn.Linear
    narrow: eqx.nn.Linear
    heads: int = eqx.field(static=True)
    masked: bool = eqx.field(static=True)

    def __init__(self, width, heads, hidden, masked, key):
        ks = jax.random.split(key, 4)
        lin = lambda a, b, key: eqx.nn.Linear(a, b, use_bias=False, key=key)
        self.norm1, self.norm2, self.heads, self.masked = eqx.nn.RMSNorm(width), eqx.nn.RMSNorm(width), heads, masked
        self.qkv, self.out = lin(width, 3 * width, ks[0]), lin(width, width, ks[1])
        self.wide, self.narrow = lin(width, (2 if masked else 1) * hidden, ks[2]), lin(hidden, width, ks[3])

    def __call__(self, x):  # [time, width]
        q, k, v = (a.reshape(1, x.shape[0], self.heads, -1) for a in jnp.split(jax.vmap(self.qkv)(jax.vmap(self.norm1)(x)), 3, -1))
        a = causal(q, k, v) if self.masked else jax.nn.dot_product_attention(q, k, v)
        x = x + jax.vmap(self.out)(a.reshape(x.shape).astype(x.dtype))
        h = jax.vmap(self.wide)(jax.vmap(self.norm2)(x))
        if self.masked:
            gate, up = jnp.split(h, 2, -1)
            h = jax.nn.silu(gate) * up
        else:
            h = jax.nn.gelu(h)
        return x + jax.vmap(self.narrow)(h)


def stack(depth, *options):
    return eqx.filter_vmap(lambda key: Layer(*options, key))(jax.random.split(jax.random.key(0), depth))


def scanned(layers, x, remat):
    arrays, static = eqx.partition(layers, eqx.is_array)

    def body(x, arrays):
        return jax.vmap(eqx.combine(arrays, static))(x), None

    return jax.lax.scan(jax.checkpoint(body, prevent_cse=False) if remat else body, x, arrays)[0]


class Vision(eqx.Module):
    enter: eqx.nn.Linear
    place: jax.Array
    layers: Layer

    def __init__(self, width, places, depth, heads):
        self.enter, self.place = eqx.nn.Linear(588, width, key=jax.random.key(1)), jnp.zeros((places, width))
        self.layers = stack(depth, width, heads, 4 * width, False)


class Language(eqx.Module):
    embed: jax.Array
    layers: Layer
    norm: eqx.nn.RMSNorm
    head: jax.Array

    def __init__(self, words, width, depth, heads, hidden):
        self.embed, self.head = jnp.zeros((words, width)), jnp.zeros((width, words))
        self.layers, self.norm = stack(depth, width, heads, hidden, True), eqx.nn.RMSNorm(width)


class Projector(eqx.Module):
    first: eqx.nn.Linear
    second: eqx.nn.Linear

    def __init__(self, a, b):
        self.first, self.second = eqx.nn.Linear(a, b, key=jax.random.key(2)), eqx.nn.Linear(b, b, key=jax.random.key(3))


def llava(topology, chips, batch, places=576, text=448, width=2048, depth=22, heads=16, hidden=5632, words=32000, remat=False, chunks=1, fsdp=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    array = lambda a: isinstance(a, jax.ShapeDtypeStruct)
    part = lambda make: eqx.partition(eqx.filter_eval_shape(make), array)
    (projector, s1), (vision, s2), (llm, s3) = part(lambda: Projector(1024, width)), part(lambda: Vision(1024, places, 24, 16)), part(lambda: Language(words, width, depth, heads, hidden))
    half = lambda tree: jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, HALF), tree)
    projector, vision = placed(projector, whole), placed(half(vision), whole)
    llm = placed(half(llm), largest_dimension(devices, "data", 1 << 17) if fsdp else whole)
    transform = optax.adamw(1e-3)
    opt = placed(jax.eval_shape(transform.init, projector), whole)

    def train_step(projector, opt_state, vision, llm, batch):
        v, l = eqx.combine(vision, s2), eqx.combine(llm, s3)
        seen = scanned(v.layers, jax.vmap(jax.vmap(v.enter))(batch["patches"]) + v.place, False)
        seen = jax.lax.stop_gradient(seen)

        def loss_fn(projector):
            p = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), projector), s1)
            soft = jax.vmap(jax.vmap(lambda a: p.second(jax.nn.gelu(p.first(a)))))(seen)
            x = jnp.concatenate([soft, l.embed[batch["tokens"]]], 1)
            x = jax.vmap(jax.vmap(l.norm))(scanned(l.layers, x, remat))[:, places:]
            return entropy(x, l.head, jnp.roll(batch["tokens"], -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(projector)
        updates, opt_state = transform.update(grads, opt_state, projector)
        return eqx.apply_updates(projector, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight", "[3]": "weight"}.get(path[:3], "input")
    return Program(train_step, (projector, opt, vision, llm, {"patches": S("bfloat16", places, 588), "tokens": S("int32", text)}), classify, (0, 1) if donate else (), (shardings(projector), shardings(opt), None))
