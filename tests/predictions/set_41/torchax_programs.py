"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Pythia 1B (GPT-NeoX: attention and MLP side by side, a quarter of each head turned), trained further, weights in bfloat16, fully sharded; layers one after another."""

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


def pythia(topology, chips, batch, length=1024, remat=0, donate=True):
    """EleutherAI/pythia-1b."""
    config = transformers.GPTNeoXConfig(vocab_size=50304, hidden_size=2048, num_hidden_layers=16, num_attention_heads=8, intermediate_size=8192, max_position_embeddings=2048, rotary_pct=0.25, use_parallel_residual=True, tie_word_embeddings=False, hidden_dropout=0.0, attention_dropout=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.GPTNeoXForCausalLM(config).to(torch.bfloat16)
    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    layers = lambda n: list(n.gpt_neox.layers)
    return build(model, "bfloat16", layers, lambda ids: dict(input_ids=ids), entropy, devices, S(), S(), optax.adamw(1e-5, b2=0.95, weight_decay=0.1), donate, True, remat)
