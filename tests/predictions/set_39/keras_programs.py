"""keras-hub: BLOOM 560M (ALiBi), fine-tuned whole as a causal language model, in mixed precision, data parallel; Keras' own training step."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def bloom(topology, chips, batch, length=512, depth=24, policy="mixed_bfloat16", remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.BloomBackbone(vocabulary_size=250880, num_layers=depth, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.0)
    model = keras_hub.models.BloomCausalLM(backbone, preprocessor=None)
    wrap(backbone.transformer_layers[:remat])
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length)}, S(batch, length))
    return training(model, keras.optimizers.AdamW(2e-5, weight_decay=0.01), topology, chips, data, donate, shard)
