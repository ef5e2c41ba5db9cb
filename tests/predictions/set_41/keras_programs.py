"""keras-hub: Llama 3.2 1B by its own LoRA (backbone.enable_lora) in bfloat16, data parallel; Keras' own training step."""

import jax
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P
from keras.src.backend.common.global_state import set_global_attribute

from keras_pieces import shapes, wrap
from recipe import Program, mesh, placed


def stepping(model, optimizer, losses, topology, chips, data, donate):
    """Keras' own training step; weights that are frozen are weights, too."""
    model.compile(optimizer=optimizer, jit_compile=True, **losses)
    devices = mesh(topology, (chips,), ("batch",))
    model.optimizer.build(model.trainable_variables)
    variables = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables)
    names = [v.path for v in model.non_trainable_variables]
    state = placed(tuple(map(shapes, variables)), NamedSharding(devices, P()))
    data = placed(data, NamedSharding(devices, P("batch")))

    def classify(path):
        if path.startswith("[1]"):
            return "input"
        if path.startswith("[0][1]"):
            return "other" if "seed" in names[int(path[7:-1])] else "weight"
        return {"[0][0]": "weight", "[0][2]": "opt"}.get(path[:6], "other")

    return Program(model.train_step, (state, data), classify, (0,) if donate else ())


def llama_lora(topology, chips, batch, length=512, rank=8, remat=0, donate=True):
    keras.config.set_dtype_policy("bfloat16")
    with keras.StatelessScope(initialize_variables=False):  # no values: only shapes are needed
        backbone = keras_hub.models.Llama3Backbone(
            vocabulary_size=128256, num_layers=16, num_query_heads=32, num_key_value_heads=8, hidden_dim=2048, intermediate_dim=8192,
            rope_max_wavelength=500000, layer_norm_epsilon=1e-5, tie_word_embeddings=True)
    set_global_attribute("uninitialized_variables", [])
    model = keras_hub.models.Llama3CausalLM(backbone=backbone, preprocessor=None)
    with keras.StatelessScope(initialize_variables=False):
        backbone.enable_lora(rank=rank)
    set_global_attribute("uninitialized_variables", [])
    optimizer = keras.optimizers.AdamW(learning_rate=1e-4, weight_decay=0.01)
    wrap(list(backbone.transformer_layers)[:remat])
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length)}, S(batch, length), jax.ShapeDtypeStruct((batch, length), "float32"))
    return stepping(model, optimizer, dict(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[]), topology, chips, data, donate)
