"""Hugging Face transformers (PyTorch) through torchax, its own make_train_step: Llama, BERT and GPT-2."""

import jax
import optax
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def entropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def tokens(devices, batch, length):
    return jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))


def llama(topology, chips, batch, length, depth, dtype="bfloat16", shard=True, remat=0, donate=True):
    """The widths of Llama 3.2 3B."""
    config = transformers.LlamaConfig(
        hidden_size=3072, intermediate_size=8192, num_hidden_layers=depth, num_attention_heads=24, num_key_value_heads=8,
        vocab_size=128256, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = tokens(devices, batch, length)
    call = lambda a: dict(input_ids=a, use_cache=False)
    return build(model, dtype, lambda n: list(n.model.layers), call, entropy, devices, x, x, optax.adafactor(1e-4), donate, shard, remat)


def bert(topology, chips, batch, length, dtype="float32", shard=False, remat=0, donate=True):
    """BERT large, its masked language model."""
    config = transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, attn_implementation="eager",
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    with torch.device("meta"):
        model = transformers.BertForMaskedLM(config).to(getattr(torch, dtype))
    model.train(False)
    devices = mesh(topology, (chips,), ("fsdp",))
    x = tokens(devices, batch, length)
    call = lambda a: dict(input_ids=a, attention_mask=torch.ones_like(a), token_type_ids=torch.zeros_like(a))
    return build(model, dtype, lambda n: list(n.bert.encoder.layer), call, entropy, devices, x, x, optax.adamw(1e-4), donate, shard, remat)
