"""keras-hub: OPT 1.3B on words, half precision, its state divided."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def opt(topology, chips, batch, length=1024, policy="mixed_bfloat16", remat=0, donate=True, shard=True):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.OPTBackbone(vocabulary_size=50272, num_layers=24, num_heads=32, hidden_dim=2048, intermediate_dim=8192, dropout=0.1, max_sequence_length=2048)
    model = keras_hub.models.OPTCausalLM(backbone=backbone, preprocessor=None)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "TransformerDecoder"][:remat])
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("int32", batch, length)}, S("int32", batch, length))
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, donate, shard)
