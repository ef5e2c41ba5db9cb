"""Equinox: RWKV-4 1.5B (24 layers of 2048, made by filter_vmap and run by lax.scan, each checkpointed; the state goes from word to word by lax.scan) in training on texts of 1024, weights in float32, computing in bfloat16, Adam, fully sharded."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def each(f):
    return jax.vmap(jax.vmap(f))


def linear(layer, x):
    return x @ layer.weight.astype(x.dtype).T


def norm(layer, x):
    return each(layer)(x.astype(jnp.float32)).astype(HALF)


def before(x):
    """What the word before had."""
    return jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]


def mixed(x, last, share):
    share = share.astype(x.dtype)
    return x * share + last * (1 - share)


class TimeMix(eqx.Module):
    decay: jax.Array
    first: jax.Array
    shares: jax.Array
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    receptance: eqx.nn.Linear
    output: eqx.nn.Linear

    def __init__(self, width, key):
        k = jax.random.split(key, 4)
        self.decay, self.first, self.shares = jnp.linspace(-5.0, 3.0, width), jnp.full((width,), -1.2), jnp.full((3, width), 0.5)
        self.key, self.value, self.receptance, self.output = (eqx.nn.Linear(width, width, use_bias=False, key=i) for i in k)

    def __call__(self, x):
        last = before(x)
        k = linear(self.key, mixed(x, last, self.shares[0])).astype(jnp.float32)
        v = linear(self.value, mixed(x, last, self.shares[1])).astype(jnp.float32)
        r = jax.nn.sigmoid(linear(self.receptance, mixed(x, last, self.shares[2])))
        w, u = -jnp.exp(self.decay), self.first

        def step(state, kv):
            a, b, p = state
            k, v = kv
            top = jnp.maximum(p, u + k)
            e1, e2 = jnp.exp(p - top), jnp.exp(u + k - top)
            out = (e1 * a + e2 * v) / (e1 * b + e2)
            top = jnp.maximum(p + w, k)
            e1, e2 = jnp.exp(p + w - top), jnp.exp(k - top)
            return (e1 * a + e2 * v, e1 * b + e2, top), out.astype(HALF)

        zero = jnp.zeros_like(k[:, 0])
        _, out = jax.lax.scan(step, (zero, zero, zero - 1e38), (k.swapaxes(0, 1), v.swapaxes(0, 1)))
        return linear(self.output, r * out.swapaxes(0, 1))


class ChannelMix(eqx.Module):
    shares: jax.Array
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    receptance: eqx.nn.Linear

    def __init__(self, width, hidden, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.shares = jnp.full((2, width), 0.5)
        self.key, self.value = eqx.nn.Linear(width, hidden, use_bias=False, key=k1), eqx.nn.Linear(hidden, width, use_bias=False, key=k2)
        self.receptance = eqx.nn.Linear(width, width, use_bias=False, key=k3)

    def __call__(self, x):
        last = before(x)
        k = jnp.square(jax.nn.relu(linear(self.key, mixed(x, last, self.shares[0]))))
        return jax.nn.sigmoid(linear(self.receptance, mixed(x, last, self.shares[1]))) * linear(self.value, k)


class Block(eqx.Module):
    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm
    time: TimeMix
    channel: ChannelMix

    def __init__(self, width, hidden, key):
        k1, k2 = jax.random.split(key)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.time, self.channel = TimeMix(width, k1), ChannelMix(width, hidden, k2)

    def __call__(self, x):
        x = x + self.time(norm(self.norm1, x))
        return x + self.channel(norm(self.norm2, x))


class RWKV(eqx.Module):
    embed: jax.Array
    norm0: eqx.nn.LayerNorm
    blocks: Block
    norm: eqx.nn.LayerNorm
    head: jax.Array

    def __init__(self, words, width, hidden, depth, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.embed, self.head = 1e-4 * jax.random.normal(k1, (words, width)), 0.02 * jax.random.normal(k2, (width, words))
        self.norm0, self.norm = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.blocks = eqx.filter_vmap(lambda k: Block(width, hidden, k))(jax.random.split(k3, depth))


def rwkv(topology, chips, batch, length=1024, words=50277, width=2048, hidden=8192, depth=24, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    model = eqx.filter_eval_shape(lambda: RWKV(words, width, hidden, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, largest_dimension(devices, "fsdp", 1 << 17))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(3e-4, 300000), b2=0.99))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def make_step(params, opt_state, tokens):
        @eqx.filter_value_and_grad
        def loss_fn(model):
            x = jax.lax.with_sharding_constraint(model.embed.astype(HALF)[tokens[:, :-1]], split)
            x = norm(model.norm0, x)
            dynamic, rest = eqx.partition(model.blocks, eqx.is_array)

            @jax.checkpoint
            def body(x, layer):
                return jax.lax.with_sharding_constraint(eqx.combine(layer, rest)(x), split), None

            x, _ = jax.lax.scan(body, x, dynamic)
            return entropy(norm(model.norm, x), model.head, tokens[:, 1:], chunks)

        loss, grads = loss_fn(eqx.combine(params, static))
        updates, opt_state = transform.update(eqx.filter(grads, eqx.is_array), opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=split)
    return Program(make_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
