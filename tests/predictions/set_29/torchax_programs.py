"""Hugging Face transformers (PyTorch) through torchax: GPT-Neo 125M, its local layers with whole matrices, scores in float32."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def shifted(logits, y):
    return torch.nn.functional.cross_entropy(logits[:, :-1].float().reshape(-1, logits.shape[-1]), y[:, 1:].reshape(-1))


def gptneo(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True, shard=False):
    config = transformers.GPTNeoConfig(hidden_size=768, num_layers=12, num_heads=12, attention_types=[[["global", "local"], 6]], attn_implementation="eager", use_cache=False, attention_dropout=0.0, embed_dropout=0.0, resid_dropout=0.0)
    with torch.device("meta"):
        model = transformers.GPTNeoForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.transformer.h), lambda a: dict(input_ids=a), shifted, devices, x, x, optax.adamw(5e-5), donate, shard, remat)
