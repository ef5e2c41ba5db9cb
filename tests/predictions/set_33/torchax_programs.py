"""Hugging Face transformers (PyTorch) through torchax' make_train_step: VideoMAE base, fine-tuned on actions, in float32, data parallel; StarCoder2 3B, weights in bfloat16, fully sharded."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build, words


def videomae(topology, chips, batch, frames=16, side=224, dtype="float32", remat=0, donate=True, shard=False):
    config = transformers.VideoMAEConfig(image_size=side, num_frames=frames, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, num_labels=400, use_mean_pooling=True, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.VideoMAEForVideoClassification(config)
    start = model.videomae.embeddings
    table = start.position_embeddings.to("meta")
    del start.position_embeddings
    start.register_buffer("position_embeddings", table)
    model = model.to(getattr(torch, dtype))

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float(), y, label_smoothing=0.1)

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P("fsdp")))
    to = (lambda a: a.to(torch.bfloat16)) if dtype == "bfloat16" else (lambda a: a)
    return build(model, dtype, lambda n: list(n.videomae.encoder.layer), lambda a: dict(pixel_values=to(a)), loss, devices, S("float32", batch, frames, 3, side, side), S("int32", batch), optax.adamw(5e-5, weight_decay=0.05), donate, shard, remat)


def starcoder(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True, shard=True):
    config = transformers.Starcoder2Config(vocab_size=49152, hidden_size=3072, intermediate_size=12288, num_hidden_layers=30, num_attention_heads=24, num_key_value_heads=2, max_position_embeddings=16384, sliding_window=4096, rope_parameters={"rope_type": "default", "rope_theta": 999999.4}, tie_word_embeddings=True, attn_implementation="eager", use_cache=False, residual_dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0)
    with torch.device("meta"):
        model = transformers.Starcoder2ForCausalLM(config).to(getattr(torch, dtype))
    return words(model, dtype, topology, chips, batch, length, optax.adamw(2e-5, b2=0.95), donate, shard, remat)
