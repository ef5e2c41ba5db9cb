"""Hugging Face transformers (PyTorch) through torchax' make_train_step: BLOOM 560M (250880 words, ALiBi) learns the next words of texts of 1024, weights in float32, computing in bfloat16, AdamW, data parallel; 24 layers one after another."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build, lowered


def bloom(topology, chips, batch, length=1024, depth=24, shard=False, remat=0, donate=True):
    """bigscience/bloom-560m; its GELU with a gradient of its own is torch's approximation by tanh."""
    config = transformers.BloomConfig(vocab_size=250880, hidden_size=1024, n_layer=depth, n_head=16, hidden_dropout=0.0, attention_dropout=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.BloomForCausalLM(config)
    for block in model.transformer.h:
        block.mlp.gelu_impl = torch.nn.GELU(approximate="tanh")
    lowered(model)

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    x = {"input_ids": S(), "attention_mask": S()}
    return build(model, torch.float32, lambda net: net.transformer.h, dict, loss, devices, x, S(), optax.adamw(3e-5, b2=0.95, weight_decay=0.1), donate, shard, remat)
