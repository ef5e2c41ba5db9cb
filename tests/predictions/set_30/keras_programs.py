"""keras-hub: VideoPrism base with a head of 400 actions, fine-tuned whole, in float32 or mixed precision, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def videoprism(topology, chips, batch, frames=16, side=288, policy="float32", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.VideoPrismBackbone(num_frames=frames, patch_size=18, hidden_dim=768, intermediate_dim=3072, num_heads=12, num_spatial_layers=12, num_temporal_layers=4, num_auxiliary_layers=0, attention_logit_soft_cap=50.0, image_shape=(side, side, 3))
    x = keras.ops.mean(backbone.output, axis=(1, 2))
    model = keras.Model(backbone.input, keras.layers.Dense(400, dtype="float32", name="actions")(x))
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "VideoPrismEncoderBlock"][:remat])
    data = (jax.ShapeDtypeStruct((batch, frames, side, side, 3), "float32"), jax.ShapeDtypeStruct((batch,), "int32"))
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, donate, shard)
