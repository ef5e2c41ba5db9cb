"""Flax Linen: Glow, a normalising flow of images; Transformer-XL with its memory as an argument; a vision transformer with experts (V-MoE)."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class Coupling(nn.Module):
    hidden: int
    dtype: type

    @nn.compact
    def __call__(self, a, out):
        h = nn.relu(nn.Conv(self.hidden, (3, 3), dtype=self.dtype)(a))
        h = nn.relu(nn.Conv(self.hidden, (1, 1), dtype=self.dtype)(h))
        return nn.Conv(out, (3, 3), kernel_init=nn.initializers.zeros, dtype=self.dtype)(h).astype(jnp.float32)


class FlowStep(nn.Module):
    hidden: int
    dtype: type

    @nn.compact
    def __call__(self, x):
        c, pixels = x.shape[-1], x.shape[1] * x.shape[2]
        logs, bias = self.param("logs", nn.initializers.zeros, (c,)), self.param("bias", nn.initializers.zeros, (c,))
        x = (x + bias) * jnp.exp(logs)
        lower, upper = self.param("lower", nn.initializers.zeros, (c, c)), self.param("upper", nn.initializers.zeros, (c, c))
        scale = self.param("scale", nn.initializers.zeros, (c,))
        w = (jnp.tril(lower, -1) + jnp.eye(c)) @ (jnp.triu(upper, 1) + jnp.diag(jnp.exp(scale)))
        x = x @ w
        a, b = jnp.split(x, 2, -1)
        s, t = jnp.split(Coupling(self.hidden, self.dtype)(a, c), 2, -1)
        s = nn.sigmoid(s + 2.0)
        return jnp.concatenate([a, (b + t) * s], -1), pixels * (logs.sum() + scale.sum()) + jnp.log(s).sum((1, 2, 3))


class Glow(nn.Module):
    levels: int
    steps: int
    hidden: int
    remat: bool
    dtype: type

    @nn.compact
    def __call__(self, x):
        total = 0.0
        gauss = lambda z: (-0.5 * (z**2 + np.log(2 * np.pi))).sum((1, 2, 3))
        step = nn.remat(FlowStep) if self.remat else FlowStep
        for level in range(self.levels):
            n, h, w, c = x.shape
            x = x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)
            for i in range(self.steps):
                x, d = step(self.hidden, self.dtype, name=f"level{level}_step{i}")(x)
                total += d
            if level < self.levels - 1:
                x, z = jnp.split(x, 2, -1)
                m, s = jnp.split(nn.Conv(2 * z.shape[-1], (3, 3), name=f"prior{level}")(x), 2, -1)
                total += gauss((z - m) * jnp.exp(-s)) - s.sum((1, 2, 3))
        return total + gauss(x)


def glow(topology, chips, batch, size=64, levels=3, steps=8, hidden=512, remat=False, half=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Glow(levels, steps, hidden, remat, HALF if half else jnp.float32)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, size, size, 3), "float32"))["params"], whole)
    transform = optax.chain(optax.clip_by_global_norm(100.0), optax.adam(1e-3))
    state = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, images, key):
        def loss_fn(params):
            x = images.astype(jnp.float32) / 256 - 0.5 + jax.random.uniform(key, images.shape) / 256
            return -(net.apply({"params": params}, x) / (size * size * 3 * np.log(2))).mean() + 8

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    images = jax.ShapeDtypeStruct((batch, size, size, 3), "uint8", sharding=split)
    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype, sharding=whole)
    del key
    key = jax.ShapeDtypeStruct((2,), "uint32", sharding=whole)
    return Program(train_step, (params, state, images, key), kind_of_step, (0, 1) if donate else ())


class RelativeAttention(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, memory):
        width, size = x.shape[-1], x.shape[-1] // self.heads
        both = jnp.concatenate([memory, x], 1)
        t, n = x.shape[1], both.shape[1]
        proj = functools.partial(nn.DenseGeneral, (self.heads, size), use_bias=False, dtype=HALF)
        q, k, v = proj(name="q")(x), proj(name="k")(both), proj(name="v")(both)
        f = jnp.arange(n - 1, -1, -1.0)[:, None] * 1e4 ** (-jnp.arange(0, width, 2) / width)
        r = proj(name="r")(jnp.concatenate([jnp.sin(f), jnp.cos(f)], -1).astype(HALF))
        u = self.param("u", nn.initializers.normal(0.02), (self.heads, size)).astype(HALF)
        w = self.param("w", nn.initializers.normal(0.02), (self.heads, size)).astype(HALF)
        ac = jnp.einsum("bqhd,bkhd->bhqk", q + u, k)
        bd = jnp.einsum("bqhd,khd->bhqk", q + w, r)
        # The shift of the paper: row i moves left by t - 1 - i.
        bd = jnp.pad(bd, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(*bd.shape[:2], n + 1, t)[:, :, 1:].reshape(bd.shape)
        s = (ac + bd).astype(jnp.float32) * size**-0.5
        s = jnp.where(jnp.arange(n) <= jnp.arange(t)[:, None] + n - t, s, -1e30)
        o = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(s).astype(HALF), v)
        return nn.DenseGeneral(width, (-2, -1), use_bias=False, dtype=HALF, name="o")(o)


class XLBlock(nn.Module):
    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x, memory):
        x = nn.LayerNorm(dtype=HALF)(x + RelativeAttention(self.heads)(x, memory))
        return nn.LayerNorm(dtype=HALF)(x + nn.Dense(x.shape[-1], dtype=HALF)(nn.relu(nn.Dense(self.hidden, dtype=HALF)(x))))


class XL(nn.Module):
    vocabulary: int
    depth: int
    width: int
    heads: int
    hidden: int
    remat: int
    chunks: int

    @nn.compact
    def __call__(self, tokens, labels, memories):
        x = nn.Embed(self.vocabulary, self.width, dtype=HALF)(tokens)
        kept = []
        for i in range(self.depth):
            kept.append(jax.lax.stop_gradient(jnp.concatenate([memories[i], x], 1)[:, -memories[i].shape[1]:]))
            kind = nn.remat(XLBlock) if i < self.remat else XLBlock
            x = kind(self.heads, self.hidden, name=f"block_{i}")(x, memories[i])
        table = self.param("head", nn.initializers.normal(0.02), (self.width, self.vocabulary))

        def piece(x, y):
            return optax.softmax_cross_entropy_with_integer_labels((x @ table.astype(HALF)).astype(jnp.float32), y).sum()

        if self.chunks == 1:
            return piece(x, labels) / labels.size, kept
        cut = lambda a: a.reshape(a.shape[0], self.chunks, -1, *a.shape[2:]).swapaxes(0, 1)
        total, _ = jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, (cut(x), cut(labels)))
        return total / labels.size, kept


def xl(topology, chips, batch, segment=512, memory=512, vocabulary=32000, depth=18, width=1024, heads=16, hidden=4096, remat=0, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = XL(vocabulary, depth, width, heads, hidden, remat, chunks)
    small = jax.ShapeDtypeStruct((1, segment), "int32")
    params = placed(jax.eval_shape(net.init, jax.random.key(0), small, small, [jax.ShapeDtypeStruct((1, memory, width), HALF)] * depth)["params"], whole)
    transform = optax.chain(optax.clip_by_global_norm(0.25), optax.adam(2.5e-4))
    state = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, mems, tokens, labels):
        (loss, mems), grads = jax.value_and_grad(lambda p: net.apply({"params": p}, tokens, labels, mems), has_aux=True)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, mems, loss

    mems = [jax.ShapeDtypeStruct((batch, memory, width), HALF, sharding=split) for _ in range(depth)]
    I = jax.ShapeDtypeStruct((batch, segment), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "cache"}.get(path[:3], "input")
    return Program(train_step, (params, state, mems, I, I), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(state), shardings(mems), None))


class MLP(nn.Module):
    hidden: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(x.shape[-1], dtype=HALF)(nn.gelu(nn.Dense(self.hidden, dtype=HALF)(x)))


class Experts(nn.Module):
    """Top 2 of the experts, each group's tokens up to a capacity; the experts are divided over the devices."""
    count: int
    hidden: int
    capacity: float

    @nn.compact
    def __call__(self, x):
        groups, n, width = x.shape
        room = int(2 * n * self.capacity / self.count)
        gates = nn.softmax(nn.Dense(self.count, use_bias=False, dtype=jnp.float32, name="router")(x.astype(jnp.float32)))
        dispatch = combine = 0.0
        used, left = jnp.zeros((groups, 1, self.count)), gates
        for _ in range(2):
            choice = jax.nn.one_hot(left.argmax(-1), self.count)
            place = (jnp.cumsum(choice, 1) - choice + used) * choice
            used = used + choice.sum(1, keepdims=True)
            slot = jax.nn.one_hot((place.sum(-1)).astype(jnp.int32), room) * (choice * (place < room)).sum(-1, keepdims=True)
            each = choice[..., None] * slot[:, :, None]
            dispatch, combine = dispatch + each, combine + each * (gates * choice).sum(-1)[..., None, None]
            left = left * (1 - choice)
        mesh_ = EXPERT_MESH[0]
        on = lambda a, *spec: jax.lax.with_sharding_constraint(a, NamedSharding(mesh_, P(*spec)))
        inside = on(jnp.einsum("gnec,gnd->egcd", dispatch.astype(HALF), x), "data")
        inside = inside.reshape(self.count, groups * room, width)
        many = nn.vmap(MLP, in_axes=0, out_axes=0, variable_axes={"params": 0}, split_rngs={"params": True})
        out = many(self.hidden, name="experts")(inside).reshape(self.count, groups, room, width)
        out = on(out, None, "data")
        balance = (gates.mean((0, 1)) * dispatch.sum(-1).mean((0, 1))).sum() * self.count
        self.sow("losses", "balance", balance)
        return jnp.einsum("gnec,egcd->gnd", combine.astype(HALF), out)


