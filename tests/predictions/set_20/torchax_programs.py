"""Hugging Face transformers (PyTorch) through torchax: Pythia 1.4B; VideoMAE large, fine-tuned on clips."""

import jax
import optax
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def entropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def pythia(topology, chips, batch, length, dtype="bfloat16", shard=True, remat=0, donate=True):
    """EleutherAI/pythia-1.4b."""
    config = transformers.GPTNeoXConfig(
        vocab_size=50304, hidden_size=2048, num_hidden_layers=24, num_attention_heads=16, intermediate_size=8192, max_position_embeddings=length,
        rotary_pct=0.25, use_parallel_residual=True, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.GPTNeoXForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    call = lambda a: dict(input_ids=a, use_cache=False)
    return build(model, dtype, lambda n: list(n.gpt_neox.layers), call, entropy, devices, x, x, optax.adamw(1e-4), donate, shard, remat)


def videomae(topology, chips, batch, frames=16, dtype="float32", shard=False, remat=0, donate=True):
    """MCG-NJU/videomae-large with 400 classes."""
    config = transformers.VideoMAEConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_frames=frames, num_labels=400, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.VideoMAEForVideoClassification(config).to(getattr(torch, dtype))
    at = model.videomae.embeddings
    if not isinstance(at.position_embeddings, torch.nn.Parameter):
        places = at.position_embeddings
        del at.position_embeddings
        at.register_buffer("position_embeddings", torch.empty(places.shape, dtype=getattr(torch, dtype), device="meta"))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, frames, 3, 224, 224), dtype, sharding=split)
    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    return build(model, dtype, lambda n: list(n.videomae.encoder.layer), lambda a: dict(pixel_values=a), entropy, devices, x, y, optax.adamw(1e-4), donate, shard, remat)
