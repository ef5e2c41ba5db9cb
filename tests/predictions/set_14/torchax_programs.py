"""Hugging Face's Whisper (PyTorch) through torchax, an encoder and a decoder trained together."""

import jax
import optax
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def whisper(topology, chips, batch, letters, layers, dtype="float32", shard=False, remat=0, donate=True):
    config = transformers.WhisperConfig(
        d_model=768, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=12, decoder_attention_heads=12,
        encoder_ffn_dim=3072, decoder_ffn_dim=3072, dropout=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.WhisperForConditionalGeneration(config).to(getattr(torch, dtype))
    model.train(False)
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    S = lambda dtype, *shape: jax.ShapeDtypeStruct((batch, *shape), dtype, sharding=split)
    x, y = {"sound": S(dtype, 80, 3000), "letters": S("int32", letters)}, S("int32", letters)
    loss = lambda logits, y: torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))
    parts = lambda net: [*net.model.encoder.layers, *net.model.decoder.layers]
    call = lambda a: dict(input_features=a["sound"], decoder_input_ids=a["letters"], use_cache=False)
    return build(model, dtype, parts, call, loss, devices, x, y, optax.adamw(1e-4), donate, shard, remat)
