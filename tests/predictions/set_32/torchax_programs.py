"""torchax: OLMo 1B of transformers by its make_train_step, weights in bfloat16, fully sharded, layers one after another, no checkpoints."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def olmo(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True, shard=True):
    config = transformers.OlmoConfig(vocab_size=50304, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=16, max_position_embeddings=2048, tie_word_embeddings=True, attn_implementation="eager", use_cache=False)
    with torch.device("meta"):
        model = transformers.OlmoForCausalLM(config).to(getattr(torch, dtype))

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda ids: dict(input_ids=ids), loss, devices, S(), S(), optax.adamw(1e-4, b2=0.95), donate, shard, remat)
