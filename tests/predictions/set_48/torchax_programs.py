"""Hugging Face transformers (PyTorch) through torchax' make_train_step: ESM-2 650M is trained to find hidden residues of proteins of 1024, weights in float32, computing in bfloat16, AdamW, data parallel; 33 layers one after another."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build, lowered


def esm2(topology, chips, batch, length=1024, depth=33, shard=False, remat=0, donate=True):
    """facebook/esm2_t33_650M_UR50D."""
    config = transformers.EsmConfig(
        vocab_size=33, mask_token_id=32, pad_token_id=1, hidden_size=1280, num_hidden_layers=depth, num_attention_heads=20, intermediate_size=5120, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, max_position_embeddings=1026, layer_norm_eps=1e-5, position_embedding_type="rotary", emb_layer_norm_before=False, token_dropout=True,
        attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.EsmForMaskedLM(config)
    lowered(model)
    # The tables of the turning are made at construction: real ones, as nothing on `meta` has values.
    model.esm.rotary_embeddings = type(model.esm.rotary_embeddings)(config)

    def loss(logits, y):
        losses = torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y["labels"].reshape(-1), reduction="none")
        hidden = y["hidden"].reshape(-1)
        return (losses * hidden).sum() / hidden.sum()

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=NamedSharding(devices, P("fsdp")))
    x = {"input_ids": S("int32"), "attention_mask": S("int32"), "position_ids": S("int32")}
    y = {"labels": S("int32"), "hidden": S("float32")}
    return build(model, torch.float32, lambda net: net.esm.encoder.layer, dict, loss, devices, x, y, optax.adamw(4e-4, b2=0.98, weight_decay=0.01), donate, shard, remat)
