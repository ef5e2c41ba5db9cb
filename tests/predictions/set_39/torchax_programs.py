"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Qwen2 1.5B, fine-tuned, weights in bfloat16, fully sharded; TimeSformer (divided attention, 16 pictures a film at 224 pixels), fine-tuned to classify films, in float32 on one chip; layers one after another."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from torchax_pieces import build, lowered, words


def qwen2(topology, chips, batch, length=1024, remat=0, donate=True):
    """Qwen/Qwen2-1.5B."""
    config = transformers.Qwen2Config(vocab_size=151936, hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2, intermediate_size=8960, max_position_embeddings=4096, rope_theta=1000000.0, tie_word_embeddings=True, attention_dropout=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Qwen2ForCausalLM(config).to(torch.bfloat16)
    return words(model, "bfloat16", topology, chips, batch, length, optax.adamw(1e-5, b2=0.95, weight_decay=0.1), donate, True, remat)


def timesformer(topology, chips, batch, frames=16, side=224, compute="float32", remat=0, donate=True):
    """facebook/timesformer-base-finetuned-k400, with 16 pictures."""
    config = transformers.TimesformerConfig(image_size=side, patch_size=16, num_frames=frames, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, num_labels=400, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    with torch.device("meta"):
        model = transformers.TimesformerForVideoClassification(config)
    if compute == "bfloat16":
        lowered(model)
        embeddings = model.timesformer.embeddings
        plain = embeddings.forward
        embeddings.forward = lambda *a, **k: plain(*a, **k).to(torch.bfloat16)

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float(), y, label_smoothing=0.1)

    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, frames, 3, side, side), "float32", sharding=split)
    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    layers = lambda n: list(n.timesformer.encoder.layer)
    return build(model, "float32", layers, lambda a: dict(pixel_values=a), loss, devices, x, y, optax.adamw(5e-5, weight_decay=0.05), donate, False, remat)
