"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Gemma 2 2B with its soft caps, weights in bfloat16, fully sharded, layers one after another, no checkpoints."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def gemma2(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True, shard=True):
    config = transformers.Gemma2Config(vocab_size=256000, hidden_size=2304, intermediate_size=9216, num_hidden_layers=26, num_attention_heads=8, num_key_value_heads=4, head_dim=256, max_position_embeddings=8192, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, tie_word_embeddings=True, attn_implementation="eager", use_cache=False)
    with torch.device("meta"):
        model = transformers.Gemma2ForCausalLM(config).to(getattr(torch, dtype))

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda ids: dict(input_ids=ids), loss, devices, S(), S(), optax.adamw(1e-5, b2=0.95), donate, shard, remat)
