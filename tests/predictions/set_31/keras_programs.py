"""keras-hub: Gemma 2 2B by its own LoRA (backbone.enable_lora) in bfloat16, on one chip, as its guide has it; RetinaNet with ResNet 50, as shipped, its own label encoder and losses."""

import jax
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P
from keras.src.backend.common.global_state import set_global_attribute

from keras_pieces import shapes, wrap
from recipe import Program, largest_dimension, mesh, placed


def stepping(model, optimizer, losses, topology, chips, data, donate, shard):
    """Keras' own training step; weights that are frozen are weights, too."""
    model.compile(optimizer=optimizer, jit_compile=True, **losses)
    devices = mesh(topology, (chips,), ("batch",))
    model.optimizer.build(model.trainable_variables)
    variables = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables)
    names = [v.path for v in model.non_trainable_variables]
    where = largest_dimension(devices, "batch") if shard else NamedSharding(devices, P())
    state = placed(tuple(map(shapes, variables)), where)
    data = placed(data, NamedSharding(devices, P("batch")))

    def classify(path):
        if path.startswith("[1]"):
            return "input"
        if path.startswith("[0][1]"):
            name = names[int(path[7:-1])]
            return "other" if "seed" in name or "moving" in name else "weight"
        return {"[0][0]": "weight", "[0][2]": "opt"}.get(path[:6], "other")

    return Program(model.train_step, (state, data), classify, (0,) if donate else ())


def gemma_lora(topology, chips, batch, length=512, rank=4, remat=0, donate=True, shard=False):
    keras.config.set_dtype_policy("bfloat16")
    with keras.StatelessScope(initialize_variables=False):  # no values: only shapes are needed
        backbone = keras_hub.models.GemmaBackbone(
            vocabulary_size=256000, num_layers=26, num_query_heads=8, num_key_value_heads=4, hidden_dim=2304, intermediate_dim=18432, head_dim=256,
            query_head_dim_normalize=True, use_post_ffw_norm=True, use_post_attention_norm=True, attention_logit_soft_cap=50, final_logit_soft_cap=30,
            sliding_window_size=4096, use_sliding_window_attention=True)
    set_global_attribute("uninitialized_variables", [])
    model = keras_hub.models.GemmaCausalLM(backbone=backbone, preprocessor=None)
    with keras.StatelessScope(initialize_variables=False):
        backbone.enable_lora(rank=rank)
    set_global_attribute("uninitialized_variables", [])
    optimizer = keras.optimizers.AdamW(learning_rate=5e-5, weight_decay=0.01)
    optimizer.exclude_from_weight_decay(var_names=["bias", "scale"])
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "GemmaDecoderBlock"][:remat])
    S = lambda *s: jax.ShapeDtypeStruct(s, "int32")
    data = ({"token_ids": S(batch, length), "padding_mask": S(batch, length)}, S(batch, length), jax.ShapeDtypeStruct((batch, length), "float32"))
    return stepping(model, optimizer, dict(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[]), topology, chips, data, donate, shard)


def retinanet(topology, chips, batch, side=800, boxes=100, policy="float32", donate=True, shard=False):
    keras.config.set_dtype_policy(policy)
    encoder = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 128, 256, 512], stackwise_num_blocks=[3, 4, 6, 3], stackwise_num_strides=[1, 2, 2, 2],
        block_type="bottleneck_block", use_pre_activation=False, image_shape=(side, side, 3))
    backbone = keras_hub.models.RetinaNetBackbone(image_encoder=encoder, min_level=3, max_level=7, use_p5=False)
    model = keras_hub.models.RetinaNetObjectDetector(backbone=backbone, num_classes=80, bounding_box_format="xyxy")
    S = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    data = (S(batch, side, side, 3), {"boxes": S(batch, boxes, 4), "labels": S(batch, boxes)})
    return stepping(model, keras.optimizers.SGD(0.01, momentum=0.9, global_clipnorm=10.0), {}, topology, chips, data, donate, shard)
