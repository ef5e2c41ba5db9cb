"""The gemma library: a reward model of its Gemma 3 1B by Bradley and Terry: a head on the last hidden state, no logits."""

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def reward(topology, chips, pairs, length, remat=False, shard=True, dtype="float32", micro=1, donate=True, model="Gemma3_1B"):
    from gemma import gm
    from gemma.gm.nn import _modules as M

    if remat:
        plain, kept = M.Block, nn.remat(M.Block)
        if remat is not True:
            M.Block = lambda *a, **k: (kept if int(k["name"].split("_")[-1]) < remat else plain)(*a, **k)
        else:
            M.Block = kept
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    net = getattr(gm.nn, model)(dtype=jnp.bfloat16)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = {"gemma": params, "reward": {"kernel": jax.ShapeDtypeStruct((net.config.embed_dim, 1), dtype)}}
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, dtype), params)
    transform = optax.adafactor(1e-5, multiply_by_parameter_scale=False, momentum=0.9)
    cut = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    params = placed(params, cut)
    state = placed(jax.eval_shape(transform.init, params), cut)

    def loss_fn(params, chosen, rejected, ends):
        tokens = jax.lax.with_sharding_constraint(jnp.stack([chosen, rejected], 1).reshape(-1, length), split)
        hidden = net.apply({"params": params["gemma"]}, tokens=tokens, return_hidden_states=True).hidden_states
        last = jnp.take_along_axis(hidden, ends.reshape(-1)[:, None, None], 1)[:, 0].astype(jnp.float32)
        score = (last @ params["reward"]["kernel"].astype(jnp.float32)).reshape(-1, 2)
        return -jax.nn.log_sigmoid(score[:, 0] - score[:, 1]).mean()

    def gradients(params, *data):
        if micro == 1:
            return jax.value_and_grad(loss_fn)(params, *data)
        parts = lambda a: jax.lax.with_sharding_constraint(
            a.reshape(chips, micro, -1, *a.shape[1:]).swapaxes(0, 1).reshape(micro, -1, *a.shape[1:]), NamedSharding(devices, P(None, "fsdp")))

        def one(total, part):
            loss, g = jax.value_and_grad(loss_fn)(params, *part)
            return jax.tree.map(jnp.add, total, g), loss

        g, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), jax.tree.map(parts, data))
        return losses.mean(), g

    def train_step(params, opt_state, chosen, rejected, ends):
        loss, grads = gradients(params, chosen, rejected, ends)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((pairs, *s), "int32", sharding=split)
    return Program(train_step, (params, state, S(length), S(length), S(2)), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
