"""Hugging Face transformers (PyTorch) through torchax: wav2vec 2.0 on frames' labels, BLOOM with ALiBi."""

import jax
import optax
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def entropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def wav2vec(topology, chips, batch, samples, dtype="float32", shard=False, remat=0, donate=True):
    """The widths of wav2vec 2.0 large (with layer norm in its convolutions), 504 labels of frames."""
    config = transformers.Wav2Vec2Config(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, feat_extract_norm="layer", conv_bias=True,
        do_stable_layer_norm=True, hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, layerdrop=0.0,
        mask_time_prob=0.0, mask_feature_prob=0.0, apply_spec_augment=False, num_labels=504, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Wav2Vec2ForAudioFrameClassification(config)
        conv = model.wav2vec2.encoder.pos_conv_embed.conv
        torch.nn.utils.parametrize.remove_parametrizations(conv, "weight")
        model = model.to(getattr(torch, dtype))
    frames = samples
    for k, s in zip(config.conv_kernel, config.conv_stride):
        frames = (frames - k) // s + 1
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, samples), dtype, sharding=split)
    y = jax.ShapeDtypeStruct((batch, frames), "int32", sharding=split)
    layers = lambda n: list(n.wav2vec2.encoder.layers)
    return build(model, dtype, layers, lambda a: dict(input_values=a), entropy, devices, x, y, optax.adamw(1e-4), donate, shard, remat)


def bloom(topology, chips, batch, length, depth=24, dtype="bfloat16", shard=True, remat=0, donate=True):
    """The widths of BLOOM 1.7B."""
    config = transformers.BloomConfig(
        vocab_size=250880, hidden_size=2048, n_layer=depth, n_head=16, use_cache=False, hidden_dropout=0.0, attention_dropout=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.BloomForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    call = lambda a: dict(input_ids=a, use_cache=False)
    return build(model, dtype, lambda n: list(n.transformer.h), call, entropy, devices, x, x, optax.rmsprop(1e-4), donate, shard, remat)
