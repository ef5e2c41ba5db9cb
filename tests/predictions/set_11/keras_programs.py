"""KerasHub: a ResNet classifier, trained by Keras' own step."""

import jax
import jax.numpy as jnp
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def resnet(topology, chips, batch, size, policy="float32"):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 128, 256, 512],
        stackwise_num_blocks=[2, 2, 2, 2], stackwise_num_strides=[1, 2, 2, 2], block_type="bottleneck_block", image_shape=(size, size, 3))
    model = keras_hub.models.ResNetImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[])
    model.optimizer.build(model.trainable_variables)
    shapes = lambda variables: [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]
    state = (shapes(model.trainable_variables), shapes(model.non_trainable_variables),
             shapes(model.optimizer.variables), shapes(model.metrics_variables))
    data = (jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32), jax.ShapeDtypeStruct((batch,), jnp.int32))

    def rule(path):
        if path.startswith("[1]"):
            return "input"
        return {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[3:6], "other")  # [1]: the norms' running means

    return Program(model.train_step, (placed(state, whole), placed(data, split)), rule, (0,))
