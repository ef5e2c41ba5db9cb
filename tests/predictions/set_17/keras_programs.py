"""keras-hub: ALBERT's masked words, one layer's weights used 24 times; SAM's image encoder taught another's features."""

import jax
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P

from keras_pieces import shapes, training, wrap
from recipe import Program, mesh, placed


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def albert(topology, chips, batch, length, masked=76, policy="float32", remat=False, donate=True, shard=False):
    """The widths of ALBERT xlarge."""
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=30000, num_layers=24, num_heads=16, embedding_dim=128, hidden_dim=2048, intermediate_dim=8192, max_sequence_length=length)
    if remat:
        wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "TransformerEncoder"])
    model = keras_hub.models.AlbertMaskedLM(backbone=backbone, preprocessor=None)
    I = lambda n: S("int32", batch, n)
    data = ({"token_ids": I(length), "padding_mask": I(length), "segment_ids": I(length), "mask_positions": I(masked)}, I(masked))
    return training(model, keras.optimizers.Lamb(1e-3), topology, chips, data, donate, shard)


def vitdet(topology, chips, batch, policy="mixed_bfloat16", remat=0, size=1024, donate=True):
    """The image encoder of SAM base."""
    keras.config.set_dtype_policy(policy)
    with keras.device("cpu:0"):
        model = keras_hub.models.ViTDetBackbone(
            hidden_size=768, num_layers=12, intermediate_dim=3072, num_heads=12, global_attention_layer_indices=[2, 5, 8, 11],
            image_shape=(size, size, 3), window_size=14)
    blocks = [layer for layer in model._flatten_layers() if type(layer).__name__ == "WindowedTransformerEncoder"]
    assert len(blocks) == 12, [type(x).__name__ for x in model._flatten_layers()]
    wrap(blocks[:remat])
    model.compile(optimizer=keras.optimizers.AdamW(1e-4), loss="mse", metrics=[], jit_compile=True)
    model.optimizer.build(model.trainable_variables)
    devices = mesh(topology, (chips,), ("batch",))
    variables = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables)
    state = placed(tuple(map(shapes, variables)), NamedSharding(devices, P()))
    data = placed((S("float32", batch, size, size, 3), S("float32", batch, size // 16, size // 16, 256)), NamedSharding(devices, P("batch")))
    classify = lambda path: "input" if path.startswith("[1]") else {"[0][0]": "weight", "[0][2]": "opt"}.get(path[:6], "other")
    return Program(model.train_step, (state, data), classify, (0,) if donate else ())
