"""google-tunix: GRPO (its own loss and its trainer's own step, the model not donated, as there) of its Qwen3 1.7B, prompts of 512 and answers of 1536, weights in bfloat16, what reference and old policy say given, fully sharded."""

import dataclasses

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import mesh, placed
from tunix_pieces import halved, step


def grpo(topology, shape, batch, prompt=512, answer=1536, depth=28, remat=False, offload=False, donate=False):
    """`batch` answers."""
    from tunix.models.qwen3 import model as M
    from tunix.rl import common
    from tunix.rl.grpo import grpo_learner as G

    devices = mesh(topology, shape, ("fsdp", "tp"))
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if remat:
        M.DecoderLayer.__call__ = nnx.remat(M.DecoderLayer.__call__)
    config = dataclasses.replace(M.ModelConfig.qwen3_1_7b(), num_layers=depth)
    algorithm = G.GRPOConfig(num_generations=8, beta=0.04, epsilon=0.2)
    transform = optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 3e-6, 100, 1000), b1=0.9, b2=0.99, weight_decay=0.1))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return common.TrainExample(
            prompt_ids=S("int32", prompt), prompt_mask=S("int32", prompt), completion_ids=S("int32", answer), completion_mask=S("int32", answer), advantages=S("float32"),
            ref_per_token_logps=S("float32", answer), old_per_token_logps=S("float32", answer))

    def loss(model, train_example):
        return G.grpo_loss_fn(model, train_example, algorithm, 151643, 151645)

    build = lambda: halved(M.Qwen3(config, rngs=nnx.Rngs(params=0)))
    made = step(build, transform, devices, lambda: {"train_example": inputs()}, loss, True, donate)
    if offload:  # the moments are kept on the host and come for each step
        model, optimizer, data = made.args
        here = shardings(optimizer)
        away = lambda path, leaf: leaf.sharding.with_memory_kind("pinned_host") if leaf.size > 1 << 14 else leaf.sharding
        optimizer = placed(optimizer, away)
        there, plain = shardings(optimizer), made.step

        def _train_step(model, optimizer, inputs):
            net, opt, told = plain(model, jax.tree.map(jax.device_put, optimizer, here), inputs)
            return net, jax.tree.map(jax.device_put, opt, there), told

        made.step, made.args = _train_step, (model, optimizer, data)
        made.out_shardings = (made.out_shardings[0], there, None)
    return made
