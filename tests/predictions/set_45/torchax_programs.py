"""Hugging Face transformers (PyTorch) through torchax' make_train_step: SegFormer B2 learns the classes of streets' pixels (pictures of 768 by 768, cut of Cityscapes), in float32, AdamW, data parallel."""

import optax
import torch_names  # noqa: F401
import torch
import transformers
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def segformer(topology, chips, batch, side=768, labels=19, depths=(3, 4, 6, 3), remat=0, donate=True):
    """nvidia/segformer-b2-finetuned-cityscapes-1024-1024 at 768; the head's batch norm stays as it was learnt."""
    config = transformers.SegformerConfig(
        depths=list(depths), hidden_sizes=[64, 128, 320, 512], num_attention_heads=[1, 2, 5, 8], sr_ratios=[8, 4, 2, 1], decoder_hidden_size=768, num_labels=labels,
        drop_path_rate=0.0, classifier_dropout_prob=0.0)
    with torch.device("meta"):
        model = transformers.SegformerForSemanticSegmentation(config)
    model.decode_head.batch_norm.eval()

    def loss(logits, y):
        logits = torch.nn.functional.interpolate(logits, size=(side, side), mode="bilinear", align_corners=False)
        losses = torch.nn.functional.cross_entropy(logits.permute(0, 2, 3, 1).reshape(-1, labels), y.reshape(-1), reduction="none")
        return losses.mean()

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=NamedSharding(devices, P("fsdp")))
    layers = lambda net: [block for stage in net.segformer.stages for block in stage.blocks]
    return build(model, torch.float32, layers, lambda x: dict(pixel_values=x), loss, devices, S("float32", 3, side, side), S("int32", side, side), optax.adamw(6e-5, weight_decay=0.01), donate, False, remat)
