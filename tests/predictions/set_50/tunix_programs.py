"""google-tunix: DPO (its own loss and its trainer's own step, the model not donated, as there) of its Llama 3.2 3B, weights in bfloat16, what the reference says given, fully sharded."""

import dataclasses

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import halved, step


def dpo(topology, shape, batch, prompt=512, answer=512, depth=28, remat=False, donate=False):
    """`batch` pairs of answers."""
    from tunix.models.llama3 import model as M
    from tunix.sft.dpo import dpo_trainer as D

    devices = mesh(topology, shape, ("fsdp", "tp"))
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if remat:
        M.DecoderLayer.__call__ = nnx.remat(M.DecoderLayer.__call__)
    config = dataclasses.replace(M.ModelConfig.llama3_2_3b(), num_layers=depth)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 5e-7, 100, 1000), weight_decay=0.0))
    length = prompt + answer
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return D.TrainExample(
            input_ids=S("int32", 2 * batch, length), positions=S("int32", 2 * batch, length), attention_mask=S("bool", 2 * batch, length, length),
            ref_chosen_logps=S("float32", batch), ref_rejected_logps=S("float32", batch), completion_mask=S("int32", 2 * batch, answer), logits_to_keep=answer)

    def loss(model, train_example):
        return D.dpo_loss_fn(model, train_example, "dpo", 0.1, 0.0, 0.0)

    build = lambda: halved(M.Llama3(config, rngs=nnx.Rngs(params=0)))
    return step(build, transform, devices, lambda: {"train_example": inputs()}, loss, True, donate)
