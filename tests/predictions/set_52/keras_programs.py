"""KerasHub: DeBERTa V3 base is fine-tuned to tell three relations of two sentences (512 pieces of a vocabulary of 128100), float32, dropout 0.1, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training


def wrap(layers):
    """jax.checkpoint around each layer's call, also of what it is given by name."""
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


def deberta(topology, chips, batch, length=512, depth=12, policy="float32", remat=False, shard=False, donate=True):
    keras.mixed_precision.set_global_policy(policy)
    backbone = keras_hub.models.DebertaV3Backbone(
        vocabulary_size=128100, num_layers=depth, num_heads=12, hidden_dim=768, intermediate_dim=3072, dropout=0.1, max_sequence_length=512, bucket_size=256)
    model = keras_hub.models.DebertaV3TextClassifier(backbone=backbone, num_classes=3, preprocessor=None, dropout=0.1)
    if remat:
        wrap(backbone.transformer_layers)
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "int32")
    optimizer = keras.optimizers.AdamW(2e-5, weight_decay=0.01, global_clipnorm=1.0)
    return training(model, optimizer, topology, chips, ({"token_ids": S(length), "padding_mask": S(length)}, S()), donate, shard)
