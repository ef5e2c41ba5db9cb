"""The gemma library: its Gemma 3 1B tuned wholly, fully sharded, on long texts."""

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import entropy, following, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def full(topology, chips, batch, length, remat=False, chunks=1, donate=True):
    from gemma import gm
    from gemma.gm.nn import _modules as M

    if remat:
        M.Block = nn.remat(M.Block)
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    net = gm.nn.Gemma3_1B(dtype=jnp.bfloat16)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "float32"), params), largest_dimension(devices, "fsdp", 1 << 16))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5))
    state = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def loss_fn(params, tokens):
        target = jnp.roll(tokens, -1, 1)
        half = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
        out = net.apply({"params": half}, tokens=tokens, return_hidden_states=chunks > 1)
        if chunks > 1:
            return entropy(out.hidden_states, half["embedder"]["input_embedding"].T, target, chunks)
        return optax.softmax_cross_entropy_with_integer_labels(out.logits.astype(jnp.float32), target).mean()

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
