"""Hugging Face transformers (PyTorch) through torchax: T5 and OPT by its own make_train_step; a prompt through Mistral."""

import jax
import optax
import torch
import torchax
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P
from torchax import interop

from recipe import Program, largest_dimension, mesh, placed
from torchax_pieces import NAMES, build


def entropy(logits, y):
    return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))


def t5(topology, chips, batch, length, target, dtype="float32", remat=0, donate=True, shard=False):
    """T5 v1.1 base."""
    config = transformers.T5Config(
        vocab_size=32128, d_model=768, d_kv=64, d_ff=2048, num_layers=12, num_heads=12, feed_forward_proj="gated-gelu",
        dropout_rate=0.0, use_cache=False, decoder_start_token_id=0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.T5ForConditionalGeneration(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda n: jax.ShapeDtypeStruct((batch, n), "int32", sharding=NamedSharding(devices, P("fsdp")))
    blocks = lambda net: [*net.encoder.block, *net.decoder.block]
    call = lambda a: dict(input_ids=a["source"], decoder_input_ids=a["target"], use_cache=False)
    return build(model, dtype, blocks, call, entropy, devices, {"source": S(length), "target": S(target)}, S(target), optax.adamw(1e-4), donate, shard, remat)


def opt(topology, chips, batch, length, depth, dtype="bfloat16", shard=True, remat=0, donate=True):
    """The widths of OPT 1.3B."""
    config = transformers.OPTConfig(
        hidden_size=2048, ffn_dim=8192, num_hidden_layers=depth, num_attention_heads=32, vocab_size=50272, word_embed_proj_dim=2048,
        max_position_embeddings=2048, dropout=0.0, attention_dropout=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.OPTForCausalLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    call = lambda a: dict(input_ids=a, use_cache=False)
    return build(model, dtype, lambda n: list(n.model.decoder.layers), call, entropy, devices, x, x, optax.adamw(1e-4), donate, shard, remat)


def mistral(topology, chips, batch, length, depth, shard=False):
    """The widths of Mistral 7B: a prompt's logits and its cache."""
    config = transformers.MistralConfig(num_hidden_layers=depth, attn_implementation="eager", sliding_window=None)
    with torch.device("meta"):
        model = transformers.MistralForCausalLM(config).to(torch.bfloat16)
    env = torchax.default_env()
    devices = mesh(topology, (chips,), ("fsdp",))
    whole = NamedSharding(devices, P())
    abstract = lambda named: {name: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for name, a in named}
    weights = placed(abstract(model.named_parameters()), largest_dimension(devices, "fsdp", 1 << 16) if shard else whole)
    buffers = placed(abstract(model.named_buffers()), whole)

    def forward(weights, buffers, tokens):
        out = torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=dict(input_ids=tokens, use_cache=True))
        cache = getattr(out, "cache", None) or out.past_key_values
        return out.logits[:, -1], [(layer.keys, layer.values) for layer in cache.layers]

    viewed = interop.jax_view(forward)

    def prefill(weights, buffers, tokens):
        with env:
            return viewed(weights, buffers, tokens)

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    classify = lambda path: "input" if path.startswith("[2]") else "weight"
    return Program(prefill, (weights, buffers, tokens), classify)
