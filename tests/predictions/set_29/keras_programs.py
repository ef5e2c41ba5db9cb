"""keras-hub: DistilBERT, masked words, in float32 or mixed precision, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def distilbert(topology, chips, batch, length=512, masks=80, policy="float32", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.DistilBertBackbone(vocabulary_size=30522, num_layers=6, num_heads=12, hidden_dim=768, intermediate_dim=3072, max_sequence_length=512)
    model = keras_hub.models.DistilBertMaskedLM(backbone=backbone, preprocessor=None)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "TransformerEncoder"][:remat])
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length), "mask_positions": S(batch, masks)}, S(batch, masks))
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, donate, shard)
