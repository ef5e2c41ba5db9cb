"""Equinox: BERT-base-like encoder with eqx.nn.MultiheadAttention, masked words, layers in a list, the batch by vmap; mixed precision by casting."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, largest_dimension, mesh, placed


class Block(eqx.Module):
    ln1: eqx.nn.LayerNorm
    ln2: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, heads, key):
        k = jax.random.split(key, 3)
        self.ln1, self.ln2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.attention = eqx.nn.MultiheadAttention(heads, width, key=k[0])
        self.up, self.down = eqx.nn.Linear(width, 4 * width, key=k[1]), eqx.nn.Linear(4 * width, width, key=k[2])

    def __call__(self, x):
        h = jax.vmap(self.ln1)(x)
        x = x + self.attention(h, h, h)
        h = jax.vmap(self.up)(jax.vmap(self.ln2)(x))
        return x + jax.vmap(self.down)(jax.nn.gelu(h))


class Encoder(eqx.Module):
    token: eqx.nn.Embedding
    position: jax.Array
    blocks: list
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear
    remat: int = eqx.field(static=True)

    def __init__(self, words, length, width, heads, depth, remat, key):
        k = jax.random.split(key, depth + 2)
        self.token, self.position = eqx.nn.Embedding(words, width, key=k[0]), jnp.zeros((length, width))
        self.blocks = [Block(width, heads, k[i + 2]) for i in range(depth)]
        self.norm, self.head = eqx.nn.LayerNorm(width), eqx.nn.Linear(width, words, key=k[1])
        self.remat = remat

    def __call__(self, tokens):
        x = jax.vmap(self.token)(tokens) + self.position
        for i, block in enumerate(self.blocks):
            x = (eqx.filter_checkpoint(block) if i < self.remat else block)(x)
        return jax.vmap(self.head)(jax.vmap(self.norm)(x))


def bert(topology, chips, batch, length=512, words=30522, width=768, heads=12, depth=12, remat=0, half=False, shard=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Encoder(words, length, width, heads, depth, remat, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    where = largest_dimension(devices, "data") if shard else whole
    params = placed(params, where)
    transform = optax.lamb(1e-3)
    opt = placed(jax.eval_shape(transform.init, params), where)

    def make_step(model, opt_state, tokens, labels, mask):
        def loss_fn(model):
            if half:
                model = jax.tree.map(lambda a: a.astype(jnp.bfloat16), model)
            logits = jax.vmap(eqx.combine(model, static))(tokens).astype(jnp.float32)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return (losses * mask).sum() / mask.sum()

        loss, grads = jax.value_and_grad(loss_fn)(model)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    outs = (jax.tree.map(lambda a: a.sharding, params), jax.tree.map(lambda a: a.sharding, opt), None)
    return Program(make_step, (params, opt, S("int32"), S("int32"), S("float32")), classify, (0, 1) if donate else (), outs)
