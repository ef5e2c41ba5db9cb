"""google-tunix: DPO (its own loss and its trainer's own step) of its Llama 3.2 3B, weights in bfloat16, AdamW, fully sharded, without checkpoints."""

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import halved, step


def dpo(topology, shape, pairs, prompt=256, answer=768, remat=False, donate=False):
    """`pairs` of answers, a good and a bad one to each prompt."""
    from tunix.models.llama3 import model as M
    from tunix.sft.dpo import dpo_trainer as D

    devices = mesh(topology, shape, ("fsdp", "tp"))
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if remat:
        M.DecoderLayer.__call__ = nnx.remat(M.DecoderLayer.__call__)
    config = M.ModelConfig.llama3_2_3b()
    transform = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 5e-7, 150, 2000), weight_decay=0.01)
    length, batch = prompt + answer, 2 * pairs
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        example = D.TrainExample(
            input_ids=S("int32", batch, length), positions=S("int32", batch, length), attention_mask=S("bool", batch, length, length),
            ref_chosen_logps=S("float32", pairs), ref_rejected_logps=S("float32", pairs), completion_mask=S("bool", batch, answer), logits_to_keep=answer)
        return {"train_example": example}

    def loss(model, train_example):
        return D.dpo_loss_fn(model, train_example, algorithm="dpo", beta=0.1, label_smoothing=0.0)

    return step(lambda: halved(M.Llama3(config, rngs=nnx.Rngs(params=0))), transform, devices, inputs, loss, True, donate)
