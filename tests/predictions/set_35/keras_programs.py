"""keras-hub: GPT-2 small, its CausalLM with dropout; Keras' own training step, mixed_bfloat16, data parallel."""

import jax
import keras
import keras_hub
from keras.src.backend.common.global_state import set_global_attribute

from keras_pieces import training, wrap


def gpt2(topology, chips, batch, length=1024, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    with keras.StatelessScope(initialize_variables=False):  # no values: only shapes are needed
        backbone = keras_hub.models.GPT2Backbone(vocabulary_size=50257, num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072, dropout=0.1, max_sequence_length=1024)
    set_global_attribute("uninitialized_variables", [])
    model = keras_hub.models.GPT2CausalLM(backbone=backbone, preprocessor=None)
    if remat:
        wrap(backbone.transformer_layers[:remat])
        for layer in backbone.transformer_layers[:remat]:
            plain = layer.call
            layer.call = lambda decoder_sequence, plain=plain, **rest: plain(decoder_sequence, **rest)
    S = lambda d: jax.ShapeDtypeStruct((batch, length), d)
    x = {"token_ids": S("int32"), "padding_mask": S("int32")}
    data = (x, S("int32"), S("float32"))
    return training(model, keras.optimizers.AdamW(3e-4, weight_decay=0.1, global_clipnorm=1.0), topology, chips, data, donate, shard)
