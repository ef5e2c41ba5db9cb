"""Equinox: AlphaFold 3's Pairformer (pairs made over by multiplications and attentions over triangles, singles attending with the pairs as bias), 8 blocks, learning distances; weights in float32, computing in bfloat16, Adam, data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


class Linear(eqx.Module):
    weight: jax.Array

    def __init__(self, a, b, key):
        self.weight = jax.random.normal(key, (a, b)) * a**-0.5

    def __call__(self, x):
        return x @ self.weight.astype(x.dtype)


class Norm(eqx.Module):
    scale: jax.Array
    bias: jax.Array

    def __init__(self, a):
        self.scale, self.bias = jnp.ones(a), jnp.zeros(a)

    def __call__(self, x):
        y = x.astype(jnp.float32)
        y = y - y.mean(-1, keepdims=True)
        return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5) * self.scale + self.bias).astype(x.dtype)


class Multiplication(eqx.Module):
    norm: Norm
    project: Linear
    gates: Linear
    inner: Norm
    out: Linear
    gate: Linear
    outgoing: bool = eqx.field(static=True)

    def __init__(self, c, outgoing, key):
        k = jax.random.split(key, 4)
        self.norm, self.inner, self.outgoing = Norm(c), Norm(c), outgoing
        self.project, self.gates, self.out, self.gate = Linear(c, 2 * c, k[0]), Linear(c, 2 * c, k[1]), Linear(c, c, k[2]), Linear(c, c, k[3])

    def __call__(self, z):
        x = self.norm(z)
        a, b = jnp.split(self.project(x) * jax.nn.sigmoid(self.gates(x)), 2, -1)
        y = jnp.einsum("ikc,jkc->ijc" if self.outgoing else "kic,kjc->ijc", a, b)
        return self.out(self.inner(y)) * jax.nn.sigmoid(self.gate(x))


class TriangleAttention(eqx.Module):
    norm: Norm
    qkv: Linear
    bias: Linear
    gate: Linear
    out: Linear
    heads: int = eqx.field(static=True)
    starting: bool = eqx.field(static=True)
    rows: int = eqx.field(static=True)

    def __init__(self, c, heads, starting, rows, key):
        k = jax.random.split(key, 4)
        self.norm, self.heads, self.starting, self.rows = Norm(c), heads, starting, rows
        self.qkv, self.bias, self.gate, self.out = Linear(c, 3 * c, k[0]), Linear(c, heads, k[1]), Linear(c, c, k[2]), Linear(c, c, k[3])

    def __call__(self, z):
        x = self.norm(z if self.starting else z.swapaxes(0, 1))
        n, _, c = x.shape
        q, k, v = (a.reshape(n, n, self.heads, -1) for a in jnp.split(self.qkv(x), 3, -1))
        bias = jnp.moveaxis(self.bias(x), -1, 0).astype(jnp.float32)

        def attend(part):
            q, k, v = part
            s = jnp.einsum("rqhd,rkhd->rhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5 + bias
            return jnp.einsum("rhqk,rkhd->rqhd", jax.nn.softmax(s).astype(v.dtype), v)

        if self.rows:
            parts = jax.tree.map(lambda a: a.reshape(n // self.rows, self.rows, *a.shape[1:]), (q, k, v))
            o = jax.lax.map(jax.checkpoint(attend), parts)
        else:
            o = attend((q, k, v))
        y = self.out(o.reshape(n, n, c) * jax.nn.sigmoid(self.gate(x)))
        return y if self.starting else y.swapaxes(0, 1)


class Transition(eqx.Module):
    norm: Norm
    up: Linear
    gate: Linear
    down: Linear

    def __init__(self, c, key):
        k = jax.random.split(key, 3)
        self.norm, self.up, self.gate, self.down = Norm(c), Linear(c, 4 * c, k[0]), Linear(c, 4 * c, k[1]), Linear(4 * c, c, k[2])

    def __call__(self, x):
        h = self.norm(x)
        return self.down(jax.nn.silu(self.gate(h)) * self.up(h))


class SingleAttention(eqx.Module):
    norm: Norm
    pair_norm: Norm
    qkv: Linear
    bias: Linear
    gate: Linear
    out: Linear
    heads: int = eqx.field(static=True)

    def __init__(self, c, pair, heads, key):
        k = jax.random.split(key, 4)
        self.norm, self.pair_norm, self.heads = Norm(c), Norm(pair), heads
        self.qkv, self.bias, self.gate, self.out = Linear(c, 3 * c, k[0]), Linear(pair, heads, k[1]), Linear(c, c, k[2]), Linear(c, c, k[3])

    def __call__(self, s, z):
        x = self.norm(s)
        q, k, v = (a.reshape(len(x), self.heads, -1) for a in jnp.split(self.qkv(x), 3, -1))
        score = jnp.einsum("qhd,khd->hqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5 + jnp.moveaxis(self.bias(self.pair_norm(z)), -1, 0)
        o = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(score).astype(v.dtype), v).reshape(x.shape)
        return self.out(o * jax.nn.sigmoid(self.gate(x)))


class Block(eqx.Module):
    multiply_out: Multiplication
    multiply_in: Multiplication
    attend_start: TriangleAttention
    attend_end: TriangleAttention
    pair: Transition
    attend: SingleAttention
    single: Transition

    def __init__(self, single, pair, rows, key):
        k = jax.random.split(key, 7)
        self.multiply_out, self.multiply_in = Multiplication(pair, True, k[0]), Multiplication(pair, False, k[1])
        self.attend_start, self.attend_end = TriangleAttention(pair, 4, True, rows, k[2]), TriangleAttention(pair, 4, False, rows, k[3])
        self.pair, self.attend, self.single = Transition(pair, k[4]), SingleAttention(single, pair, 16, k[5]), Transition(single, k[6])

    def __call__(self, s, z):
        for part in (self.multiply_out, self.multiply_in, self.attend_start, self.attend_end, self.pair):
            z = z + part(z)
        s = s + self.attend(s, z)
        return s + self.single(s), z


class Pairformer(eqx.Module):
    enter: Linear
    left: Linear
    right: Linear
    relative: Linear
    blocks: list
    distance: Linear
    remat: bool = eqx.field(static=True)

    def __init__(self, seen, single, pair, depth, bins, rows, remat, key):
        k = jax.random.split(key, depth + 5)
        self.enter, self.left, self.right, self.relative = Linear(seen, single, k[0]), Linear(seen, pair, k[1]), Linear(seen, pair, k[2]), Linear(66, pair, k[3])
        self.blocks, self.distance, self.remat = [Block(single, pair, rows, key) for key in k[5:]], Linear(pair, bins, k[4]), remat

    def __call__(self, features):
        f = features.astype(HALF)
        s, n = self.enter(f), len(f)
        apart = jnp.clip(jnp.arange(n)[:, None] - jnp.arange(n), -32, 32) + 32
        z = self.left(f)[:, None] + self.right(f)[None] + self.relative.weight.astype(HALF)[apart]
        for block in self.blocks:
            s, z = (eqx.filter_checkpoint(block) if self.remat else block)(s, z)
        return self.distance(z + z.swapaxes(0, 1)).astype(jnp.float32)


def pairformer(topology, chips, batch, length=512, seen=449, single=384, pair=128, depth=8, bins=64, rows=0, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Pairformer(seen, single, pair, depth, bins, rows, remat, jax.random.key(0)))
    params, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1.8e-3, b2=0.95))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, data):
        @eqx.filter_value_and_grad
        def loss_fn(params):
            logits = jax.vmap(eqx.combine(params, static))(data["features"])
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, data["bins"])
            return (losses * data["known"]).sum() / data["known"].sum()

        loss, grads = loss_fn(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"features": S("float32", length, seen), "bins": S("int32", length, length), "known": S("float32", length, length)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
