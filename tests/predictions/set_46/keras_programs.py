"""KerasHub: DeBERTa V3 base (disentangled attention) as a classifier of texts of 512, mixed_bfloat16, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def deberta(topology, chips, batch, length=512, classes=3, shard=False, remat=False, donate=True):
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    backbone = keras_hub.models.DebertaV3Backbone(
        vocabulary_size=128100, num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072, dropout=0.1, max_sequence_length=length, bucket_size=256)
    model = keras_hub.models.DebertaV3TextClassifier(backbone, num_classes=classes)
    if remat:
        wrap(backbone.transformer_layers if hasattr(backbone, "transformer_layers") else [a for a in backbone.layers if "disentangled" in a.name])
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d)
    x = {"token_ids": S("int32", length), "padding_mask": S("int32", length)}
    optimizer = keras.optimizers.AdamW(2e-5, weight_decay=0.01, global_clipnorm=1.0)
    return training(model, optimizer, topology, chips, (x, S("int32")), donate, shard)
