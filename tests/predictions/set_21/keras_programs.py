"""keras-hub: FNet large on masked words; Xception on ImageNet."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def fnet(topology, chips, batch, length=512, policy="float32", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.FNetBackbone(vocabulary_size=32000, num_layers=24, hidden_dim=1024, intermediate_dim=4096, max_sequence_length=length, num_segments=4)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "FNetEncoder"][:remat])
    model = keras_hub.models.FNetMaskedLM(backbone=backbone, preprocessor=None)
    data = ({"token_ids": S("int32", batch, length), "segment_ids": S("int32", batch, length), "mask_positions": S("int32", batch, 76)}, S("int32", batch, 76))
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, donate, shard)


def xception(topology, chips, batch, size=299, policy="float32", donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.XceptionBackbone(
        stackwise_conv_filters=[[32, 64], [128, 128], [256, 256], [728, 728], [728, 728, 728], [728, 728, 728], [728, 728, 728], [728, 728, 728], [728, 728, 728],
                                [728, 728, 728], [728, 728, 728], [728, 728, 728], [728, 1024], [1536, 2048]],
        stackwise_pooling=[False] + [True] * 3 + [False] * 8 + [True, False], image_shape=(size, size, 3))
    model = keras_hub.models.XceptionImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    data = (S("float32", batch, size, size, 3), S("int32", batch))
    return training(model, keras.optimizers.SGD(0.045, momentum=0.9), topology, chips, data, donate, shard)
