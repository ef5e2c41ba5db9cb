"""google-tunix: GRPO by its own trainer's step and loss, of its Qwen 2.5 1.5B; its Sampler's decoding loop (nucleus sampling) of its Qwen 3 8B, by tensor parallelism."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh
from pieces import shardings
from tunix_pieces import constrained, step


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

    def build():
        net = M.Qwen2(config, rngs=nnx.Rngs(0))
        nnx.update(net, jax.tree.map(lambda a: a.astype("bfloat16") if a.dtype == "float32" else a, nnx.state(net)))
        return net

    return step(build, optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(3e-6, b1=0.9, b2=0.99, weight_decay=0.1)), devices, inputs, loss_fn, True, donate_model)


class Named:
    """The configuration with what the trainer adds: the rollout's temperature."""

    def __init__(self, algo):
        self.algo = algo

    def __getattr__(self, name):
        return 0.9 if name == "temperature" else getattr(self.algo, name)


def sampler(topology, chips, batch, length, donate=True):
    from tunix.generate import sampler as T
    from tunix.models.qwen3 import model as M

    devices = mesh(topology, (1, chips), ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.qwen3_8b(), dtype=jnp.bfloat16, param_dtype=jnp.bfloat16, shd_config=M.ShardingConfig.get_default_sharding(is_sampling=True))
    devices.__enter__()

    def build():
        net = M.Qwen3(config, rngs=nnx.Rngs(0))
        nnx.update(net, jax.tree.map(lambda a: a.astype("bfloat16") if a.dtype == "float32" else a, nnx.state(net)))
        return net

    model = nnx.eval_shape(build)
    on = lambda *spec: NamedSharding(devices, P(*spec))

    class Tokens:
        pad_id = staticmethod(lambda: 151643)
        eos_id = staticmethod(lambda: 151645)

    made = object.__new__(T.Sampler)
    made.tokenizer, made.cache_config, made.eos_ids, made.image_processor = Tokens(), T.CacheConfig(length, config.num_layers, config.num_kv_heads, config.head_dim), jnp.array([151645]), None
    graph, state = nnx.split(model)
    made._transformer_graphdef = graph
    where = lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=on(*spec) if isinstance(spec, P) else on())
    params = jax.tree.map(where, state, nnx.get_partition_spec(state))
    cache = jax.eval_shape(lambda: model.init_cache(batch, length, jnp.bfloat16))
    cache = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on(None, None, "tp") if a.ndim == 4 else on()), cache)
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on())
    sampling = T._SamplingState(
        decoding_step=A("int32"), num_input_tokens=512, token_buffer=A("int32", batch, length), positions=A("int32", batch, length), logits_buffer=None, logprobs_buffer=A("float32", batch, length), cache=cache, done=A("bool", batch),
        total_sampling_steps=A("int32"), forbidden_token_ids=None, temperature=0.9, sampling_parameters={"top_p": 0.95, "top_k": 64}, seed=A("uint32", 2), sampling_mode="top_p", beam_search_sampling_state=None)

    def _decode_fn(params, sampling_state):
        return T.Sampler._decode_fn(made, params, sampling_state)

    classify = lambda path: "weight" if path.startswith("[0]") else "cache" if ".cache" in path else "input"
    return Program(_decode_fn, (params, sampling), classify, (1,) if donate else (), shardings(sampling))
