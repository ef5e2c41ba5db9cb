"""google-tunix: DPO by its own trainer's loss, of its Llama 3.2 3B, the reference's log probabilities with the batch."""

import dataclasses

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, step


def dpo(topology, shape, pairs, prompt, response, remat="NONE", donate_model=True):
    from tunix.models.llama3 import model as M
    from tunix.sft.dpo import dpo_trainer as D

    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.llama3p2_3b(), remat_config=getattr(M.RematConfig, remat))
    rows, total = 2 * pairs, prompt + response
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return dict(train_example=D.TrainExample(
            input_ids=S("int32", rows, total), positions=S("int32", rows, total), attention_mask=S("bool", rows, total, total),
            ref_chosen_logps=S("float32", pairs), ref_rejected_logps=S("float32", pairs), completion_mask=S("float32", rows, response), logits_to_keep=response))

    loss_fn = lambda model, train_example: D.dpo_loss_fn(model, train_example, algorithm="dpo", beta=0.1)

    def build():  # as its loader of checkpoints makes it
        net = M.Llama3(config, rngs=nnx.Rngs(0))
        nnx.update(net, jax.tree.map(lambda a: a.astype("bfloat16") if a.dtype == "float32" else a, nnx.state(net)))
        return net

    return step(build, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(5e-7)), devices, inputs, loss_fn, True, donate_model)
