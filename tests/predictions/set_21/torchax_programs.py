"""Hugging Face transformers (PyTorch) through torchax: StarCoder 2 3B; BART large, fine-tuned to summarize."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def entropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def starcoder2(topology, chips, batch, length, dtype="bfloat16", shard=True, remat=0, donate=True):
    """bigcode/starcoder2-3b."""
    config = transformers.Starcoder2Config(
        vocab_size=49152, hidden_size=3072, intermediate_size=12288, num_hidden_layers=30, num_attention_heads=24, num_key_value_heads=2,
        max_position_embeddings=16384, sliding_window=4096, use_bias=True, residual_dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0,
        use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Starcoder2ForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    call = lambda a: dict(input_ids=a, use_cache=False)
    return build(model, dtype, lambda n: list(n.model.layers), call, entropy, devices, x, x, optax.adamw(1e-4), donate, shard, remat)


def bart(topology, chips, batch, length=1024, target=256, dtype="float32", remat=0, donate=True, shard=False):
    """facebook/bart-large."""
    config = transformers.BartConfig(
        vocab_size=50265, d_model=1024, encoder_layers=12, decoder_layers=12, encoder_attention_heads=16, decoder_attention_heads=16, encoder_ffn_dim=4096,
        decoder_ffn_dim=4096, max_position_embeddings=1024, dropout=0.0, attention_dropout=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.BartForConditionalGeneration(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda n: jax.ShapeDtypeStruct((batch, n), "int32", sharding=NamedSharding(devices, P("fsdp")))
    blocks = lambda net: [*net.model.encoder.layers, *net.model.decoder.layers]
    call = lambda a: dict(input_ids=a["source"], decoder_input_ids=a["target"], use_cache=False)
    return build(model, dtype, blocks, call, entropy, devices, {"source": S(length), "target": S(target)}, S(target), optax.adamw(3e-5), donate, shard, remat)
