"""JAX alone: a GPT of a billion weights by Muon (optax.contrib), Adam for the embedding and the head; layers in a list, data parallel."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P
from optax.contrib import MuonDimensionNumbers, muon

from pieces import HALF, causal, entropy, flash, kind_of_step, rms, shardings, turned
from recipe import Program, largest_dimension, mesh, placed


def gpt(topology, chips, batch, length=1024, depth=16, width=2048, heads=16, words=50304, remat=0, blockwise=False, momentum="float32", zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    layer_of = lambda: {"c_q": F(width, width), "c_k": F(width, width), "c_v": F(width, width), "c_proj": F(width, width), "c_fc": F(width, 4 * width), "mlp_proj": F(4 * width, width)}
    params = {"wte": F(words, width), "lm_head": F(width, words), "h": [layer_of() for _ in range(depth)]}
    numbers = {"wte": None, "lm_head": None, "h": jax.tree.map(lambda a: MuonDimensionNumbers(), params["h"])}
    transform = muon(0.02, mu_dtype=momentum, adam_learning_rate=3e-3, muon_weight_dimension_numbers=lambda p: numbers)
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)
    attend = jax.shard_map(flash if blockwise else causal, mesh=devices, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    unit = jnp.ones((width,), HALF)

    def layer(x, w):
        h = rms(x, unit)
        q, k, v = ((h @ w[n].astype(HALF)).reshape(*h.shape[:2], heads, -1) for n in ("c_q", "c_k", "c_v"))
        ones = unit[: width // heads]
        q, k = rms(turned(q, 1e4), ones), rms(turned(k, 1e4), ones)
        x = x + attend(q, k, v).reshape(x.shape) @ w["c_proj"].astype(HALF)
        return x + jnp.square(jax.nn.relu(rms(x, unit) @ w["c_fc"].astype(HALF))) @ w["mlp_proj"].astype(HALF)

    def loss_fn(params, tokens):
        x = rms(params["wte"].astype(HALF)[tokens], unit)
        for i, w in enumerate(params["h"]):
            x = (jax.checkpoint(layer) if i < remat else layer)(x, w)
        return entropy(rms(x, unit), params["lm_head"], jnp.roll(tokens, -1, 1), 1)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
