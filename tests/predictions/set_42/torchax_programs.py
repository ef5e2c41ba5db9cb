"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Phi-4-mini's decoder (200064 words, a table for both ends, queries, keys and values in one matrix) pruned to 10 layers and healed by full fine-tuning, weights in bfloat16, fully sharded; layers one after another."""

import optax
import torch_names  # noqa: F401
import torch
import transformers

from torchax_pieces import by_its_head


def phi4mini(topology, chips, batch, length=1024, chunks=1, remat=0, donate=True):
    """microsoft/Phi-4-mini-instruct, 10 of its 32 layers."""
    config = transformers.Phi3Config(vocab_size=200064, hidden_size=3072, num_hidden_layers=10, num_attention_heads=24, num_key_value_heads=8, intermediate_size=8192, max_position_embeddings=4096, original_max_position_embeddings=4096, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.75}, tie_word_embeddings=True, attention_dropout=0.0, resid_pdrop=0.0, embd_pdrop=0.0, pad_token_id=199999, bos_token_id=199999, eos_token_id=199999, sliding_window=None, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Phi3Model(config).to(torch.bfloat16)
    return by_its_head(model, topology, chips, batch, length, chunks, remat, donate, optax.adamw(1e-5, b2=0.95, weight_decay=0.1))
