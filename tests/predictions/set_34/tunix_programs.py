"""google-tunix: GRPO by its own trainer's step and loss, of its Qwen 2.5 1.5B; its Sampler's decoding loop (nucleus sampling) of its Qwen 3 8B, by tensor parallelism."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, decoding, halved, step


def grpo(topology, shape, rows, prompt=256, response=768, remat="NONE", donate_model=True):
    from tunix.models.qwen2 import model as M
    from tunix.rl import algo_core, common
    from tunix.rl.grpo import grpo_learner as G

    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.qwen2p5_1p5b(), remat_config=getattr(M.RematConfig, remat), dtype=jnp.bfloat16, param_dtype=jnp.bfloat16)
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return dict(train_example=common.TrainExample(
            prompt_ids=S("int32", rows, prompt), prompt_mask=S("bool", rows, prompt), completion_ids=S("int32", rows, response), completion_mask=S("bool", rows, response),
            advantages=S("float32", rows), ref_per_token_logps=S("float32", rows, response), old_per_token_logps=S("float32", rows, response)))

    algo = G.GRPOConfig(num_generations=8, num_iterations=2, beta=0.04)
    loss_fn = lambda model, train_example: algo_core.grpo_loss_fn(model, train_example, algo_config=Named(algo), pad_id=151643, eos_id=151645)

    build = lambda: halved(M.Qwen2(config, rngs=nnx.Rngs(0)))
    return step(build, optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(3e-6, b1=0.9, b2=0.99, weight_decay=0.1)), devices, inputs, loss_fn, True, donate_model)


class Named:
    """The configuration with what the trainer adds: the rollout's temperature."""

    def __init__(self, algo):
        self.algo = algo

    def __getattr__(self, name):
        return 0.9 if name == "temperature" else getattr(self.algo, name)


def sampler(topology, chips, batch, length, donate=True):
    from tunix.models.qwen3 import model as M

    devices = mesh(topology, (1, chips), ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.qwen3_8b(), dtype=jnp.bfloat16, param_dtype=jnp.bfloat16, shd_config=M.ShardingConfig.get_default_sharding(is_sampling=True))
    return decoding(lambda: halved(M.Qwen3(config, rngs=nnx.Rngs(0))), config, devices, (batch, length), (151643, 151645), 0.9, donate)
