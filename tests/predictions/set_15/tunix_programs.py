"""google-tunix: supervised training of its Gemma 2 with Lion, and its sampler's decoding loop of Llama 3.2, both divided by heads too."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh
from tunix_pieces import constrained, step


def gemma2(topology, shape, batch, length, remat="NONE", donate_model=False, constrain=True):
    from tunix.models.gemma import model as M
    from tunix.sft import peft_trainer as T

    devices = mesh(topology, shape, ("fsdp", "tp"))
    if constrain:
        constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.gemma2_2b(), remat_config=getattr(M.RematConfig, remat))
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))
    inputs = lambda: dict(
        input_tokens=S("int32", batch, length), input_mask=S("bool", batch, length), positions=S("int32", batch, length),
        attention_mask=S("bool", batch, length, length))
    return step(lambda: M.Gemma(config, rngs=nnx.Rngs(0)), optax.lion(1e-5), devices, inputs, T._default_loss_fn, False, donate_model)


def decode(topology, shape, batch, length, donate=True):
    """Sampler._decode_fn, greedy, in bfloat16."""
    from tunix.generate import sampler as G
    from tunix.models.llama3 import model as M

    devices = mesh(topology, shape, ("fsdp", "tp"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    config = M.ModelConfig.llama3p2_3b()
    with devices:
        net = nnx.eval_shape(lambda: M.Llama3(config, rngs=nnx.Rngs(0)))
    graph, params = nnx.split(net)
    place = lambda a, spec: jax.ShapeDtypeStruct(a.shape, "bfloat16", sharding=on(*spec) if isinstance(spec, P) else on())
    params = jax.tree.map(place, params, nnx.get_partition_spec(params))
    sampler = G.Sampler.__new__(G.Sampler)
    sampler._transformer_graphdef, sampler.eos_ids = graph, jnp.array([1])
    sampler.tokenizer = types.SimpleNamespace(pad_id=lambda: 0)
    sampler.cache_config = G.CacheConfig(length, config.num_layers, config.num_kv_heads, config.head_dim)
    cache = jax.eval_shape(lambda: G._init_cache(config.num_layers, length, batch, config.num_kv_heads, config.head_dim, jnp.bfloat16))
    cache = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on("fsdp", None, "tp") if a.ndim == 4 else on("fsdp")), cache)
    key = jax.eval_shape(lambda: jax.random.key(0))
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=on("fsdp") if s else on())
    state = G._SamplingState(
        decoding_step=S("int32"), token_buffer=S("int32", batch, length), positions=S("int32", batch, length), cache=cache, done=S("bool", batch),
        total_sampling_steps=S("int32"), logits_buffer=None, logprobs_buffer=None, forbidden_token_ids=None, seed=S(key.dtype),
        sampling_mode="greedy", num_input_tokens=1, temperature=0.0, sampling_parameters=None)

    def decode_fn(params, sampling_state):
        return sampler._decode_fn(params, sampling_state)

    classify = lambda path: "weight" if path.startswith("[0]") else "cache" if ".cache" in path else "input"
    return Program(decode_fn, (params, state), classify, (1,) if donate else ())
