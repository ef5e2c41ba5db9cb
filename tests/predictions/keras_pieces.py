"""Keras' own training step, its state given and taken."""

import jax
import keras
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, largest_dimension, mesh, placed


def shapes(variables):
    return [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]


def wrap(layers):
    """jax.checkpoint around each layer's call; what it draws its random numbers from goes in and comes out."""
    def wrapped(layer, plain):
        def call(x, **rest):
            seeds = [v for v in layer.non_trainable_variables if "seed" in v.path]

            weights = [v for v in layer.variables if not any(v is a for a in seeds)]

            def inner(x, states, values):
                with keras.StatelessScope(state_mapping=list(zip(seeds, states)) + list(zip(weights, values))) as scope:
                    y = plain(x, **rest)
                return y, [scope.get_current_value(v) for v in seeds]

            y, states = jax.checkpoint(inner)(x, [v.value for v in seeds], [v.value for v in weights])
            for v, state in zip(seeds, states):
                v.assign(state)
            return y
        return call
    for layer in layers:
        layer.call = wrapped(layer, layer.call)


def training(model, optimizer, topology, chips, data, donate=True, shard=False):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, metrics=[], jit_compile=True)
    devices = mesh(topology, (chips,), ("batch",))
    model.optimizer.build(model.trainable_variables)
    variables = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables)
    where = largest_dimension(devices, "batch") if shard else NamedSharding(devices, P())
    state = placed(tuple(map(shapes, variables)), where)
    data = placed(data, NamedSharding(devices, P("batch")))

    def classify(path):
        return "input" if path.startswith("[1]") else {"[0][0]": "weight", "[0][2]": "opt"}.get(path[:6], "other")

    return Program(model.train_step, (state, data), classify, (0,) if donate else ())
