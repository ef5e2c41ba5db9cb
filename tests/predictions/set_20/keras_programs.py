"""keras-hub: Llama 3.2 1B, full fine-tuning; VGG 16 on ImageNet."""

import jax
import keras
import keras_hub

from keras_pieces import training, wrap


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def llama3(topology, chips, batch, length, layers=16, policy="mixed_bfloat16", remat=0, donate=True, shard=True, flash=False):
    if flash:
        from pieces import flash as kernel
        from recipe import mesh
        from jax.sharding import PartitionSpec as P
        import jax.numpy as jnp
        import functools, keras_pieces
        keras_pieces.mesh = functools.cache(mesh)
        devices = keras_pieces.mesh(topology, (chips,), ("batch",))

        def attend(q, k, v, *args, **rest):
            wide = lambda a: jnp.repeat(a, q.shape[2] // a.shape[2], 2)
            return jax.shard_map(kernel, mesh=devices, in_specs=(P("batch"),) * 3, out_specs=P("batch"), check_vma=False)(q, wide(k), wide(v))

        jax.nn.dot_product_attention = attend
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.Llama3Backbone(
        vocabulary_size=128256, num_layers=layers, num_query_heads=32, hidden_dim=2048, intermediate_dim=8192, num_key_value_heads=8,
        rope_max_wavelength=500000, layer_norm_epsilon=1e-5, tie_word_embeddings=True)
    wrap([layer for layer in backbone._flatten_layers() if type(layer).__name__ == "Llama3TransformerDecoder" or type(layer).__name__ == "LlamaTransformerDecoder"][:remat])
    model = keras_hub.models.Llama3CausalLM(backbone=backbone, preprocessor=None)
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("bool", batch, length)}, S("int32", batch, length))
    return training(model, keras.optimizers.AdamW(1e-5), topology, chips, data, donate, shard)


def vgg(topology, chips, batch, size=224, policy="float32", donate=True, shard=False, remat=0):
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.VGGBackbone(stackwise_num_repeats=[2, 2, 3, 3, 3], stackwise_num_filters=[64, 128, 256, 512, 512], image_shape=(size, size, 3))
    model = keras_hub.models.VGGImageClassifier(backbone=backbone, num_classes=1000, preprocessor=None)
    data = (S("float32", batch, size, size, 3), S("int32", batch))
    return training(model, keras.optimizers.SGD(0.01, momentum=0.9), topology, chips, data, donate, shard)
