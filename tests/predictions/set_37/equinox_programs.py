"""Equinox: Mamba 2, 370 million, its blocks stacked and scanned, the state space in chunks (SSD) as its paper's listing has it; fully sharded, AdamW."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def sums(a):
    """[..., chunk]: the sum of a from j + 1 to i, minus infinity where j > i."""
    total = jnp.cumsum(a, -1)
    pairs = total[..., :, None] - total[..., None, :]
    return jnp.where(jnp.tril(jnp.ones(pairs.shape[-2:], bool)), pairs, -jnp.inf)


def ssd(x, a, b, c, chunk):
    """x [batch, time, heads, size], a [batch, time, heads] (float32), b and c [batch, time, state]."""
    rows, time, heads, size = x.shape
    cut = lambda v: v.reshape(rows, time // chunk, chunk, *v.shape[2:])
    x, b, c = cut(x), cut(b), cut(c)
    a = cut(a).transpose(0, 3, 1, 2)  # [batch, heads, chunks, chunk]
    total = jnp.cumsum(a, -1)
    within = jnp.exp(sums(a)).astype(HALF)
    scores = jnp.einsum("bzln,bzsn->bzls", c, b)
    near = jnp.einsum("bhzls,bzshp->bzlhp", within * scores[:, None], x)
    left = jnp.exp(total[..., -1:] - total).astype(HALF)
    states = jnp.einsum("bzsn,bhzs,bzshp->bzhpn", b, left, x).astype(jnp.float32)

    def carry(state, xs):
        decay, new = xs
        return state * decay[..., None, None] + new, state

    ends = jnp.exp(total[..., -1]).transpose(2, 0, 1)
    _, before = jax.lax.scan(carry, jnp.zeros_like(states[:, 0]), (ends, states.swapaxes(0, 1)))
    far = jnp.einsum("bzln,zbhpn,bhzl->bzlhp", c, before.astype(HALF), jnp.exp(total).astype(HALF))
    return (near + far).reshape(rows, time, heads, size)


class Block(eqx.Module):
    into: jax.Array
    out: jax.Array
    conv: jax.Array
    bias: jax.Array
    a_log: jax.Array
    dt_bias: jax.Array
    skip: jax.Array
    norm: jax.Array
    gated_norm: jax.Array
    sizes: tuple = eqx.field(static=True)

    def __init__(self, width, size, state, chunk, key):
        inner = 2 * width
        heads, k = inner // size, jax.random.split(key, 3)
        normal = lambda k, *s: jax.random.normal(k, s) * 0.02
        self.into, self.out = normal(k[0], width, 2 * inner + 2 * state + heads), normal(k[1], inner, width)
        self.conv, self.bias = normal(k[2], 4, inner + 2 * state), jnp.zeros(inner + 2 * state)
        self.a_log, self.dt_bias, self.skip = jnp.zeros(heads), jnp.zeros(heads), jnp.ones(heads)
        self.norm, self.gated_norm = jnp.ones(width), jnp.ones(inner)
        self.sizes = (inner, state, heads, size, chunk)

    def __call__(self, x):
        inner, state, heads, size, chunk = self.sizes
        z, xbc, dt = jnp.split(rms(x, self.norm) @ self.into.astype(HALF), [inner, 2 * inner + 2 * state], -1)
        padded = jnp.pad(xbc, ((0, 0), (3, 0), (0, 0)))
        xbc = jax.nn.silu(sum(padded[:, i : i + x.shape[1]] * self.conv[i].astype(HALF) for i in range(4)) + self.bias.astype(HALF))
        v, b, c = jnp.split(xbc, [inner, inner + state], -1)
        v = v.reshape(*v.shape[:2], heads, size)
        dt = jax.nn.softplus(dt.astype(jnp.float32) + self.dt_bias)
        y = ssd(v * dt[..., None].astype(HALF), -jnp.exp(self.a_log) * dt, b, c, chunk)
        y = (y + v * self.skip[:, None].astype(HALF)).reshape(z.shape)
        return x + rms(y * jax.nn.silu(z), self.gated_norm) @ self.out.astype(HALF)


class Mamba(eqx.Module):
    embed: jax.Array
    blocks: Block
    norm: jax.Array

    def __init__(self, words, width, size, state, chunk, depth, key):
        k1, k2 = jax.random.split(key)
        self.embed, self.norm = jax.random.normal(k1, (words, width)) * 0.02, jnp.ones(width)
        self.blocks = eqx.filter_vmap(lambda k: Block(width, size, state, chunk, k))(jax.random.split(k2, depth))

    def __call__(self, tokens, split, remat):
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)
        keep = lambda a: jax.lax.with_sharding_constraint(a, split)
        body = lambda x, layer: (keep(eqx.combine(layer, static)(x)), None)
        if remat:
            body = jax.checkpoint(body, prevent_cse=False)
        return rms(jax.lax.scan(body, keep(self.embed.astype(HALF)[tokens]), dynamic)[0], self.norm)


def mamba2(topology, chips, batch, length=2048, words=50288, width=1024, size=64, state=128, chunk=256, depth=48, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    model = eqx.filter_eval_shape(lambda: Mamba(words, width, size, state, chunk, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, largest_dimension(devices, "fsdp"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def train_step(params, opt_state, tokens):
        def loss_fn(params):
            net = eqx.combine(params, static)
            return entropy(net(tokens, split, remat), net.embed.T, jnp.roll(tokens, -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
