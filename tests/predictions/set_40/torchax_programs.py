"""Hugging Face transformers (PyTorch) through torchax' make_train_step: MuRIL base (197285 words), trained further on masked words, in float32 on one chip; DINOv2 base at 518 pixels, fine-tuned whole to classify pictures, in float32, data parallel; layers one after another."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def muril(topology, chips, batch, length=512, remat=0, donate=True):
    """google/muril-base-cased."""
    config = transformers.BertConfig(vocab_size=197285, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, max_position_embeddings=512, type_vocab_size=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.BertForMaskedLM(config)

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    layers = lambda n: list(n.bert.encoder.layer)
    call = lambda a: dict(input_ids=a[0], attention_mask=a[1], token_type_ids=a[2], position_ids=a[3])
    return build(model, "float32", layers, call, loss, devices, (S(), S(), S(), S()), S(), optax.adamw(2e-5, weight_decay=0.01), donate, False, remat)


def dinov2(topology, chips, batch, side=518, classes=1000, remat=0, donate=True):
    """facebook/dinov2-base-imagenet1k-1-layer's body, fine-tuned whole."""
    config = transformers.Dinov2Config(image_size=side, patch_size=14, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, mlp_ratio=4, num_labels=classes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, drop_path_rate=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Dinov2ForImageClassification(config)
    embeddings = model.dinov2.embeddings
    embeddings.interpolate_pos_encoding = lambda *_: embeddings.position_embeddings  # as large as it was trained

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits, y, label_smoothing=0.1)

    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, 3, side, side), "float32", sharding=split)
    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    layers = lambda n: list(n.dinov2.encoder.layer)
    return build(model, "float32", layers, lambda a: dict(pixel_values=a), loss, devices, x, y, optax.adamw(2e-5, weight_decay=0.05), donate, False, remat)
