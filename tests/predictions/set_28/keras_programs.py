"""keras-hub: Phi 3 mini fine-tuned by LoRA (enable_lora), bfloat16, on one chip; rematerialized layer by layer or not."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def phi3(topology, chips, batch, length=1024, policy="bfloat16", rank=16, remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.Phi3Backbone(vocabulary_size=32064, num_layers=32, hidden_dim=3072, intermediate_dim=8192, num_query_heads=32, num_key_value_heads=32)
    backbone.enable_lora(rank=rank)
    model = keras_hub.models.Phi3CausalLM(backbone=backbone, preprocessor=None)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "Phi3Decoder"][:remat])
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length)}, S(batch, length))
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, donate, shard)
