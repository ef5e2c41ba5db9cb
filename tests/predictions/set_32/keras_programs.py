"""keras-hub: Qwen 3 0.6B, its CausalLM and Keras' own training step, mixed_bfloat16, fully sharded, layers one after another."""

import jax
import keras
import keras_hub
from keras.src.backend.common.global_state import set_global_attribute

from keras_pieces import training, wrap


def qwen(topology, chips, batch, length=1024, policy="mixed_bfloat16", remat=0, donate=True, shard=True):
    keras.config.set_dtype_policy(policy)
    with keras.StatelessScope(initialize_variables=False):  # no values: only shapes are needed
        backbone = keras_hub.models.Qwen3Backbone(
            vocabulary_size=151936, num_layers=28, num_query_heads=16, num_key_value_heads=8, head_dim=128, hidden_dim=1024, intermediate_dim=3072,
            rope_max_wavelength=1000000, tie_word_embeddings=True)
    set_global_attribute("uninitialized_variables", [])
    model = keras_hub.models.Qwen3CausalLM(backbone=backbone, preprocessor=None)
    optimizer = keras.optimizers.AdamW(learning_rate=2e-5, weight_decay=0.01, global_clipnorm=1.0)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "Qwen3TransformerDecoder"][:remat])
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length)}, S(batch, length), jax.ShapeDtypeStruct((batch, length), "float32"))
    return training(model, optimizer, topology, chips, data, donate, shard)
