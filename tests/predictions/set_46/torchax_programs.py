"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Flan-T5 base is fine-tuned whole to sum up texts (1024 words in, 256 out), in float32, AdamW, data parallel."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def t5(topology, chips, batch, source=1024, target=256, depth=12, remat=0, donate=True):
    config = transformers.T5Config(
        vocab_size=32128, d_model=768, d_kv=64, d_ff=2048, num_layers=depth, num_decoder_layers=depth, num_heads=12, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False, dropout_rate=0.0, use_cache=False, decoder_start_token_id=0, pad_token_id=0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.T5ForConditionalGeneration(config)

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "int32", sharding=NamedSharding(devices, P("fsdp")))
    x = {"input_ids": S(source), "decoder_input_ids": S(target)}
    layers = lambda net: [*net.encoder.block, *net.decoder.block]
    return build(model, torch.float32, layers, lambda a: dict(input_ids=a["input_ids"], decoder_input_ids=a["decoder_input_ids"], use_cache=False), loss, devices, x, S(target), optax.adamw(1e-4, weight_decay=0.01), donate, False, remat)
