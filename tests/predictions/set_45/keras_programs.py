"""KerasHub: Whisper (its medium size, pruned to 8 and 8 layers) learns to write down speech, mixed_bfloat16, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training


def checkpointed(layer):
    """jax.checkpoint around a layer's call; its weights go in as arguments, what else it is given is closed over."""
    plain, weights = layer.call, list(layer.variables)

    def call(*args, **rest):
        first = None if args else next(iter(rest))
        x = args[0] if args else rest[first]

        def inner(x, values):
            with keras.StatelessScope(state_mapping=list(zip(weights, values))):
                return plain(x, *args[1:], **rest) if args else plain(**{**rest, first: x})

        return jax.checkpoint(inner)(x, [v.value for v in weights])

    layer.call = call


def whisper(topology, chips, batch, words=448, frames=3000, depth=8, shard=False, remat=False, donate=True):
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    backbone = keras_hub.models.WhisperBackbone(
        vocabulary_size=51865, num_layers=depth, num_heads=16, hidden_dim=1024, intermediate_dim=4096, num_mels=80, dropout=0.0,
        max_encoder_sequence_length=frames, max_decoder_sequence_length=words)
    logits = backbone.token_embedding(backbone.output["decoder_sequence_output"], reverse=True)
    model = keras.Model(backbone.input, logits)
    if remat:
        for layer in (*backbone.encoder_transformer_layers, *backbone.decoder_transformer_layers):
            checkpointed(layer)
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d)
    x = {"encoder_features": S("float32", frames, 80), "decoder_token_ids": S("int32", words), "decoder_padding_mask": S("int32", words)}
    optimizer = keras.optimizers.AdamW(1e-5, weight_decay=0.01, global_clipnorm=1.0)
    return training(model, optimizer, topology, chips, (x, S("int32", words), S("float32", words)), donate, shard)
