"""Equinox: a Pairformer (as of AlphaFold 3: pairs of 384 residues, 128 each; triangles multiplied and attended to, both ways; 12 blocks made by filter_vmap and run by lax.scan) learns distances, float32, Adam, data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


def pairs(layer):
    return jax.vmap(jax.vmap(layer))


class TriangleMultiplication(eqx.Module):
    norm_in: eqx.nn.LayerNorm
    norm_out: eqx.nn.LayerNorm
    project: eqx.nn.Linear
    gate: eqx.nn.Linear
    out: eqx.nn.Linear
    out_gate: eqx.nn.Linear
    outgoing: bool = eqx.field(static=True)

    def __init__(self, width, outgoing, key):
        k = jax.random.split(key, 4)
        self.norm_in, self.norm_out, self.outgoing = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width), outgoing
        self.project, self.gate = (eqx.nn.Linear(width, 2 * width, use_bias=False, key=i) for i in k[:2])
        self.out, self.out_gate = (eqx.nn.Linear(width, width, use_bias=False, key=i) for i in k[2:])

    def __call__(self, z):
        h = pairs(self.norm_in)(z)
        a, b = jnp.split(pairs(self.project)(h) * jax.nn.sigmoid(pairs(self.gate)(h)), 2, -1)
        x = jnp.einsum("ikc,jkc->ijc" if self.outgoing else "kic,kjc->ijc", a, b)
        return pairs(self.out)(pairs(self.norm_out)(x)) * jax.nn.sigmoid(pairs(self.out_gate)(h))


class TriangleAttention(eqx.Module):
    norm: eqx.nn.LayerNorm
    qkv: eqx.nn.Linear
    bias: eqx.nn.Linear
    gate: eqx.nn.Linear
    out: eqx.nn.Linear
    heads: int = eqx.field(static=True)
    starting: bool = eqx.field(static=True)

    def __init__(self, width, heads, starting, key):
        k = jax.random.split(key, 4)
        self.norm, self.heads, self.starting = eqx.nn.LayerNorm(width), heads, starting
        self.qkv, self.bias = eqx.nn.Linear(width, 3 * width, use_bias=False, key=k[0]), eqx.nn.Linear(width, heads, use_bias=False, key=k[1])
        self.gate, self.out = (eqx.nn.Linear(width, width, use_bias=False, key=i) for i in k[2:])

    def __call__(self, z):
        z = z if self.starting else z.swapaxes(0, 1)
        h = pairs(self.norm)(z)
        q, k, v = (a.reshape(*a.shape[:2], self.heads, -1) for a in jnp.split(pairs(self.qkv)(h), 3, -1))
        scores = jnp.einsum("iqhc,ikhc->ihqk", q * q.shape[-1] ** -0.5, k) + pairs(self.bias)(h).transpose(2, 0, 1)
        shares = jax.nn.softmax(scores.astype(jnp.float32)).astype(z.dtype)
        o = jnp.einsum("ihqk,ikhc->iqhc", shares, v).reshape(z.shape)
        o = pairs(self.out)(o * jax.nn.sigmoid(pairs(self.gate)(h)))
        return o if self.starting else o.swapaxes(0, 1)


class Transition(eqx.Module):
    norm: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    gate: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, key):
        k = jax.random.split(key, 3)
        self.norm = eqx.nn.LayerNorm(width)
        self.up, self.gate = (eqx.nn.Linear(width, 4 * width, use_bias=False, key=i) for i in k[:2])
        self.down = eqx.nn.Linear(4 * width, width, use_bias=False, key=k[2])

    def __call__(self, z):
        h = pairs(self.norm)(z)
        return pairs(self.down)(jax.nn.silu(pairs(self.gate)(h)) * pairs(self.up)(h))


class Block(eqx.Module):
    parts: list

    def __init__(self, width, heads, key):
        k = jax.random.split(key, 5)
        self.parts = [
            TriangleMultiplication(width, True, k[0]), TriangleMultiplication(width, False, k[1]),
            TriangleAttention(width, heads, True, k[2]), TriangleAttention(width, heads, False, k[3]), Transition(width, k[4])]

    def __call__(self, z):
        for part in self.parts:
            z = z + part(z)
        return z


class Pairformer(eqx.Module):
    left: eqx.nn.Embedding
    right: eqx.nn.Embedding
    places: eqx.nn.Embedding
    blocks: Block
    head: eqx.nn.Linear

    def __init__(self, width, heads, depth, kinds, bins, key):
        k = jax.random.split(key, 5)
        self.left, self.right, self.places = eqx.nn.Embedding(kinds, width, key=k[0]), eqx.nn.Embedding(kinds, width, key=k[1]), eqx.nn.Embedding(65, width, key=k[2])
        self.blocks = eqx.filter_vmap(lambda key: Block(width, heads, key))(jax.random.split(k[3], depth))
        self.head = eqx.nn.Linear(width, bins, key=k[4])


def pairformer(topology, chips, batch, residues=384, width=128, heads=4, depth=12, bins=64, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Pairformer(width, heads, depth, 32, bins, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1.8e-3, b2=0.95))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def make_step(params, opt_state, batch):
        @eqx.filter_value_and_grad
        def loss_fn(model):
            model = jax.tree.map(lambda a: a.astype(compute) if eqx.is_inexact_array(a) else a, model)
            kinds = batch["residues"]
            apart = jnp.clip(jnp.arange(residues)[:, None] - jnp.arange(residues) + 32, 0, 64)
            z = model.left.weight[kinds][:, :, None] + model.right.weight[kinds][:, None] + model.places.weight[apart]
            z = jax.lax.with_sharding_constraint(z, split)
            dynamic, rest = eqx.partition(model.blocks, eqx.is_array)

            def body(z, layer):
                return jax.lax.with_sharding_constraint(jax.vmap(eqx.combine(layer, rest))(z), split), None

            z, _ = jax.lax.scan(jax.checkpoint(body) if remat else body, z, dynamic)
            logits = jax.vmap(pairs(model.head))(z + z.swapaxes(1, 2)).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["distances"]).mean()

        loss, grads = loss_fn(eqx.combine(params, static))
        updates, opt_state = transform.update(eqx.filter(grads, eqx.is_array), opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "int32", sharding=split)
    data = {"residues": S(residues), "distances": S(residues, residues)}
    return Program(make_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
