"""Hugging Face transformers (PyTorch) through torchax' make_train_step: SmolLM3 3B (grouped queries, every fourth layer without positions, a table for both ends) pruned to 16 layers and healed by full fine-tuning, weights in bfloat16, fully sharded; layers one after another."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import torchax
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P
from torchax import interop, train as T

from pieces import entropy, shardings
from recipe import Program, largest_dimension, mesh, placed
from torchax_pieces import NAMES, checkpointed


def smollm3(topology, chips, batch, length=1024, depth=16, chunks=1, remat=0, donate=True):
    """HuggingFaceTB/SmolLM3-3B, 16 of its 36 layers."""
    config = transformers.SmolLM3Config(vocab_size=128256, hidden_size=2048, num_hidden_layers=depth, num_attention_heads=16, num_key_value_heads=4, intermediate_size=11008, max_position_embeddings=4096, rope_parameters={"rope_type": "default", "rope_theta": 5000000.0}, tie_word_embeddings=True, attention_dropout=0.0, use_cache=False, use_sliding_window=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.SmolLM3Model(config).to(torch.bfloat16)
    env = torchax.default_env()
    for layer in list(model.layers)[:remat]:
        checkpointed(layer)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, where = NamedSharding(devices, P()), largest_dimension(devices, "fsdp", 1 << 16)
    abstract = lambda named: {name: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for name, a in named}
    weights, buffers = placed(abstract(model.named_parameters()), where), placed(abstract(model.named_buffers()), whole)
    transform = optax.adamw(2e-5, b2=0.95, weight_decay=0.1)
    state = placed(jax.eval_shape(transform.init, weights), where)

    def hidden_and_head(weights, buffers, ids):
        x = torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=dict(input_ids=ids)).last_hidden_state
        return x, weights["embed_tokens.weight"]

    def loss_fn(out, y):
        x, head = out
        if chunks > 1:
            return interop.call_jax(lambda x, head, y: entropy(x, head.T, y, chunks), x, head, y)
        logits = torch.nn.functional.linear(x, head)
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    viewed = interop.jax_view(T.make_train_step(hidden_and_head, loss_fn, transform))

    def train_step(weights, buffers, opt_state, args, label):
        with env:
            return viewed(weights, buffers, opt_state, args, label)

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (weights, buffers, state, S(), S()), classify, (0, 2) if donate else (), (None, shardings(weights), shardings(state)))
