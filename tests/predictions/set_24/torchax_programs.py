"""Hugging Face transformers (PyTorch) through torchax: DistilBERT on masked words with float32 weights; Llama 3.2 1B, fully sharded, bfloat16, its default (sdpa) attention."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh  # noqa: F401
from torchax_pieces import build


def crossentropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def shifted(logits, y):
    return crossentropy(logits[:, :-1], y[:, 1:])


def distilbert(topology, chips, batch, length=512, dtype="float32", remat=0, donate=True, shard=False):
    """distilbert-base-uncased on masked words; dropout off."""
    config = transformers.DistilBertConfig(vocab_size=30522, dim=768, hidden_dim=3072, n_layers=6, n_heads=12, dropout=0.0, attention_dropout=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.DistilBertForMaskedLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.distilbert.transformer.layer), lambda a: dict(input_ids=a), crossentropy, devices, x, x, optax.adamw(1e-4), donate, shard, remat)


def llama(topology, chips, batch, length=2048, dtype="bfloat16", remat=0, donate=True, shard=True):
    """meta-llama/Llama-3.2-1B."""
    config = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64,
        max_position_embeddings=8192, use_cache=False, tie_word_embeddings=True, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda a: dict(input_ids=a, use_cache=False), shifted, devices, x, x, optax.adamw(1e-5), donate, shard, remat)
