"""Hugging Face transformers (PyTorch) through torchax' make_train_step: ViT-L/16 on pictures of 384 (577 places of 1024, 24 layers one after another, eager attention) is fine-tuned on ImageNet's 1000 classes, float32, AdamW, data parallel."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build, lowered


def vit(topology, chips, batch, side=384, depth=24, half=False, remat=False, shard=False, donate=True):
    """google/vit-large-patch16-384."""
    config = transformers.ViTConfig(
        hidden_size=1024, num_hidden_layers=depth, num_attention_heads=16, intermediate_size=4096, image_size=side, patch_size=16, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, num_labels=1000, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.ViTForImageClassification(config)
    model.eval()
    if half:
        lowered(model)

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float(), y)

    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    pictures, labels = jax.ShapeDtypeStruct((batch, 3, side, side), "float32", sharding=split), jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    layers = lambda net: list(next(m for m in net.modules() if isinstance(m, torch.nn.ModuleList)))
    transform = optax.adamw(1e-5, weight_decay=0.01)
    return build(model, torch.float32, layers, lambda x: dict(pixel_values=x), loss, devices, pictures, labels, transform, donate, shard, depth if remat else 0)
