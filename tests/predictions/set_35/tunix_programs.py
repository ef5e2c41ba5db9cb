"""google-tunix: its Sampler's decoding loop (nucleus sampling) of its Gemma 3 4B, by tensor parallelism."""

import dataclasses

import jax.numpy as jnp
from flax import nnx

from recipe import mesh
from tunix_pieces import constrained, decoding, halved


def sampler(topology, chips, batch, length, donate=True):
    from tunix.models.gemma3 import model as M

    devices = mesh(topology, (1, chips), ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.gemma3_4b_it(), param_dtype=jnp.bfloat16, shd_config=M.ShardingConfig.get_default_sharding(is_sampling=True))
    return decoding(lambda: halved(M.Gemma3(config, rngs=nnx.Rngs(0))), config, devices, (batch, length), (0, 106), 0.8, donate)
