"""KerasHub: SegFormer B2 (MiT B2, decoder of 768) learns ADE20K's 150 classes on pictures of 512, float32, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def segformer(topology, chips, batch, side=512, classes=150, policy="float32", remat=False, donate=True):
    keras.mixed_precision.set_global_policy(policy)
    encoder = keras_hub.models.MiTBackbone(
        layerwise_depths=[3, 4, 6, 3], num_layers=4, layerwise_num_heads=[1, 2, 5, 8], layerwise_sr_ratios=[8, 4, 2, 1], max_drop_path_rate=0.1, image_shape=(side, side, 3),
        hidden_dims=[64, 128, 320, 512], layerwise_patch_sizes=[7, 3, 3, 3], layerwise_strides=[4, 2, 2, 2])
    model = keras_hub.models.SegFormerImageSegmenter(keras_hub.models.SegFormerBackbone(encoder, 768), classes)
    if remat:
        wrap([layer for layer in encoder.layers if type(layer).__name__ == "HierarchicalTransformerEncoder"])
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d)
    optimizer = keras.optimizers.AdamW(6e-5, weight_decay=0.01)
    return training(model, optimizer, topology, chips, (S("float32", side, side, 3), S("int32", side, side)), donate)
