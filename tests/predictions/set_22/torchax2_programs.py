"""Hugging Face transformers (PyTorch) through torchax: Qwen3 8B reads long prompts: the cache and the last word's logits come out."""

import jax
import torch_names  # noqa: F401
import torch
import torchax
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P
from torchax import interop

from recipe import Program, largest_dimension, mesh, placed
from torchax_pieces import NAMES


def prefill(topology, chips, batch, length, dtype="bfloat16", shard=False):
    config = transformers.Qwen3Config(
        vocab_size=151936, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
        max_position_embeddings=40960, rope_theta=1000000.0, attn_implementation="sdpa")
    with torch.device("meta"):
        model = transformers.Qwen3ForCausalLM(config).to(getattr(torch, dtype))
    env = torchax.default_env()
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    abstract = lambda named: {n: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for n, a in named}
    weights = placed(abstract(model.named_parameters()), largest_dimension(devices, "data", 1 << 16) if shard else whole)
    buffers = placed(abstract(model.named_buffers()), whole)

    def run(weights, buffers, input_ids):
        out = torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=dict(input_ids=input_ids, use_cache=True, logits_to_keep=1))
        return out.logits[:, -1], [(layer.keys, layer.values) for layer in out.past_key_values.layers]

    viewed = interop.jax_view(run)

    def prefill_step(weights, buffers, input_ids):
        with env:
            return viewed(weights, buffers, input_ids)

    ids = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: "input" if path.startswith("[2]") else "weight"
    return Program(prefill_step, (weights, buffers, ids), classify)
