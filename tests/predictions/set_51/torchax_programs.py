"""Hugging Face transformers (PyTorch) through torchax' make_train_step: CLIP ViT-L/14 learns from pictures of 224 with captions of 77 words, contrasted over the whole batch, weights in float32, computing in bfloat16, Lion, data parallel."""

import types

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build, lowered


class Contrast(torch.nn.Module):
    """Its similarity as the logits that a training step looks for."""

    def __init__(self, clip):
        super().__init__()
        self.clip = clip

    def forward(self, **inputs):
        return types.SimpleNamespace(logits=self.clip(**inputs).logits_per_image)


def clip(topology, chips, batch, moments="float32", shard=False, remat=False, donate=True):
    """openai/clip-vit-large-patch14."""
    text = dict(vocab_size=49408, hidden_size=768, intermediate_size=3072, projection_dim=768, num_hidden_layers=12, num_attention_heads=12, max_position_embeddings=77, eos_token_id=2)
    vision = dict(hidden_size=1024, intermediate_size=4096, projection_dim=768, num_hidden_layers=24, num_attention_heads=16, image_size=224, patch_size=14)
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=768, attn_implementation="eager")
    with torch.device("meta"):
        model = Contrast(transformers.CLIPModel(config))
    lowered(model)

    def loss(logits, y):
        f = torch.nn.functional.cross_entropy
        logits = logits.float()
        return (f(logits, y) + f(logits.T, y)) / 2

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=NamedSharding(devices, P("fsdp")))
    x = {"pixel_values": S("float32", 3, 224, 224), "input_ids": S("int32", 77)}

    def layers(net):
        inner = lambda part: part.encoder if hasattr(part, "encoder") else next(iter(part.children())).encoder
        return [*inner(net.clip.vision_model).layers, *inner(net.clip.text_model).layers]

    transform = optax.lion(1e-4, b2=0.98, mu_dtype=moments, weight_decay=0.2)
    return build(model, torch.float32, layers, dict, loss, devices, x, S("int32"), transform, donate, shard, 36 if remat else 0)
