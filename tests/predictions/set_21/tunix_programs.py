"""google-tunix: PPO's policy update of its Llama 3.2 1B, with the entropy's term, on its own trainer's step."""

import dataclasses

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, step


def ppo(topology, shape, batch, prompt, answer, remat="NONE", donate_model=False):
    from tunix.models.llama3 import model as M
    from tunix.rl import algo_core
    from tunix.rl.ppo.ppo_learner import PPOConfig, TrainExample

    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.llama3p2_1b(), remat_config=getattr(M.RematConfig, remat))
    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return {"train_example": TrainExample(
            prompt_ids=S("int32", prompt), prompt_mask=S("int32", prompt), completion_ids=S("int32", answer), completion_mask=S("int32", answer),
            advantages=S("float32", answer), ref_per_token_logps=None, old_per_token_logps=S("float32", answer),
            returns=S("float32", answer), old_values=S("float32", answer))}

    algorithm = PPOConfig(entropy_coef=0.01)
    loss = lambda model, train_example: algo_core.ppo_policy_loss_fn(model, train_example, algo_config=algorithm, pad_id=0, eos_id=1)
    return step(lambda: M.Llama3(config, rngs=nnx.Rngs(0)), optax.adamw(1e-6), devices, inputs, loss, True, donate_model)
