"""Keras' own ConvNeXt base (keras.applications, 36 blocks, depthwise convolutions of 7 by 7, dropped paths left out as there by default) learns ImageNet's 1000 classes on pictures of 224, float32, Keras' own train_step, AdamW, data parallel."""

import jax
import keras

from keras_pieces import training


def convnext(topology, chips, batch, side=224, classes=1000, policy="float32", shard=False, donate=True):
    keras.mixed_precision.set_global_policy(policy)
    model = keras.applications.ConvNeXtBase(weights=None, input_shape=(side, side, 3), classes=classes, classifier_activation=None)
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d)
    optimizer = keras.optimizers.AdamW(4e-3, weight_decay=0.05)
    return training(model, optimizer, topology, chips, (S("float32", side, side, 3), S("int32")), donate, shard)
