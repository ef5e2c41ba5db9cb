"""Hugging Face transformers (PyTorch) through torchax' make_train_step: the Audio Spectrogram Transformer (MIT/ast-finetuned-audioset), fine-tuned whole on sounds of ten seconds, in float32, data parallel; layers one after another."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def ast(topology, chips, batch, frames=1024, classes=527, remat=0, donate=True):
    config = transformers.ASTConfig(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, patch_size=16, frequency_stride=10, time_stride=10, max_length=frames, num_mel_bins=128, num_labels=classes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.ASTForAudioClassification(config)

    def loss(logits, y):
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, y)

    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, frames, 128), "float32", sharding=split)
    y = jax.ShapeDtypeStruct((batch, classes), "float32", sharding=split)

    def layers(net):
        encoder = net.audio_spectrogram_transformer
        return list(encoder.encoder.layer if hasattr(encoder, "encoder") else encoder.layers)

    return build(model, "float32", layers, lambda a: dict(input_values=a), loss, devices, x, y, optax.adamw(5e-5, weight_decay=0.01), donate, False, remat)
