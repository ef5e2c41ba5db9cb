"""KerasHub: BART large (12 layers each way) is fine-tuned to sum up articles (1024 words in, 128 out), mixed_bfloat16, dropout 0.1, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training
from keras_wrapping import wrap


def bart(topology, chips, batch, source=1024, target=128, remat=False, shard=False, donate=True):
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    backbone = keras_hub.models.BartBackbone(
        vocabulary_size=50265, num_layers=12, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.1, max_sequence_length=1024)
    model = keras_hub.models.BartSeq2SeqLM(backbone=backbone, preprocessor=None)
    if remat:
        wrap([*backbone.encoder_transformer_layers, *backbone.decoder_transformer_layers])
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "int32")
    x = {"encoder_token_ids": S(source), "encoder_padding_mask": S(source), "decoder_token_ids": S(target), "decoder_padding_mask": S(target)}
    optimizer = keras.optimizers.AdamW(3e-5, weight_decay=0.01, global_clipnorm=1.0)
    return training(model, optimizer, topology, chips, (x, S(target)), donate, shard)
