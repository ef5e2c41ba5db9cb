"""Hugging Face transformers (PyTorch) through torchax' make_train_step: ModernBERT large is trained further to find hidden words of texts of 1024, weights in float32, computing in bfloat16, AdamW, data parallel; 28 layers one after another, every third sees all, the others 128 words."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build, lowered


def modernbert(topology, chips, batch, length=1024, depth=28, shard=False, remat=0, donate=True):
    """answerdotai/ModernBERT-large."""
    config = transformers.ModernBertConfig(
        vocab_size=50368, hidden_size=1024, intermediate_size=2624, num_hidden_layers=depth, num_attention_heads=16, local_attention=128,
        max_position_embeddings=8192, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.ModernBertForMaskedLM(config)
    lowered(model)
    # The tables of the turning are made at construction: real ones, as nothing on `meta` has values.
    model.model.rotary_emb = type(model.model.rotary_emb)(config)

    def loss(logits, y):
        losses = torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y["labels"].reshape(-1), reduction="none")
        hidden = y["hidden"].reshape(-1)
        return (losses * hidden).sum() / hidden.sum()

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=NamedSharding(devices, P("fsdp")))
    x = {"input_ids": S("int32"), "attention_mask": S("int32"), "position_ids": S("int32")}
    y = {"labels": S("int32"), "hidden": S("float32")}
    return build(model, torch.float32, lambda net: net.model.layers, dict, loss, devices, x, y, optax.adamw(5e-5, b2=0.98, weight_decay=0.01), donate, shard, remat)
