"""Hugging Face transformers (PyTorch) through torchax: Cohere's Aya Expanse 8B, fully sharded; XLM-RoBERTa large on masked words with float32 weights."""

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


def cohere(topology, chips, batch, length=2048, dtype="bfloat16", remat=0, donate=True, shard=True):
    """CohereForAI/aya-expanse-8b: attention and MLP side by side, 256000 words, tied."""
    config = transformers.CohereConfig(
        vocab_size=256000, hidden_size=4096, intermediate_size=14336, logit_scale=0.125, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
        max_position_embeddings=8192, use_cache=False, tie_word_embeddings=True, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.CohereForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return build(model, dtype, lambda n: list(n.model.layers), lambda a: dict(input_ids=a, use_cache=False), shifted, devices, x, x, optax.lion(1e-5), donate, shard, remat)


def xlmr(topology, chips, batch, length=512, dtype="float32", remat=0, donate=True, shard=False):
    """FacebookAI/xlm-roberta-large on masked words; dropout off."""
    config = transformers.XLMRobertaConfig(
        vocab_size=250002, hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, max_position_embeddings=514, type_vocab_size=1,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.XLMRobertaForMaskedLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return build(model, dtype, lambda n: list(n.roberta.encoder.layer), lambda a: dict(input_ids=a), crossentropy, devices, x, x, optax.adamw(1e-4), donate, shard, remat)
