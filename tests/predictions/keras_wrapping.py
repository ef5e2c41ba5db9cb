"""jax.checkpoint around each Keras layer's call, also where it is called by names."""

import jax
import keras


def wrap(layers):
    def wrapped(layer, plain):
        def call(*args, **rest):
            seeds = [v for v in layer.non_trainable_variables if "seed" in v.path]
            weights = [v for v in layer.variables if not any(v is a for a in seeds)]
            names = [n for n, a in rest.items() if a is not None and hasattr(a, "dtype")]
            plainly = {n: a for n, a in rest.items() if n not in names}

            def inner(args, named, states, values):
                with keras.StatelessScope(state_mapping=list(zip(seeds, states)) + list(zip(weights, values))) as scope:
                    y = plain(*args, **named, **plainly)
                return y, [scope.get_current_value(v) for v in seeds]

            y, states = jax.checkpoint(inner)(args, {n: rest[n] for n in names}, [v.value for v in seeds], [v.value for v in weights])
            for v, state in zip(seeds, states):
                v.assign(state)
            return y
        return call

    for layer in layers:
        layer.call = wrapped(layer, layer.call)
