"""keras-hub: Gemma with LoRA, BERT's masked language model and EfficientNet, trained by Keras' own train_step."""

import jax
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def gemma(topology, chips, batch, length, depth, policy="mixed_bfloat16", remat=0, shard=False):
    """The widths of Gemma 2B; only the adapters are trained."""
    keras.config.set_dtype_policy(policy)
    with keras.device("cpu:0"):
        backbone = keras_hub.models.GemmaBackbone(
            vocabulary_size=256000, num_layers=depth, num_query_heads=8, num_key_value_heads=1, hidden_dim=2048,
            intermediate_dim=32768, head_dim=256)
    backbone.enable_lora(rank=8)
    wrap(backbone.transformer_layers[:remat])
    model = keras_hub.models.GemmaCausalLM(backbone=backbone, preprocessor=None)
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("int32", batch, length)}, S("int32", batch, length))
    made = training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, True, shard)
    plain = made.classify
    made.classify = lambda path: "weight" if path.startswith("[0][1]") else plain(path)  # what LoRA freezes
    return made


def bert(topology, chips, batch, length, policy="float32", remat=0, donate=True):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=30522, num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072, max_sequence_length=length)
    wrap([x for x in backbone.layers if x.name.startswith("transformer_layer")][:remat])
    model = keras_hub.models.BertMaskedLM(backbone=backbone, preprocessor=None)
    inputs = {name: S("int32", batch, length) for name in ("token_ids", "segment_ids", "padding_mask")}
    inputs["mask_positions"] = S("int32", batch, 80)
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, (inputs, S("int32", batch, 80)), donate)


def efficientnet(topology, chips, batch, size, policy="float32", donate=True):
    """B3: widths by 1.2, depths by 1.4."""
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.EfficientNetBackbone(
        stackwise_width_coefficients=[1.2] * 7, stackwise_depth_coefficients=[1.4] * 7, stackwise_kernel_sizes=[3, 3, 5, 3, 5, 5, 3],
        stackwise_num_repeats=[1, 2, 2, 3, 3, 4, 1], stackwise_input_filters=[32, 16, 24, 40, 80, 112, 192],
        stackwise_output_filters=[16, 24, 40, 80, 112, 192, 320], stackwise_expansion_ratios=[1, 6, 6, 6, 6, 6, 6],
        stackwise_squeeze_and_excite_ratios=[0.25] * 7, stackwise_strides=[1, 2, 2, 2, 1, 2, 1], stackwise_block_types=["v1"] * 7,
        input_shape=(size, size, 3), num_features=1536)
    model = keras_hub.models.EfficientNetImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    data = (S("float32", batch, size, size, 3), S("int32", batch))
    return training(model, keras.optimizers.RMSprop(0.016, momentum=0.9), topology, chips, data, donate)
