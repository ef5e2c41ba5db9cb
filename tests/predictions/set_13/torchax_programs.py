"""Hugging Face transformers (PyTorch) through torchax, its own make_train_step: Qwen 2 and ViT."""
import torch, jax, optax, transformers
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import mesh
from torchax_pieces import build


def qwen2(topology, chips, batch, length, depth, dtype="bfloat16", donate=True, shard=True, remat=0):
    config = transformers.Qwen2Config(hidden_size=1536, intermediate_size=8960, num_hidden_layers=depth, num_attention_heads=12, num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.Qwen2ForCausalLM(config).to(getattr(torch, dtype))
    m = mesh(topology, (chips,), ("fsdp",)); x = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(m, P("fsdp")))
    loss = lambda logits, y: torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))
    return build(model, dtype, lambda n: list(n.model.layers), lambda a: dict(input_ids=a, use_cache=False), loss, m, x, x, optax.adamw(1e-4), donate, shard, remat)


def vit(topology, chips, batch, dtype="float32", donate=True, shard=False, remat=0):
    config = transformers.ViTConfig(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, image_size=384, patch_size=16, num_labels=1000, attn_implementation="eager", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    with torch.device("meta"):
        model = transformers.ViTForImageClassification(config).to(getattr(torch, dtype))
    m = mesh(topology, (chips,), ("fsdp",)); B = NamedSharding(m, P("fsdp"))
    x, y = jax.ShapeDtypeStruct((batch, 3, 384, 384), dtype, sharding=B), jax.ShapeDtypeStruct((batch,), "int32", sharding=B)
    loss = lambda logits, y: torch.nn.functional.cross_entropy(logits.float(), y)
    return build(model, dtype, lambda n: list(n.vit.encoder.layer) if hasattr(n.vit, "encoder") else list(n.vit.layers), lambda a: dict(pixel_values=a), loss, m, x, y, optax.adamw(1e-4), donate, shard, remat)
