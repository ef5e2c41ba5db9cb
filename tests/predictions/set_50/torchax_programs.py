"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Pythia 1B (GPT-NeoX, eager attention) is trained on texts of 2048, weights in float32, computing in bfloat16, AdamW, data parallel; 16 layers one after another."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import largest_dimension, mesh, placed
from torchax_pieces import build, lowered


def pythia(topology, chips, batch, length=2048, depth=16, shard=False, zero=False, remat=0, donate=True):
    """EleutherAI/pythia-1b."""
    config = transformers.GPTNeoXConfig(
        vocab_size=50304, hidden_size=2048, num_hidden_layers=depth, num_attention_heads=8, intermediate_size=8192, max_position_embeddings=2048,
        use_parallel_residual=True, use_cache=False, tie_word_embeddings=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.GPTNeoXForCausalLM(config)
    lowered(model)
    table = model.gpt_neox.embed_in
    table.forward = lambda ids: torch.nn.functional.embedding(ids, table.weight).to(torch.bfloat16)

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    made = build(model, torch.float32, lambda net: net.gpt_neox.layers, lambda ids: dict(input_ids=ids, use_cache=False), loss, devices, S(), S(), optax.adamw(3e-4, b2=0.95, weight_decay=0.1), donate, shard, remat)
    if zero:
        weights, buffers, state, x, y = made.args
        state = placed(state, largest_dimension(devices, "fsdp", 1 << 16))
        made.args = (weights, buffers, state, x, y)
        made.out_shardings = (None, shardings(weights), shardings(state))
    return made
