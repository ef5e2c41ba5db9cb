"""keras-hub: BART large, its Seq2SeqLM on articles and summaries, with dropout; Swin base as an image classifier; Keras' own training step, mixed_bfloat16, data parallel."""

import jax
import keras
import keras_hub
from keras.src.backend.common.global_state import set_global_attribute

from keras_pieces import training, wrap


def bart(topology, chips, batch, length=1024, summary=256, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    with keras.StatelessScope(initialize_variables=False):  # no values: only shapes are needed
        backbone = keras_hub.models.BartBackbone(vocabulary_size=50265, num_layers=12, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.1, max_sequence_length=1024)
    set_global_attribute("uninitialized_variables", [])
    model = keras_hub.models.BartSeq2SeqLM(backbone=backbone, preprocessor=None)
    if remat:
        wrap(backbone.encoder_transformer_layers + backbone.decoder_transformer_layers)
        for layer in backbone.decoder_transformer_layers:
            plain = layer.call
            layer.call = lambda decoder_sequence, plain=plain, **rest: plain(decoder_sequence, **rest)
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    x = {"encoder_token_ids": S(batch, length), "encoder_padding_mask": S(batch, length), "decoder_token_ids": S(batch, summary), "decoder_padding_mask": S(batch, summary)}
    data = (x, S(batch, summary), jax.ShapeDtypeStruct((batch, summary), "float32"))
    return training(model, keras.optimizers.AdamW(3e-5, weight_decay=0.01, global_clipnorm=1.0), topology, chips, data, donate, shard)


def swin(topology, chips, batch, side=224, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.SwinTransformerBackbone(image_shape=(side, side, 3), embed_dim=128, depths=(2, 2, 18, 2), num_heads=(4, 8, 16, 32), window_size=7, drop_path=0.5)
    x = keras.layers.GlobalAveragePooling1D()(backbone.output)
    model = keras.Model(backbone.input, keras.layers.Dense(1000, dtype="float32", name="predictions")(x))
    wrap([block for stage in backbone.stages for block in stage.blocks][:remat])
    data = (jax.ShapeDtypeStruct((batch, side, side, 3), "float32"), jax.ShapeDtypeStruct((batch,), "int32"))
    return training(model, keras.optimizers.AdamW(1e-3, weight_decay=0.05), topology, chips, data, donate, shard)
