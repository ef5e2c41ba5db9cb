"""keras-hub: ESM2 on masked proteins; DeepLab V3+ with a ResNet 50 on pixels."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def esm(topology, chips, batch, length, layers=33, policy="float32", remat=0, donate=True, shard=False):
    """The widths of ESM2 650M; every residue is predicted."""
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.ESMBackbone(
        vocabulary_size=33, num_layers=layers, num_heads=20, hidden_dim=1280, intermediate_dim=5120, dropout=0.0, use_pre_layer_norm=True, max_sequence_length=length)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "ESMEncoder"][:remat])
    out = keras.layers.Dense(33, name="residues")(backbone.output)
    model = keras.Model(backbone.inputs, out)
    data = ({"token_ids": S("int32", batch, length)} if isinstance(backbone.input, dict) else S("int32", batch, length), S("int32", batch, length))
    return training(model, keras.optimizers.AdamW(4e-4), topology, chips, data, donate, shard)


def deeplab(topology, chips, batch, size=512, policy="float32", donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    encoder = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 128, 256, 512], stackwise_num_blocks=[3, 4, 6, 3],
        stackwise_num_strides=[1, 2, 2, 2], block_type="bottleneck_block", image_shape=(size, size, 3))
    backbone = keras_hub.models.DeepLabV3Backbone(
        image_encoder=encoder, low_level_feature_key="P2", spatial_pyramid_pooling_key="P4", upsampling_size=4, dilation_rates=[6, 12, 18], image_shape=(size, size, 3))
    model = keras_hub.models.DeepLabV3ImageSegmenter(backbone=backbone, num_classes=21, preprocessor=None)
    data = (S("float32", batch, size, size, 3), S("int32", batch, size, size))
    return training(model, keras.optimizers.SGD(0.01, momentum=0.9), topology, chips, data, donate, shard)
