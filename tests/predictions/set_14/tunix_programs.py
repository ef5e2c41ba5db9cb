"""google-tunix: GRPO on its Qwen 3, and its sampler's decoding loop with the cache it carries."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, largest_dimension, mesh, placed
from tunix_pieces import constrained, step


def grpo(topology, shape, batch, prompt, answer, remat="NONE", constrain=False, donate_model=False):
    from tunix.models.qwen3 import model as M
    from tunix.rl import algo_core, common
    from tunix.rl.grpo.grpo_learner import GRPOConfig

    devices = mesh(topology, shape, ("fsdp", "tp"))
    if constrain:
        constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.qwen3_0p6b(), remat_config=getattr(M.RematConfig, remat))
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return {"train_example": common.TrainExample(
            prompt_ids=S("int32", batch, prompt), prompt_mask=S("int32", batch, prompt), completion_ids=S("int32", batch, answer),
            completion_mask=S("int32", batch, answer), advantages=S("float32", batch), ref_per_token_logps=S("float32", batch, answer),
            old_per_token_logps=S("float32", batch, answer))}

    algorithm = GRPOConfig()
    algorithm.temperature = 1.0  # as its learner sets it, from the rollout's configuration
    loss = lambda model, train_example: algo_core.grpo_loss_fn(model, train_example, algo_config=algorithm, pad_id=0, eos_id=1)
    return step(lambda: M.Qwen3(config, rngs=nnx.Rngs(0)), optax.adamw(1e-6), devices, inputs, loss, True, donate_model)


def decode(topology, chips, batch, length, donate=True):
    """Sampler._decode_fn, greedy: the whole answer in one while loop."""
    from tunix.generate import sampler as G
    from tunix.models.qwen3 import model as M

    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    config = M.ModelConfig.qwen3_1p7b()
    net = nnx.eval_shape(lambda: M.Qwen3(config, rngs=nnx.Rngs(0)))
    graph, params = nnx.split(net)
    sampler = G.Sampler.__new__(G.Sampler)
    sampler._transformer_graphdef, sampler.eos_ids = graph, jnp.array([1])
    sampler.tokenizer = types.SimpleNamespace(pad_id=lambda: 0)
    sampler.cache_config = G.CacheConfig(length, config.num_layers, config.num_kv_heads, config.head_dim)
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=split if s else whole)
    empty = lambda: nnx.merge(graph, jax.tree.map(lambda a: a, params)).init_cache(batch, length, config.dtype)
    cache, key = placed(jax.eval_shape(empty), split), jax.eval_shape(lambda: jax.random.key(0))
    state = G._SamplingState(
        decoding_step=S("int32"), token_buffer=S("int32", batch, length), positions=S("int32", batch, length), cache=cache, done=S("bool", batch),
        total_sampling_steps=S("int32"), logits_buffer=None, logprobs_buffer=None, forbidden_token_ids=None, seed=S(key.dtype),
        sampling_mode="greedy", num_input_tokens=1, temperature=0.0, sampling_parameters=None)
    half = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "bfloat16") if a.dtype == jnp.float32 else a, params)

    def decode_fn(params, sampling_state):
        return sampler._decode_fn(params, sampling_state)

    classify = lambda path: "weight" if path.startswith("[0]") else "cache" if ".cache" in path else "input"
    weights = placed(half, largest_dimension(devices, "fsdp", 1 << 16))
    return Program(decode_fn, (weights, state), classify, (1,) if donate else ())
