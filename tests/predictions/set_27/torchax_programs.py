"""Hugging Face transformers (PyTorch) through torchax: Granite 3.1 2B, fully sharded, bfloat16, eager attention."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh  # noqa: F401
from torchax_pieces import build


def shifted(logits, y):
    logits, y = logits[:, :-1].float(), y[:, 1:]
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def granite(topology, chips, batch, length=2048, dtype="bfloat16", remat=0, donate=True, shard=True):
    """ibm-granite/granite-3.1-2b-base."""
    config = transformers.GraniteConfig(
        vocab_size=49152, hidden_size=2048, intermediate_size=8192, num_hidden_layers=40, num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072,
        attention_multiplier=0.015625, embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22, attention_dropout=0.0,
        use_cache=False, tie_word_embeddings=True, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.GraniteForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda a: dict(input_ids=a, use_cache=False), shifted, devices, x, x, optax.adamw(1e-5), donate, shard, remat)
