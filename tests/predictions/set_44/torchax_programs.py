"""Hugging Face transformers (PyTorch) through torchax' make_train_step: SmolLM3 3B (grouped queries, every fourth layer without positions, a table for both ends) pruned to 16 layers and healed by full fine-tuning, weights in bfloat16, fully sharded; layers one after another."""

import optax
import torch_names  # noqa: F401
import torch
import transformers

from torchax_pieces import by_its_head


def smollm3(topology, chips, batch, length=1024, depth=16, chunks=1, remat=0, donate=True):
    """HuggingFaceTB/SmolLM3-3B, 16 of its 36 layers."""
    config = transformers.SmolLM3Config(vocab_size=128256, hidden_size=2048, num_hidden_layers=depth, num_attention_heads=16, num_key_value_heads=4, intermediate_size=11008, max_position_embeddings=4096, rope_parameters={"rope_type": "default", "rope_theta": 5000000.0}, tie_word_embeddings=True, attention_dropout=0.0, use_cache=False, use_sliding_window=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.SmolLM3Model(config).to(torch.bfloat16)
    return by_its_head(model, topology, chips, batch, length, chunks, remat, donate, optax.adamw(2e-5, b2=0.95, weight_decay=0.1))
