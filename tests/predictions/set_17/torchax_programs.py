"""Hugging Face transformers (PyTorch) through torchax: Phi 3, Swin and ModernBERT by its own make_train_step."""

import jax
import optax
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def entropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def phi3(topology, chips, batch, length, depth, dtype="bfloat16", shard=True, remat=0, donate=True):
    """The widths of Phi 3 mini."""
    config = transformers.Phi3Config(
        vocab_size=32064, hidden_size=3072, intermediate_size=8192, num_hidden_layers=depth, num_attention_heads=32, num_key_value_heads=32,
        max_position_embeddings=4096, pad_token_id=0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Phi3ForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    call = lambda a: dict(input_ids=a, use_cache=False)
    return build(model, dtype, lambda n: list(n.model.layers), call, entropy, devices, x, x, optax.adafactor(1e-3), donate, shard, remat)


def swin(topology, chips, batch, dtype="float32", shard=False, remat=0, donate=True):
    """Swin B."""
    config = transformers.SwinConfig(
        image_size=224, patch_size=4, embed_dim=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32], window_size=7, num_labels=1000,
        drop_path_rate=0.0, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.SwinForImageClassification(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, 3, 224, 224), dtype, sharding=split)
    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    blocks = lambda n: [block for stage in n.swin.encoder.layers for block in stage.blocks]
    return build(model, dtype, blocks, lambda a: dict(pixel_values=a), entropy, devices, x, y, optax.adamw(1e-3), donate, shard, remat)


def electra(topology, chips, batch, length, dtype="float32", shard=False, remat=0, donate=True):
    """ELECTRA large's discriminator: one logit a token."""
    config = transformers.ElectraConfig(
        embedding_size=1024, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.ElectraForPreTraining(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    y = jax.ShapeDtypeStruct((batch, length), "float32", sharding=split)
    loss = lambda logits, y: torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), y)
    return build(model, dtype, lambda n: list(n.electra.encoder.layer), lambda a: dict(input_ids=a), loss, devices, x, y, optax.adamw(1e-4), donate, shard, remat)
