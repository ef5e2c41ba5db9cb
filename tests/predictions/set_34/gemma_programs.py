"""Google DeepMind's gemma: fine-tuning of Gemma 3 1B, whole, by Adafactor, data parallel, as its notebook has it (its Transformer, a masked cross-entropy)."""

import gemma_names  # noqa: E402, F401
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def finetune(topology, chips, batch, length, remat=False, donate=True):
    from gemma import gm
    from gemma.gm.nn import _modules

    if remat:
        _modules.Block = nn.remat(_modules.Block)
    devices = mesh(topology, (chips,), ("devices",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("devices"))
    net = gm.nn.Gemma3_1B(tokens="batch.input")
    params = placed(jax.eval_shape(lambda: net.init(jax.random.PRNGKey(0), jnp.zeros((1, 8), "int32"))["params"]), whole)
    transform = optax.adafactor(1e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            logits = net.apply({"params": params}, batch["input"]).logits.astype(jnp.float32)
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["target"])
            return (loss * batch["loss_mask"]).sum() / batch["loss_mask"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=split)
    return Program(train_step, (params, opt, {"input": S("int32"), "target": S("int32"), "loss_mask": S("bool")}), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
