"""keras-hub: DenseNet 121 as an image classifier of 1000 classes, trained from scratch, in float32 or mixed precision, data parallel; Keras' own training step."""

import jax
import keras
import keras_hub

from keras_pieces import training


def densenet(topology, chips, batch, side=224, policy="float32", donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.DenseNetBackbone(stackwise_num_repeats=[6, 12, 24, 16], compression_ratio=0.5, growth_rate=32, image_shape=(side, side, 3))
    x = keras.layers.GlobalAveragePooling2D(name="pool")(backbone.output)
    model = keras.Model(backbone.input, keras.layers.Dense(1000, dtype="float32", name="classes")(x))
    data = (jax.ShapeDtypeStruct((batch, side, side, 3), "float32"), jax.ShapeDtypeStruct((batch,), "int32"))
    return training(model, keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=1e-4), topology, chips, data, donate, shard)
