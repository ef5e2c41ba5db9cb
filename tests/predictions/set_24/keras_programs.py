"""keras-hub: Qwen 2.5 0.5B on words, half precision; Falcon RW 1B, half precision, sharded."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def language(model, layers, name, optimizer, topology, chips, batch, length, donate, shard, remat):
    chosen = [layer for layer in layers if type(layer).__name__ == name][:remat]
    wrap(chosen)
    for layer in chosen:  # Falcon's backbone gives its input by name
        layer.call = lambda inputs, call=layer.call, **rest: call(inputs, **rest)
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("int32", batch, length)}, S("int32", batch, length))
    return training(model, optimizer, topology, chips, data, donate, shard)


def qwen(topology, chips, batch, length=1024, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.QwenBackbone(vocabulary_size=151936, num_layers=24, num_query_heads=14, num_key_value_heads=2, hidden_dim=896, intermediate_dim=4864, rope_max_wavelength=1000000)
    model = keras_hub.models.QwenCausalLM(backbone=backbone, preprocessor=None)
    return language(model, backbone._flatten_layers(), "QwenTransformerDecoder", keras.optimizers.AdamW(1e-4), topology, chips, batch, length, donate, shard, remat)


def falcon(topology, chips, batch, length=1024, policy="mixed_bfloat16", remat=0, donate=True, shard=True):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.FalconBackbone(vocabulary_size=50304, num_layers=24, num_attention_heads=32, hidden_dim=2048, intermediate_dim=8192)
    model = keras_hub.models.FalconCausalLM(backbone=backbone, preprocessor=None)
    return language(model, backbone._flatten_layers(), "FalconTransformerDecoder", keras.optimizers.Adafactor(1e-3), topology, chips, batch, length, donate, shard, remat)
