"""keras-hub: DeBERTa v3 base (disentangled attention: words to words, words to places, places to words) fine-tuned to classify texts, with dropout, in float32 or mixed precision, data parallel; Keras' own training step."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def deberta(topology, chips, batch, length=512, policy="float32", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.DebertaV3Backbone(vocabulary_size=128100, num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072, dropout=0.1, max_sequence_length=512, bucket_size=256)
    model = keras_hub.models.DebertaV3TextClassifier(backbone, num_classes=5, preprocessor=None)
    wrap(backbone.transformer_layers[:remat])
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length)}, S(batch))
    return training(model, keras.optimizers.AdamW(2e-5, weight_decay=0.01), topology, chips, data, donate, shard)
