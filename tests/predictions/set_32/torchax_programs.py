"""torchax: OLMo 1B of transformers by its make_train_step, weights in bfloat16, fully sharded, layers one after another, no checkpoints."""

import optax
import torch_names  # noqa: F401
import torch
import transformers

from torchax_pieces import words


def olmo(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True, shard=True):
    config = transformers.OlmoConfig(vocab_size=50304, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=16, max_position_embeddings=2048, tie_word_embeddings=True, attn_implementation="eager", use_cache=False)
    with torch.device("meta"):
        model = transformers.OlmoForCausalLM(config).to(getattr(torch, dtype))
    return words(model, dtype, topology, chips, batch, length, optax.adamw(1e-4, b2=0.95), donate, shard, remat)
