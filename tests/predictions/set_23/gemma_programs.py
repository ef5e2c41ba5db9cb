"""The gemma library: Gemma 3 270M tuned wholly, whole on every device, long batches of short texts; a loss of masked words."""

import functools

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


def small(topology, chips, batch, length, remat=False, donate=True, dtype="bfloat16"):
    from gemma import gm
    from gemma.gm.nn import _modules as M

    if remat:
        M.Block = nn.remat(M.Block)
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = gm.nn.Gemma3_270M(dtype=getattr(jnp, dtype))
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "float32"), params), whole)
    transform = optax.adafactor(1e-3)
    state = placed(jax.eval_shape(transform.init, params), whole)

    def sft_step(params, opt_state, batch):
        def loss_fn(params):
            out = net.apply({"params": jax.tree.map(lambda a: a.astype(dtype), params)}, tokens=batch["input"])
            losses = optax.softmax_cross_entropy_with_integer_labels(out.logits.astype(jnp.float32), batch["target"])
            return (losses * batch["loss_mask"]).sum() / batch["loss_mask"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    data = {"input": S("int32", length), "target": S("int32", length), "loss_mask": S("float32", length)}
    return Program(sft_step, (params, state, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
