"""keras-hub: DenseNet-201 on ImageNet, float32, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def densenet(topology, chips, batch, size=224, policy="float32", donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.DenseNetBackbone(stackwise_num_repeats=[6, 12, 48, 32], image_shape=(size, size, 3), compression_ratio=0.5, growth_rate=32)
    model = keras_hub.models.DenseNetImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    data = (S("float32", batch, size, size, 3), S("int32", batch))
    return training(model, keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), topology, chips, data, donate, shard)
