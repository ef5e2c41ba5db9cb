"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Qwen2.5 0.5B (24 layers of 896, 14 heads of 64, eager attention, one table of 151936 words for both ends) is fine-tuned on texts of 1024, weights in float32, computing in bfloat16, AdamW, data parallel; layers one after another."""

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
from torchax_pieces import NAMES, checkpointed, lowered


def qwen(topology, chips, batch, length=1024, depth=24, chunks=1, shard=False, remat=False, donate=True):
    """Qwen/Qwen2.5-0.5B."""
    config = transformers.Qwen2Config(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=depth, num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768,
        use_cache=False, tie_word_embeddings=True, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Qwen2Model(config)
    lowered(model)
    table = model.embed_tokens
    table.forward = lambda ids: torch.nn.functional.embedding(ids, table.weight).to(torch.bfloat16)
    if remat:
        for layer in model.layers:
            checkpointed(layer)
    env = torchax.default_env()
    devices = mesh(topology, (chips,), ("fsdp",))
    whole = NamedSharding(devices, P())
    where = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    abstract = lambda named: {name: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for name, a in named}
    weights, buffers = placed(abstract(model.named_parameters()), where), placed(abstract(model.named_buffers()), whole)
    transform = optax.adamw(1e-5, weight_decay=0.01)
    state = placed(jax.eval_shape(transform.init, weights), where)

    def hidden_and_head(weights, buffers, ids):
        x = torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=dict(input_ids=ids, use_cache=False)).last_hidden_state
        return x.to(torch.bfloat16), weights["embed_tokens.weight"].to(torch.bfloat16)

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
