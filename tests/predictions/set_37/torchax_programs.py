"""Hugging Face transformers (PyTorch) through torchax' make_train_step: M2M100 418M, fine-tuned to translate, on one chip; ConvNeXt large at 384 pixels, fine-tuned to classify, data parallel; both in float32."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import largest_dimension, mesh, placed
from torchax_pieces import build, lowered


def m2m100(topology, chips, batch, source=128, target=128, compute="float32", remat=False, donate=True):
    """facebook/m2m100_418M."""
    config = transformers.M2M100Config(vocab_size=128112, d_model=1024, encoder_layers=12, decoder_layers=12, encoder_attention_heads=16, decoder_attention_heads=16, encoder_ffn_dim=4096, decoder_ffn_dim=4096, max_position_embeddings=1024, activation_function="relu", scale_embedding=True, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.M2M100ForConditionalGeneration(config)
    if compute == "bfloat16":
        lowered(model)
        for part in (model.model.encoder, model.model.decoder):
            plain = part.embed_tokens.forward
            part.embed_tokens.forward = lambda ids, plain=plain: plain(ids).to(torch.bfloat16)
            turns = part.embed_positions.forward
            part.embed_positions.forward = lambda *a, turns=turns, **k: turns(*a, **k).to(torch.bfloat16)

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1), label_smoothing=0.1)

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda n: jax.ShapeDtypeStruct((batch, n), "int32", sharding=NamedSharding(devices, P("fsdp")))
    layers = lambda n: list(n.model.encoder.layers) + list(n.model.decoder.layers)
    call = lambda a: dict(input_ids=a[0], decoder_input_ids=a[1])
    return build(model, "float32", layers, call, loss, devices, (S(source), S(target)), S(target), optax.adamw(3e-5), donate, False, 24 if remat else 0)


def convnext(topology, chips, batch, side=384, remat=False, donate=True, zero=False):
    """facebook/convnext-large-384."""
    config = transformers.ConvNextConfig(hidden_sizes=[192, 384, 768, 1536], depths=[3, 3, 27, 3], image_size=side, num_labels=1000, drop_path_rate=0.0)
    with torch.device("meta"):
        model = transformers.ConvNextForImageClassification(config)
    layers = lambda n: [layer for stage in n.convnext.encoder.stages for layer in stage.layers]
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    x = jax.ShapeDtypeStruct((batch, 3, side, side), "float32", sharding=split)
    y = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    loss = lambda logits, y: torch.nn.functional.cross_entropy(logits, y, label_smoothing=0.1)
    made = build(model, "float32", layers, lambda a: dict(pixel_values=a), loss, devices, x, y, optax.adamw(5e-5, weight_decay=0.05), donate, False, 36 if remat else 0)
    if zero:
        weights, buffers, state, x, y = made.args
        state = placed(state, largest_dimension(devices, "fsdp", 1 << 16))
        made.args, made.out_shardings = (weights, buffers, state, x, y), (*made.out_shardings[:2], shardings(state))
    return made
