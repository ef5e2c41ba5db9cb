"""google-tunix: its Sampler's decoding loop (nucleus sampling) of its Llama 3.2 3B, by tensor parallelism."""

import dataclasses

from flax import nnx

from recipe import mesh
from tunix_pieces import constrained, decoding, halved


def sampler(topology, chips, batch, length, donate=True):
    from tunix.models.llama3 import model as M

    devices = mesh(topology, (1, chips), ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.llama3p2_3b(), shd_config=M.ShardingConfig.get_default_sharding(is_sampling=True))
    return decoding(lambda: halved(M.Llama3(config, rngs=nnx.Rngs(0))), config, devices, (batch, length), (128004, 128009), 0.6, donate)
