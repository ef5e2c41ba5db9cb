"""Hugging Face transformers (PyTorch) through torchax: ModernBERT large, masked words, local and global layers, eager attention."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh  # noqa: F401
from torchax_pieces import build


def masked(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def modernbert(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True, shard=True):
    """answerdotai/ModernBERT-large."""
    config = transformers.ModernBertConfig(hidden_size=1024, intermediate_size=2624, num_hidden_layers=28, num_attention_heads=16, attn_implementation="eager", reference_compile=False)
    with torch.device("meta"):
        model = transformers.ModernBertForMaskedLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda a: dict(input_ids=a), masked, devices, x, x, optax.adamw(5e-5), donate, shard, remat)
