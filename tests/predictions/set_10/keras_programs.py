"""KerasHub: a RoBERTa classifier, trained by Keras' own step."""

import jax
import jax.numpy as jnp
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def checkpointed(layer):
    """Recomputes a layer. `keras.RematScope` would trace `training`, which the layers branch on."""
    plain = layer.call
    layer.call = lambda x, **rest: jax.checkpoint(lambda y: plain(y, **rest))(x)


def roberta(topology, chips, batch, length, depth, width, heads, policy="float32", remat=False):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.RobertaBackbone(
        vocabulary_size=50265, num_layers=depth, num_heads=heads, hidden_dim=width,
        intermediate_dim=4 * width, max_sequence_length=length)
    for layer in backbone.layers if remat else []:
        if layer.name.startswith("transformer_layer"):
            checkpointed(layer)
    model = keras_hub.models.RobertaTextClassifier(backbone=backbone, num_classes=5, preprocessor=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(1e-5), loss=loss, metrics=[])
    model.optimizer.build(model.trainable_variables)
    shapes = lambda variables: [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]
    state = (shapes(model.trainable_variables), shapes(model.non_trainable_variables),
             shapes(model.optimizer.variables), shapes(model.metrics_variables))
    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    data = ({"token_ids": tokens, "padding_mask": tokens}, jax.ShapeDtypeStruct((batch,), jnp.int32))

    def rule(path):
        if path.startswith("[1]"):
            return "input"
        return {"[0]": "weight", "[2]": "opt"}.get(path[3:6], "other")

    return Program(model.train_step, (placed(state, whole), placed(data, split)), rule, (0,))
