"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Gemma 2 2B with its soft caps, weights in bfloat16, fully sharded, layers one after another, no checkpoints."""

import optax
import torch_names  # noqa: F401
import torch
import transformers

from torchax_pieces import words


def gemma2(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True, shard=True):
    config = transformers.Gemma2Config(vocab_size=256000, hidden_size=2304, intermediate_size=9216, num_hidden_layers=26, num_attention_heads=8, num_key_value_heads=4, head_dim=256, max_position_embeddings=8192, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, tie_word_embeddings=True, attn_implementation="eager", use_cache=False)
    with torch.device("meta"):
        model = transformers.Gemma2ForCausalLM(config).to(getattr(torch, dtype))
    return words(model, dtype, topology, chips, batch, length, optax.adamw(1e-5, b2=0.95), donate, shard, remat)
