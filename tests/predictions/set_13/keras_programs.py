"""keras-hub: SegFormer and ViT trained by Keras' own train_step, Phi 3 generating by its own generate_step."""
import jax, keras, keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P
from keras_pieces import shapes, training, wrap
from recipe import Program, largest_dimension, mesh, placed


def segformer(topology, chips, batch, size, policy="float32", remat=False, donate=True):
    keras.config.set_dtype_policy(policy)
    tower = keras_hub.models.MiTBackbone(layerwise_depths=[3, 4, 6, 3], image_shape=(size, size, 3), hidden_dims=[64, 128, 320, 512], num_layers=4, layerwise_num_heads=[1, 2, 5, 8], layerwise_sr_ratios=[8, 4, 2, 1], max_drop_path_rate=0.1, layerwise_patch_sizes=[7, 3, 3, 3], layerwise_strides=[4, 2, 2, 2])
    if remat:
        from keras_hub.src.models.mit.mit_layers import HierarchicalTransformerEncoder
        wrap([x for x in tower._flatten_layers() if isinstance(x, HierarchicalTransformerEncoder)])
    model = keras_hub.models.SegFormerImageSegmenter(backbone=keras_hub.models.SegFormerBackbone(image_encoder=tower, projection_filters=768), num_classes=150, preprocessor=None)
    data = (jax.ShapeDtypeStruct((batch, size, size, 3), "float32"), jax.ShapeDtypeStruct((batch, size, size), "int32"))
    return training(model, keras.optimizers.AdamW(6e-5), topology, chips, data, donate)


def vit(topology, chips, batch, size, policy="mixed_bfloat16", remat=0, micro=None):
    keras.config.set_dtype_policy(policy)
    tower = keras_hub.models.ViTBackbone(image_shape=(size, size, 3), patch_size=14, num_layers=24, num_heads=16, hidden_dim=1024, mlp_dim=4096)
    if remat:
        from keras_hub.src.models.vit.vit_layers import ViTEncoderBlock
        wrap([x for x in tower._flatten_layers() if isinstance(x, ViTEncoderBlock)][:remat])
    model = keras_hub.models.ViTImageClassifier(backbone=tower, num_classes=21843, preprocessor=None)
    data = (jax.ShapeDtypeStruct((batch, size, size, 3), "float32"), jax.ShapeDtypeStruct((batch,), "int32"))
    return training(model, keras.optimizers.Adafactor(1e-3), topology, chips, data)


def phi3(topology, chips, batch, length, layers, policy="bfloat16"):
    """CausalLM.generate_step as `generate` compiles it; the cache is made inside the program."""
    keras.config.set_dtype_policy(policy)
    with keras.device("cpu:0"):
        import numpy as np
        backbone = keras_hub.models.Phi3Backbone(vocabulary_size=32064, num_layers=layers, hidden_dim=3072, intermediate_dim=8192, num_query_heads=32, num_key_value_heads=32)
    model = keras_hub.models.Phi3CausalLM(backbone=backbone, preprocessor=None)
    model.compile(sampler="greedy")
    m = mesh(topology, (chips,), ("x",)); R, B = NamedSharding(m, P()), NamedSharding(m, P("x"))
    weights = placed(shapes(model.trainable_variables), largest_dimension(m, "x")); rest = placed(shapes(model.non_trainable_variables), R)
    sampler = placed(shapes(model.sampler.variables), R)
    inputs = {k: jax.ShapeDtypeStruct((batch, length), d, sharding=B) for k, d in (("token_ids", "int32"), ("padding_mask", "bool"))}

    def generate(inputs, state):
        a, b, c = state
        pairs = [*zip(model.sampler.variables, a), *zip(model.trainable_variables, b), *zip(model.non_trainable_variables, c)]
        with keras.StatelessScope(state_mapping=pairs) as scope:
            outputs = model.generate_step(inputs, (32000,))
        now = [scope.get_current_value(v) for v in model.sampler.variables]
        return outputs, now

    classify = lambda path: "input" if path.startswith("[0]") else {"[1][0]": "other", "[1][1]": "weight"}.get(path[:6], "other")
    return Program(generate, (inputs, (sampler, weights, rest)), classify, ())
