"""Hugging Face transformers (PyTorch) through torchax' make_train_step: XLM-RoBERTa large, trained further on masked words of a domain, in float32, data parallel; OPT 1.3B, fine-tuned, weights in bfloat16, fully sharded; layers one after another."""

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


def xlmr(topology, chips, batch, length=512, dtype="float32", remat=0, donate=True):
    """FacebookAI/xlm-roberta-large."""
    config = transformers.XLMRobertaConfig(vocab_size=250002, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.XLMRobertaForMaskedLM(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    layers = lambda n: list(n.roberta.encoder.layer)
    call = lambda a: dict(input_ids=a[0], attention_mask=a[1], position_ids=a[2])
    return build(model, dtype, layers, call, entropy, devices, (S(), S(), S()), S(), optax.adamw(1e-5, weight_decay=0.01), donate, False, remat)


def opt(topology, chips, batch, length=1024, dtype="bfloat16", remat=0, donate=True):
    """facebook/opt-1.3b."""
    config = transformers.OPTConfig(vocab_size=50272, hidden_size=2048, num_hidden_layers=24, ffn_dim=8192, num_attention_heads=32, max_position_embeddings=2048, word_embed_proj_dim=2048, do_layer_norm_before=True, dropout=0.0, attention_dropout=0.0, layerdrop=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.OPTForCausalLM(config).to(getattr(torch, dtype))
    model.eval()  # its dropouts are 0; training would draw a number for each layer to skip it
    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    layers = lambda n: list(n.model.decoder.layers)
    call = lambda a: dict(input_ids=a[0], attention_mask=a[1], position_ids=a[2])
    return build(model, dtype, layers, call, entropy, devices, (S(), S(), S()), S(), optax.adamw(1e-5, b2=0.95), donate, True, remat)
