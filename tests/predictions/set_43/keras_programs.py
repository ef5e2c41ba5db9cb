"""Keras: a U-Net of residual blocks for street scenes (19 classes, 512 by 512), trained by Adam, data parallel; Keras' own training step."""

import jax
import keras

from keras_pieces import training


def unet(topology, chips, batch, side=512, widths=(48, 96, 192, 384, 768), classes=19, policy="float32", donate=True):
    keras.config.set_dtype_policy(policy)
    L = keras.layers

    def conv(x, width, size=3):
        return L.BatchNormalization()(L.Conv2D(width, size, padding="same", use_bias=False)(x))

    def block(x, width):
        short = conv(x, width, 1)
        x = L.Activation("relu")(conv(x, width))
        return L.Activation("relu")(L.Add()([conv(x, width), short]))

    x = inputs = L.Input((side, side, 3))
    skips = []
    for width in widths[:-1]:
        x = block(x, width)
        skips.append(x)
        x = L.MaxPooling2D(2)(x)
    x = block(x, widths[-1])
    for width, skip in zip(widths[-2::-1], skips[::-1]):
        x = L.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        x = block(L.Concatenate()([x, skip]), width)
    model = keras.Model(inputs, L.Conv2D(classes, 1, dtype="float32")(x))
    S = jax.ShapeDtypeStruct
    data = (S((batch, side, side, 3), "float32"), S((batch, side, side), "int32"))
    return training(model, keras.optimizers.Adam(1e-3), topology, chips, data, donate)
