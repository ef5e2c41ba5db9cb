"""Hugging Face transformers (PyTorch) through torchax by its own make_train_step: an audio spectrogram transformer, OLMo 2, ConvNeXt."""

import jax
import optax
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def entropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def ast(topology, chips, batch, dtype="float32", shard=False, remat=0, donate=True):
    """The base size, ten seconds of audio (1214 places)."""
    config = transformers.ASTConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=527, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.ASTForAudioClassification(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, 1024, 128), dtype, sharding=split)
    y = jax.ShapeDtypeStruct((batch, 527), "float32", sharding=split)
    loss = lambda logits, y: torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), y)
    blocks = lambda n: list(getattr(n.audio_spectrogram_transformer, "encoder", n.audio_spectrogram_transformer).layer if hasattr(n.audio_spectrogram_transformer, "encoder") else n.audio_spectrogram_transformer.layers)
    return build(model, dtype, blocks, lambda a: dict(input_values=a), loss, devices, x, y, optax.adam(1e-5), donate, shard, remat)


def olmo2(topology, chips, batch, length, depth, dtype="bfloat16", shard=True, remat=0, attention="sdpa", donate=True):
    """The widths of OLMo 2 1B."""
    config = transformers.Olmo2Config(
        vocab_size=100352, hidden_size=2048, intermediate_size=8192, num_hidden_layers=depth, num_attention_heads=16, num_key_value_heads=16,
        max_position_embeddings=4096, use_cache=False, attn_implementation=attention)
    with torch.device("meta"):
        model = transformers.Olmo2ForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    call = lambda a: dict(input_ids=a, use_cache=False)
    return build(model, dtype, lambda n: list(n.model.layers), call, entropy, devices, x, x, optax.adamw(1e-4), donate, shard, remat)


def convnext(topology, chips, batch, dtype="float32", shard=False, remat=0, donate=True):
    """ConvNeXt base."""
    config = transformers.ConvNextConfig(hidden_sizes=[128, 256, 512, 1024], depths=[3, 3, 27, 3], num_labels=1000, drop_path_rate=0.0)
    with torch.device("meta"):
        model = transformers.ConvNextForImageClassification(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, 3, 224, 224), dtype, sharding=split)
    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    blocks = lambda n: [block for stage in n.convnext.encoder.stages for block in stage.layers]
    return build(model, dtype, blocks, lambda a: dict(pixel_values=a), entropy, devices, x, y, optax.adamw(1e-3), donate, shard, remat)