EXPERT_MESH = []


class MoEBlock(nn.Module):
    heads: int
    hidden: int
    count: int

    @nn.compact
    def __call__(self, x):
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF)(nn.LayerNorm(dtype=HALF)(x))
        h = nn.LayerNorm(dtype=HALF)(x)
        return x + (Experts(self.count, self.hidden, 1.05, name="moe")(h) if self.count else MLP(self.hidden, name="mlp")(h))


class VMoE(nn.Module):
    remat: bool
    depth: int
    width: int
    heads: int
    count: int

    @nn.compact
    def __call__(self, images):
        x = nn.Conv(self.width, (16, 16), (16, 16), dtype=HALF)(images.astype(HALF))
        x = x.reshape(x.shape[0], -1, self.width)
        x = x + self.param("places", nn.initializers.normal(0.02), (1, x.shape[1], self.width)).astype(HALF)
        kind = nn.remat(MoEBlock) if self.remat else MoEBlock
        for i in range(self.depth):
            x = kind(self.heads, 4 * self.width, self.count if i % 2 else 0, name=f"encoderblock_{i}")(x)
        return nn.Dense(1000)(nn.LayerNorm(dtype=HALF)(x).mean(1).astype(jnp.float32))


def vmoe(topology, chips, batch, size=384, depth=12, width=1024, heads=16, count=16, remat=False, zero=False, donate=True):
    """About V-MoE L/16 with half the layers: the experts are divided, the rest is whole on every device."""
    devices = mesh(topology, (chips,), ("data",))
    EXPERT_MESH.append(devices)
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = VMoE(remat, depth, width, heads, count)
    place = lambda path, leaf: split if "experts" in path else whole
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((chips, size, size, 3), "float32"))["params"], place)
    transform = optax.adamw(1e-3, weight_decay=0.1)
    largest = largest_dimension(devices, "data")
    state = placed(jax.eval_shape(transform.init, params), lambda path, leaf: split if "experts" in path else largest(path, leaf) if zero else whole)

    def train_step(params, opt_state, images, labels):
        def loss_fn(params):
            logits, extra = net.apply({"params": params}, images, mutable=["losses"])
            return optax.sigmoid_binary_cross_entropy(logits, jax.nn.one_hot(labels, 1000)).sum(-1).mean() + 0.01 * sum(jax.tree.leaves(extra))

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    images = jax.ShapeDtypeStruct((batch, size, size, 3), "float32", sharding=split)
    labels = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    return Program(train_step, (params, state, images, labels), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
