"""KerasHub: DeBERTa V3 base is fine-tuned to tell three relations of two sentences (512 pieces of a vocabulary of 128100), float32, dropout 0.1, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training
from keras_wrapping import wrap


def deberta(topology, chips, batch, length=512, depth=12, policy="float32", remat=False, shard=False, donate=True):
    keras.mixed_precision.set_global_policy(policy)
    backbone = keras_hub.models.DebertaV3Backbone(
        vocabulary_size=128100, num_layers=depth, num_heads=12, hidden_dim=768, intermediate_dim=3072, dropout=0.1, max_sequence_length=512, bucket_size=256)
    model = keras_hub.models.DebertaV3TextClassifier(backbone=backbone, num_classes=3, preprocessor=None, dropout=0.1)
    if remat:
        wrap(backbone.transformer_layers)
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "int32")
    optimizer = keras.optimizers.AdamW(2e-5, weight_decay=0.01, global_clipnorm=1.0)
    return training(model, optimizer, topology, chips, ({"token_ids": S(length), "padding_mask": S(length)}, S()), donate, shard)
