"""KerasHub: SAM's picture encoder (ViTDet of 12 layers of 768, pictures of 1024) learns to say what the large one says of a picture (64 by 64 of 256), as MobileSAM is distilled; mixed_bfloat16, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P

from keras_pieces import shapes, wrap
from recipe import Program, mesh, placed


def sam(topology, chips, batch, side=1024, remat=False, donate=True):
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = keras_hub.models.ViTDetBackbone(
        hidden_size=768, num_layers=12, intermediate_dim=768 * 4, num_heads=12, global_attention_layer_indices=[2, 5, 8, 11], patch_size=16, num_output_channels=256, window_size=14,
        image_shape=(side, side, 3))
    if remat:
        wrap([layer for layer in model.layers if type(layer).__name__ == "WindowedTransformerEncoder"])
    model.compile(optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.01, global_clipnorm=1.0), loss="mean_squared_error", metrics=[], jit_compile=True)
    devices = mesh(topology, (chips,), ("batch",))
    model.optimizer.build(model.trainable_variables)
    variables = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables)
    state = placed(tuple(map(shapes, variables)), NamedSharding(devices, P()))
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=NamedSharding(devices, P("batch")))
    data = (S(side, side, 3), S(side // 16, side // 16, 256))

    def classify(path):
        return "input" if path.startswith("[1]") else {"[0][0]": "weight", "[0][2]": "opt"}.get(path[:6], "other")

    return Program(model.train_step, (state, data), classify, (0,) if donate else ())
