"""keras-hub: BART generating by its own generate_step, its caches made inside the program; DenseNet trained by Keras' train_step."""

import jax
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P

from keras_pieces import shapes, training
from recipe import Program, mesh, placed


def bart(topology, chips, batch, sound, answer, layers, policy="bfloat16"):
    keras.config.set_dtype_policy(policy)
    with keras.device("cpu:0"):
        backbone = keras_hub.models.BartBackbone(
            vocabulary_size=50265, num_layers=layers, num_heads=16, hidden_dim=1024, intermediate_dim=4096, max_sequence_length=2048)
    model = keras_hub.models.BartSeq2SeqLM(backbone=backbone, preprocessor=None)
    model.compile(sampler="greedy")
    devices = mesh(topology, (chips,), ("x",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("x"))
    variables = (model.sampler.variables, model.trainable_variables, model.non_trainable_variables)
    state = placed(tuple(map(shapes, variables)), whole)
    S = lambda length, dtype: jax.ShapeDtypeStruct((batch, length), dtype, sharding=split)
    inputs = {"encoder_token_ids": S(sound, "int32"), "encoder_padding_mask": S(sound, "bool"),
              "decoder_token_ids": S(answer, "int32"), "decoder_padding_mask": S(answer, "bool")}

    def generate(inputs, state):
        pairs = [pair for a, b in zip(variables, state) for pair in zip(a, b)]
        with keras.StatelessScope(state_mapping=pairs) as scope:
            outputs = model.generate_step(inputs, (2,))
        return outputs, [scope.get_current_value(v) for v in model.sampler.variables]

    classify = lambda path: "input" if path.startswith("[0]") else "weight" if path.startswith("[1][1]") else "other"
    return Program(generate, (inputs, state), classify)


def densenet(topology, chips, batch, size, policy="float32", donate=True):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.DenseNetBackbone(
        stackwise_num_repeats=[6, 12, 24, 16], compression_ratio=0.5, growth_rate=32, image_shape=(size, size, 3))
    model = keras_hub.models.DenseNetImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    data = (jax.ShapeDtypeStruct((batch, size, size, 3), "float32"), jax.ShapeDtypeStruct((batch,), "int32"))
    return training(model, keras.optimizers.SGD(0.1, momentum=0.9), topology, chips, data, donate)
