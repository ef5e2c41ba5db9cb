"""KerasHub: Whisper small (its WhisperBackbone, 12 layers each side) learns to write down half minutes of speech, 448 words, the table of words for both ends; mixed_bfloat16, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def whisper(topology, chips, batch, frames=3000, words=448, shard=False, remat=False, donate=True):
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    backbone = keras_hub.models.WhisperBackbone(
        vocabulary_size=51865, num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072, num_mels=80, dropout=0.0, max_encoder_sequence_length=frames, max_decoder_sequence_length=words)
    if remat:
        wrap(backbone.encoder_transformer_layers)
        wrap_two(backbone.decoder_transformer_layers)
    logits = backbone.token_embedding(backbone.output["decoder_sequence_output"], reverse=True)
    model = keras.Model(backbone.input, logits)
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d)
    x = {"encoder_features": S("float32", frames, 80), "decoder_token_ids": S("int32", words), "decoder_padding_mask": S("int32", words)}
    optimizer = keras.optimizers.AdamW(1e-5, weight_decay=0.01, global_clipnorm=1.0)
    return training(model, optimizer, topology, chips, (x, S("int32", words)), donate, shard)


def wrap_two(layers):
    """jax.checkpoint around layers that are called with two sequences by name (no dropout: no seeds are drawn)."""
    def wrapped(layer, plain):
        def call(decoder_sequence, encoder_sequence=None, decoder_padding_mask=None, **rest):
            weights = layer.variables

            def inner(x, seen, mask, values):
                with keras.StatelessScope(state_mapping=list(zip(weights, values))):
                    return plain(x, encoder_sequence=seen, decoder_padding_mask=mask, **rest)

            return jax.checkpoint(inner)(decoder_sequence, encoder_sequence, decoder_padding_mask, [v.value for v in weights])
        return call
    for layer in layers:
        layer.call = wrapped(layer, layer.call)
