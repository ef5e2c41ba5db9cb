"""Hugging Face transformers (PyTorch) through torchax: ELECTRA large, fine-tuned to classify sentences, in float32, data parallel."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build


def classes(logits, y):
    return torch.nn.functional.cross_entropy(logits.float(), y)


def electra(topology, chips, batch, length=512, dtype="float32", remat=0, donate=True, shard=False):
    """google/electra-large-discriminator."""
    config = transformers.ElectraConfig(vocab_size=30522, embedding_size=1024, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_labels=3, attn_implementation="eager", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout=0.0)
    with torch.device("meta"):
        model = transformers.ElectraForSequenceClassification(config).to(getattr(torch, dtype))
    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.electra.encoder.layer), lambda a: dict(input_ids=a), classes, devices, S(batch, length), S(batch), optax.adamw(2e-5), donate, shard, remat)
