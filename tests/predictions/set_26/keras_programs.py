"""keras-hub: DeBERTa V3 base on a classification, half precision, on one chip."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def deberta(topology, chips, batch, length=512, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.DebertaV3Backbone(vocabulary_size=128100, num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072, dropout=0.1, max_sequence_length=512, bucket_size=256)
    model = keras_hub.models.DebertaV3TextClassifier(backbone=backbone, num_classes=3, preprocessor=None)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "DisentangledAttentionEncoder"][:remat])
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("int32", batch, length)}, S("int32", batch))
    return training(model, keras.optimizers.AdamW(2e-5), topology, chips, data, donate, shard)
