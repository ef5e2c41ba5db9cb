"""keras-hub: ViTDet base (SAM's image encoder) of 1024 by 1024 images with a head of 150 classes a patch, trained whole, in float32 or mixed precision, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def vitdet(topology, chips, batch, side=1024, policy="float32", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.ViTDetBackbone(hidden_size=768, num_layers=12, intermediate_dim=3072, num_heads=12, global_attention_layer_indices=[2, 5, 8, 11], image_shape=(side, side, 3), patch_size=16, num_output_channels=256, use_rel_pos=True, window_size=14)
    model = keras.Model(backbone.input, keras.layers.Dense(150, dtype="float32", name="classes")(backbone.output))
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "WindowedTransformerEncoder"][:remat])
    data = (jax.ShapeDtypeStruct((batch, side, side, 3), "float32"), jax.ShapeDtypeStruct((batch, side // 16, side // 16), "int32"))
    return training(model, keras.optimizers.AdamW(1e-4, weight_decay=0.05), topology, chips, data, donate, shard)
