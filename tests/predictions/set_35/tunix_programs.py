"""google-tunix: its Sampler's decoding loop (nucleus sampling) of its Gemma 3 4B, by tensor parallelism."""

import dataclasses

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh
from pieces import shardings
from tunix_pieces import constrained


def sampler(topology, chips, batch, length, donate=True):
    from tunix.generate import sampler as T
    from tunix.models.gemma3 import model as M

    devices = mesh(topology, (1, chips), ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.gemma3_4b_it(), param_dtype=jnp.bfloat16, shd_config=M.ShardingConfig.get_default_sharding(is_sampling=True))
    devices.__enter__()

    def build():
        net = M.Gemma3(config, rngs=nnx.Rngs(0))
        nnx.update(net, jax.tree.map(lambda a: a.astype("bfloat16") if a.dtype == "float32" else a, nnx.state(net)))
        return net

    model = nnx.eval_shape(build)
    on = lambda *spec: NamedSharding(devices, P(*spec))

    class Tokens:
        pad_id = staticmethod(lambda: 0)
        eos_id = staticmethod(lambda: 106)

    made = object.__new__(T.Sampler)
    made.tokenizer, made.cache_config, made.eos_ids, made.image_processor = Tokens(), T.CacheConfig(length, config.num_layers, config.num_kv_heads, config.head_dim), jnp.array([106]), None
    graph, state = nnx.split(model)
    made._transformer_graphdef = graph
    where = lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=on(*spec) if isinstance(spec, P) else on())
    params = jax.tree.map(where, state, nnx.get_partition_spec(state))
    make = getattr(model, "init_cache", None) or (lambda b, n, dtype: T._init_cache(config.num_layers, n, b, config.num_kv_heads, config.head_dim, dtype))
    cache = jax.eval_shape(lambda: make(batch, length, jnp.bfloat16))
    cache = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on(None, None, "tp") if a.ndim == 4 else on()), cache)
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on())
    sampling = T._SamplingState(
        decoding_step=A("int32"), num_input_tokens=512, token_buffer=A("int32", batch, length), positions=A("int32", batch, length), logits_buffer=None, logprobs_buffer=A("float32", batch, length), cache=cache, done=A("bool", batch),
        total_sampling_steps=A("int32"), forbidden_token_ids=None, temperature=0.8, sampling_parameters={"top_p": 0.95, "top_k": 64}, seed=A("uint32", 2), sampling_mode="top_p", beam_search_sampling_state=None)

    def _decode_fn(params, sampling_state):
        return T.Sampler._decode_fn(made, params, sampling_state)

    classify = lambda path: "weight" if path.startswith("[0]") else "cache" if ".cache" in path else "input"
    return Program(_decode_fn, (params, sampling), classify, (1,) if donate else (), shardings(sampling))
