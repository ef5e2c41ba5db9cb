"""Equinox: GPT-2 large of eqx.nn layers, stacked with filter_vmap and scanned, as its documentation advises; half precision by casting."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, shardings
from recipe import Program, largest_dimension, mesh, placed


class Block(eqx.Module):
    ln1: eqx.nn.LayerNorm
    ln2: eqx.nn.LayerNorm
    attn: eqx.nn.MultiheadAttention
    fc: eqx.nn.Linear
    proj: eqx.nn.Linear

    def __init__(self, width, heads, key):
        k = jax.random.split(key, 3)
        self.ln1, self.ln2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.attn = eqx.nn.MultiheadAttention(heads, width, use_query_bias=True, use_key_bias=True, use_value_bias=True, use_output_bias=True, key=k[0])
        self.fc, self.proj = eqx.nn.Linear(width, 4 * width, key=k[1]), eqx.nn.Linear(4 * width, width, key=k[2])

    def __call__(self, x):
        h = jax.vmap(self.ln1)(x)
        x = x + self.attn(h, h, h, mask=jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool)))
        h = jax.vmap(self.fc)(jax.vmap(self.ln2)(x))
        return x + jax.vmap(self.proj)(jax.nn.gelu(h))


class GPT(eqx.Module):
    wte: jax.Array
    wpe: jax.Array
    blocks: Block
    norm: eqx.nn.LayerNorm
    remat: bool = eqx.field(static=True)

    def __init__(self, words, length, width, heads, depth, remat, key):
        k = jax.random.split(key, depth + 1)
        self.wte, self.wpe = jax.random.normal(k[0], (words, width)), jnp.zeros((length, width))
        self.blocks = eqx.filter_vmap(lambda key: Block(width, heads, key))(k[1:])
        self.norm, self.remat = eqx.nn.LayerNorm(width), remat

    def __call__(self, tokens):
        x = self.wte[tokens] + self.wpe
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)
        body = lambda x, part: (eqx.combine(part, static)(x), None)
        x, _ = jax.lax.scan(jax.checkpoint(body) if self.remat else body, x, dynamic)
        return jax.vmap(self.norm)(x)


def gpt(topology, chips, batch, length=1024, words=50304, width=1280, heads=20, depth=36, remat=False, zero=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: GPT(words, length, width, heads, depth, remat, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2.5e-4, weight_decay=0.1))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def make_step(model, opt_state, tokens):
        def loss_fn(model):
            net = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), model), static)
            return entropy(jax.vmap(net)(tokens[:, :-1]), net.wte.T, tokens[:, 1:], chunks)

        loss, grads = jax.value_and_grad(loss_fn)(model)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(make_step, (params, opt, tokens), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
