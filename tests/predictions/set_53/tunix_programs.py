"""google-tunix: Qwen2.5 7B is fine-tuned by LoRA (nnx.LoRAParam, rank 16 at all seven matrices of each layer, put there by hand; its trainer's own step and loss, the model not donated, as there) on texts of 2048, in bfloat16, fully sharded, adapters whole; 28 layers one after another."""

import dataclasses

import flax
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import adapters, halved


class Adapted(nnx.Module):
    """A matrix and its adapter: what goes in is contracted over its last dimensions `inner`."""

    def __init__(self, base, inner, outer, rank, rngs):
        self.base = base
        self.a = nnx.LoRAParam(nnx.initializers.he_uniform()(rngs.params(), (*inner, rank)))
        self.b = nnx.LoRAParam(jnp.zeros((rank, *outer)))
        self.shape, self.inner = getattr(base, "shape", None), len(inner)

    def __call__(self, x):
        low = jnp.tensordot(x, self.a.value.astype(x.dtype), self.inner)
        return self.base(x) + 2.0 * jnp.tensordot(low, self.b.value.astype(x.dtype), 1)


def lora(topology, shape, batch, length=2048, depth=28, rank=16, remat=False, donate=False):
    from tunix.models.qwen2 import model as M

    devices = mesh(topology, shape, ("fsdp", "tp"))
    flax.config.update("flax_always_shard_variable", False)  # as its other models do
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if remat:
        M.DecoderLayer.__call__ = nnx.remat(M.DecoderLayer.__call__)
    config = dataclasses.replace(M.ModelConfig.qwen2_5_7b(), num_layers=depth)

    def build():
        rngs = nnx.Rngs(params=0)
        net = halved(M.Qwen2(config, rngs=rngs))
        width, hidden, size = config.embed_dim, config.hidden_dim, config.head_dim
        for layer in net.layers:
            for name, heads in (("q_proj", config.num_heads), ("k_proj", config.num_kv_heads), ("v_proj", config.num_kv_heads)):
                setattr(layer.attn, name, Adapted(getattr(layer.attn, name), (width,), (heads, size), rank, rngs))
            layer.attn.o_proj = Adapted(layer.attn.o_proj, (config.num_heads, size), (width,), rank, rngs)
            for name, inner, outer in (("gate_proj", width, hidden), ("up_proj", width, hidden), ("down_proj", hidden, width)):
                setattr(layer.mlp, name, Adapted(getattr(layer.mlp, name), (inner,), (outer,), rank, rngs))
        return net

    return adapters(build, optax.adamw(1e-4), devices, batch, length, donate)
