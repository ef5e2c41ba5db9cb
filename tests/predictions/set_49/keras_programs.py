"""KerasHub: Llama 3.2 1B is fine-tuned by LoRA (rank 16 of queries and values, everything else frozen, all in bfloat16) on texts of 1024, Keras' own train_step, AdamW, data parallel."""

import jax
import keras
import keras_hub

from keras_pieces import training
from keras_wrapping import wrap


def llama_lora(topology, chips, batch, length=1024, rank=16, depth=16, remat=False, shard=False, donate=True):
    keras.config.set_dtype_policy("bfloat16")
    backbone = keras_hub.models.Llama3Backbone(
        vocabulary_size=128256, num_layers=depth, num_query_heads=32, hidden_dim=2048, intermediate_dim=8192, num_key_value_heads=8,
        rope_max_wavelength=500000, tie_word_embeddings=True)
    backbone.enable_lora(rank)
    model = keras_hub.models.Llama3CausalLM(backbone=backbone, preprocessor=None)
    if remat:
        wrap(backbone.transformer_layers)
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32")
    x = {"token_ids": S(), "padding_mask": S()}
    made = training(model, keras.optimizers.AdamW(2e-4, weight_decay=0.01, global_clipnorm=1.0), topology, chips, (x, S()), donate, shard)
    frozen = {f"[0][1][{i}]" for i, v in enumerate(model.non_trainable_variables) if "seed" not in v.path}
    plain = made.classify
    made.classify = lambda path: "weight" if path in frozen else plain(path)
    return made
