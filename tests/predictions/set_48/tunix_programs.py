"""google-tunix: GRPO (its own loss and its trainer's own step, the model not donated, as there) of its Qwen3 1.7B, weights in bfloat16, attention of each layer checkpointed (its RematConfig.BLOCK), fully sharded."""

import dataclasses

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import halved, step


def grpo(topology, shape, batch, prompt=256, answer=768, depth=28, remat=False, donate=False):
    """`batch` answers, of several to each question."""
    from tunix.models.qwen3 import model as M
    from tunix.rl import common
    from tunix.rl.grpo import grpo_learner as G

    devices = mesh(topology, shape, ("fsdp", "tp"))
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if remat:
        M.DecoderLayer.__call__ = nnx.remat(M.DecoderLayer.__call__)
    config = dataclasses.replace(M.ModelConfig.qwen3_1_7b(), num_layers=depth, remat_config=M.RematConfig.BLOCK)
    transform = optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 3e-6, 100, 1000), b2=0.99, weight_decay=0.1))
    algorithm = G.GRPOConfig(num_generations=8, num_iterations=1, beta=0.08, epsilon=0.2)
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        example = common.TrainExample(
            prompt_ids=S("int32", batch, prompt), prompt_mask=S("bool", batch, prompt), completion_ids=S("int32", batch, answer), completion_mask=S("int32", batch, answer),
            advantages=S("float32", batch), ref_per_token_logps=S("float32", batch, answer), old_per_token_logps=None)
        return {"train_example": example}

    def loss(model, train_example):
        return G.grpo_loss_fn(model, train_example, algorithm, 151643, 151645)

    build = lambda: halved(M.Qwen3(config, rngs=nnx.Rngs(params=0)))
    return step(build, transform, devices, inputs, loss, True, donate)
