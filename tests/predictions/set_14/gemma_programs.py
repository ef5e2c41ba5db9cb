"""The gemma library's LoRA around its own Gemma 3: only the adapters are trained."""

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import entropy
from recipe import Program, largest_dimension, mesh, placed


def lora(topology, chips, batch, length, rank=16, remat=False, chunks=1, shard=False):
    from gemma import gm, peft
    from gemma.gm.nn import _modules as M

    if remat:
        M.Block = nn.remat(M.Block)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    net = gm.nn.LoRA(rank=rank, model=gm.nn.Gemma3_1B())
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    base, adapters = peft.split_params(params)
    base = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "bfloat16"), base)
    transform = optax.adamw(1e-4)
    base = placed(base, largest_dimension(devices, "fsdp", 1 << 16) if shard else whole)
    state = placed(jax.eval_shape(transform.init, adapters), whole)

    def loss_fn(adapters, base, tokens):
        params = peft.merge_params(base, adapters)
        target = jnp.roll(tokens, -1, 1)
        out = net.apply({"params": params}, tokens=tokens, return_hidden_states=chunks > 1)
        if chunks > 1:
            return entropy(out.hidden_states, params["embedder"]["input_embedding"].T, target, chunks)
        return optax.softmax_cross_entropy_with_integer_labels(out.logits.astype(jnp.float32), target).mean()

    def train_step(adapters, base, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(adapters, base, tokens)
        updates, opt_state = transform.update(grads, opt_state, adapters)
        return optax.apply_updates(adapters, updates), opt_state, loss

    args = (placed(adapters, whole), base, state, jax.ShapeDtypeStruct((batch, length), "int32", sharding=split))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, args, classify, (0, 2))
