"""Google DeepMind's gemma: LoRA of Gemma 3 4B on text, as its notebook has it (gm.nn.LoRA, a masked cross-entropy, AdamW of the LoRA weights alone); weights whole on every device, data parallel."""

import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed


def lora(topology, chips, batch, length, rank=16, remat=False, donate=True):
    from gemma import gm, peft
    from gemma.gm.nn import _modules

    if remat:
        _modules.Block = nn.remat(_modules.Block)
    devices = mesh(topology, (chips,), ("devices",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("devices"))
    net = gm.nn.LoRA(rank=rank, model=gm.nn.Gemma3_4B(tokens="batch.input", text_only=True))
    params = jax.eval_shape(lambda: net.init(jax.random.PRNGKey(0), jnp.zeros((1, 8), "int32"))["params"])
    original, adapters = peft.split_params(params)
    original, adapters = placed(original, whole), placed(adapters, whole)
    transform = optax.adamw(1e-3)
    opt = placed(jax.eval_shape(transform.init, adapters), whole)

    def train_step(adapters, opt_state, original, batch):
        def loss_fn(adapters):
            logits = net.apply({"params": peft.merge_params(original, adapters)}, batch["input"]).logits.astype(jnp.float32)
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["target"])
            return (loss * batch["loss_mask"]).sum() / batch["loss_mask"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(adapters)
        updates, opt_state = transform.update(grads, opt_state, adapters)
        return optax.apply_updates(adapters, updates), opt_state, loss

    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, (adapters, opt, original, {"input": S("int32"), "target": S("int32"), "loss_mask": S("bool")}), classify, (0, 1) if donate else (), (shardings(adapters), shardings(opt), None))
