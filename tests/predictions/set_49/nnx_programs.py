"""Flax NNX: Mamba-2 780M (48 layers of 1536 by nnx.scan, state-space duality in chunks of 256) learns the next words of texts of 2048, nnx.Optimizer with AdamW, weights in float32, computing in bfloat16, data parallel."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, kind_of_nnx, shardings
from recipe import Program, mesh, placed


def sums(a):
    """[..., l]: the sums between every two places, minus infinity where the second comes before the first."""
    n = a.shape[-1]
    c = jnp.cumsum(a, -1)
    return jnp.where(jnp.tril(jnp.ones((n, n), bool)), c[..., :, None] - c[..., None, :], -jnp.inf)


def duality(x, a, b, c, chunk):
    """x [batch, time, heads, size] (times dt), a [batch, time, heads] (times dt), b, c [batch, time, state]."""
    batch, time, heads, size = x.shape
    cut = lambda t: t.reshape(batch, time // chunk, chunk, *t.shape[2:])
    x, a, b, c = cut(x), jnp.moveaxis(cut(a), -1, 1), cut(b), cut(c)  # a: batch, heads, chunks, chunk
    total = jnp.cumsum(a, -1)
    near = jnp.exp(sums(a))
    scores = jnp.einsum("bcln,bcsn->bcls", c, b)
    inside = jnp.einsum("bcls,bhcls,bcshp->bclhp", scores, near.astype(HALF), x)
    left = jnp.exp(total[..., -1:] - total).astype(HALF)
    states = jnp.einsum("bcln,bhcl,bclhp->bchpn", b, left, x)

    def on(state, part):
        new, decay = part
        return state * decay[..., None, None] + new, state

    first = jnp.zeros((batch, heads, size, b.shape[-1]), jnp.float32)
    _, before = jax.lax.scan(on, first, (jnp.moveaxis(states, 1, 0).astype(jnp.float32), jnp.moveaxis(jnp.exp(total[..., -1]), -1, 0)))
    outside = jnp.einsum("bcln,cbhpn,bhcl->bclhp", c, before.astype(HALF), jnp.exp(total).astype(HALF))
    return (inside + outside).reshape(batch, time, heads, size)


class Block(nnx.Module):
    def __init__(self, width, state, size, chunk, rngs):
        inner = 2 * width
        self.inner, self.state, self.size, self.heads, self.chunk = inner, state, size, inner // size, chunk
        dense = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        self.norm = nnx.RMSNorm(width, dtype=HALF, rngs=rngs)
        self.enter, self.leave = dense(width, 2 * inner + 2 * state + self.heads), dense(inner, width)
        self.conv = nnx.Conv(inner + 2 * state, inner + 2 * state, (4,), padding="CAUSAL", feature_group_count=inner + 2 * state, dtype=HALF, rngs=rngs)
        self.inner_norm = nnx.RMSNorm(inner, dtype=HALF, rngs=rngs)
        self.a_log, self.d, self.dt_bias = nnx.Param(jnp.zeros(self.heads)), nnx.Param(jnp.ones(self.heads)), nnx.Param(jnp.zeros(self.heads))

    def __call__(self, x):
        z, xbc, dt = jnp.split(self.enter(self.norm(x)), (self.inner, 2 * self.inner + 2 * self.state), -1)
        h, b, c = jnp.split(nnx.silu(self.conv(xbc)), (self.inner, self.inner + self.state), -1)
        dt = jax.nn.softplus(dt.astype(jnp.float32) + self.dt_bias[...])
        h = h.reshape(*h.shape[:2], self.heads, self.size)
        y = duality(h * dt[..., None].astype(HALF), -jnp.exp(self.a_log[...]) * dt, b, c, self.chunk)
        y = (y + h * self.d[...][:, None].astype(HALF)).reshape(z.shape)
        return x + self.leave(self.inner_norm(y * nnx.silu(z)))


class Mamba(nnx.Module):
    def __init__(self, words, width, depth, state, size, chunk, remat, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)

        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def make(rngs):
            return Block(width, state, size, chunk, rngs)

        self.layers, self.norm, self.remat = make(rngs), nnx.RMSNorm(width, dtype=HALF, rngs=rngs), remat

    def __call__(self, tokens):
        one = lambda x, block: block(x)
        one = nnx.remat(one, prevent_cse=False) if self.remat else one
        x = nnx.scan(one, in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(self.embed(tokens), self.layers)
        return self.norm(x)


class Trained(nnx.Module):
    def __init__(self, model, transform):
        self.model = model
        self.optimizer = nnx.Optimizer(model, transform, wrt=nnx.Param)


def mamba2(topology, chips, batch, length=2048, words=50288, width=1536, depth=48, state=128, size=64, chunk=256, chunks=1, remat=False, donate=False):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(6e-4, b2=0.95, weight_decay=0.1))
    both = nnx.eval_shape(lambda: Trained(Mamba(words, width, depth, state, size, chunk, remat, nnx.Rngs(0)), transform))
    graph, values = nnx.split(both)
    values = placed(values, whole)

    def train_step(values, tokens):
        both = nnx.merge(graph, values)

        def loss_fn(model):
            return entropy(model(tokens), model.embed.embedding[...].T, jnp.roll(tokens, -1, 1), chunks)

        loss, grads = nnx.value_and_grad(loss_fn)(both.model)
        both.optimizer.update(both.model, grads)
        return nnx.state(both), loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (values, tokens), kind_of_nnx, (0,) if donate else (), (shardings(values), None))
