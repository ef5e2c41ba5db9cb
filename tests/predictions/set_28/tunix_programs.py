"""google-tunix: the policy's step of GRPO (its own loss) of its Qwen 3 1.7B, the KL term to a reference."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, step


def grpo(topology, shape, batch, prompt, answer, remat="NONE", donate_model=True, dtype="bfloat16"):
    from tunix.models.qwen3 import model as M
    from tunix.rl import algo_core
    from tunix.rl.grpo.grpo_learner import GRPOConfig, TrainExample

    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.qwen3_1p7b(), remat_config=getattr(M.RematConfig, remat), dtype=jnp.bfloat16, param_dtype=getattr(jnp, dtype))
    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return {"train_example": TrainExample(
            prompt_ids=S("int32", prompt), prompt_mask=S("bool", prompt), completion_ids=S("int32", answer), completion_mask=S("int32", answer),
            advantages=S("float32"), ref_per_token_logps=S("float32", answer), old_per_token_logps=S("float32", answer))}

    algorithm = GRPOConfig(num_generations=8, beta=0.04)
    algorithm.temperature = 1.0  # as the learner sets it, from its rollouts
    loss = lambda model, train_example: algo_core.grpo_loss_fn(model, train_example, algo_config=algorithm, pad_id=0, eos_id=1)
    transform = optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(3e-6, b1=0.9, b2=0.99, weight_decay=0.1))
    return step(lambda: M.Qwen3(config, rngs=nnx.Rngs(0)), transform, devices, inputs, loss, True, donate_model)
