"""Hugging Face transformers (PyTorch) through torchax: StableLM 2 1.6B, fully sharded, bfloat16, Lion; eager attention."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh  # noqa: F401
from torchax_pieces import build


def shifted(logits, y):
    logits, y = logits[:, :-1], y[:, 1:]
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def stablelm(topology, chips, batch, length=2048, dtype="bfloat16", remat=0, donate=True, shard=True):
    """stabilityai/stablelm-2-1_6b."""
    config = transformers.StableLmConfig(
        vocab_size=100352, hidden_size=2048, intermediate_size=5632, num_hidden_layers=24, num_attention_heads=32, num_key_value_heads=32,
        use_qkv_bias=True, use_cache=False, attn_implementation="eager", max_position_embeddings=4096)
    with torch.device("meta"):
        model = transformers.StableLmForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda a: dict(input_ids=a, use_cache=False), shifted, devices, x, x, optax.lion(1e-5), donate, shard, remat)
