"""keras-hub: GPT-2 large on words, half precision; SigLIP-less: Whisper is set 14's; the MiT-B3 backbone of SegFormer as a classifier."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def gpt2(topology, chips, batch, length=1024, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.GPT2Backbone(vocabulary_size=50257, num_layers=36, num_heads=20, hidden_dim=1280, intermediate_dim=5120, dropout=0.1, max_sequence_length=1024)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "TransformerDecoder"][:remat])
    model = keras_hub.models.GPT2CausalLM(backbone=backbone, preprocessor=None)
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("int32", batch, length)}, S("int32", batch, length))
    return training(model, keras.optimizers.AdamW(3e-4, weight_decay=0.1), topology, chips, data, donate, shard)


def mit(topology, chips, batch, size=512, policy="float32", donate=True, shard=False, remat=0):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.MiTBackbone(
        layerwise_depths=[3, 4, 18, 3], num_layers=4, image_shape=(size, size, 3), hidden_dims=[64, 128, 320, 512], layerwise_num_heads=[1, 2, 5, 8],
        layerwise_sr_ratios=[8, 4, 2, 1], max_drop_path_rate=0.1, layerwise_patch_sizes=[7, 3, 3, 3], layerwise_strides=[4, 2, 2, 2])
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "HierarchicalTransformerEncoder"][:remat])
    model = keras_hub.models.MiTImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    data = (S("float32", batch, size, size, 3), S("int32", batch))
    return training(model, keras.optimizers.Adam(1e-3), topology, chips, data, donate, shard)
