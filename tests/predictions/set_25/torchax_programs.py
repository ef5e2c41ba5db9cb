"""Hugging Face transformers (PyTorch) through torchax: RoBERTa large on a classification, float32, data parallel; Qwen 3 1.7B, fully sharded, bfloat16; eager attention."""

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


def roberta(topology, chips, batch, length=512, dtype="float32", remat=0, donate=True, shard=False):
    """FacebookAI/roberta-large on MNLI; dropout off."""
    config = transformers.RobertaConfig(
        vocab_size=50265, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, max_position_embeddings=514, type_vocab_size=1,
        pad_token_id=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.RobertaForSequenceClassification(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=NamedSharding(devices, P("fsdp")))
    x = {"input_ids": S("int32", length), "attention_mask": S("int32", length)}
    return build(model, dtype, lambda n: list(n.roberta.encoder.layer), lambda a: dict(a), crossentropy, devices, x, S("int32"), optax.adamw(1e-5), donate, shard, remat)


def qwen3(topology, chips, batch, length=2048, dtype="bfloat16", remat=0, donate=True, shard=True):
    """Qwen/Qwen3-1.7B."""
    config = transformers.Qwen3Config(
        vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
        use_cache=False, tie_word_embeddings=True, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Qwen3ForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda a: dict(input_ids=a, use_cache=False), shifted, devices, x, x, optax.adamw(1e-5), donate, shard, remat)
