"""keras-hub: RoFormer V2 large on masked words with Adafactor, half precision; CSPDarkNet 53 on ImageNet."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def roformer(topology, chips, batch, length=512, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.RoformerV2Backbone(
        vocabulary_size=12000, num_layers=24, num_heads=16, hidden_dim=1024, intermediate_dim=4096, head_size=64, dropout=0.1, max_wavelength=10000)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "RoformerV2Encoder"][:remat])
    model = keras_hub.models.RoformerV2MaskedLM(backbone=backbone, preprocessor=None)
    data = ({"token_ids": S("int32", batch, length), "segment_ids": S("int32", batch, length), "mask_positions": S("int32", batch, 80)}, S("int32", batch, 80))
    return training(model, keras.optimizers.Adafactor(1e-3), topology, chips, data, donate, shard)


def csp(topology, chips, batch, size=256, policy="float32", donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.CSPNetBackbone(
        stem_filters=32, stem_kernel_size=3, stem_strides=1, stackwise_depth=[1, 2, 8, 8, 4], stackwise_strides=[2] * 5,
        stackwise_num_filters=[64, 128, 256, 512, 1024], block_type="dark_block", stage_type="csp", bottle_ratio=[0.5] + [1.0] * 4,
        block_ratio=[1.0] + [0.5] * 4, expand_ratio=[2.0] + [1.0] * 4, down_growth=True, stem_padding="same", image_shape=(size, size, 3))
    model = keras_hub.models.CSPNetImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    data = (S("float32", batch, size, size, 3), S("int32", batch))
    return training(model, keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), topology, chips, data, donate, shard)
