"""keras-hub: Mistral trained, its weights divided; the diffusion transformer of Stable Diffusion 3 trained; Gemma 3 generating."""

import jax
import keras
import keras_hub
from jax.sharding import NamedSharding, PartitionSpec as P

from keras_pieces import shapes, training, wrap
from recipe import Program, largest_dimension, mesh, placed


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def weightless():
    """Large variables hold one number as if it were many: the real ones would fill this machine's memory."""
    import math

    import numpy as np
    from keras.src.backend.jax.core import JaxVariable

    plain = JaxVariable._initialize_with_initializer

    def initialize(self, initializer):
        if math.prod(self._shape) < 1 << 20:
            return plain(self, initializer)
        self._initialize(np.broadcast_to(np.zeros((), jax.numpy.dtype(self._dtype)), self._shape))

    JaxVariable._initialize_with_initializer = initialize


def mistral(topology, chips, batch, length, depth, policy="mixed_bfloat16", remat=0, donate=True):
    """The widths of Mistral 7B."""
    weightless()
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.MistralBackbone(
        vocabulary_size=32000, num_layers=depth, num_query_heads=32, hidden_dim=4096, intermediate_dim=14336,
        num_key_value_heads=8, sliding_window=4096)
    wrap(backbone.transformer_layers[:remat])
    model = keras_hub.models.MistralCausalLM(backbone=backbone, preprocessor=None)
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("int32", batch, length)}, S("int32", batch, length))
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, donate, True)


def mmdit(topology, chips, batch, size, context, depth, policy="mixed_bfloat16", remat=0, donate=True):
    """The widths of Stable Diffusion 3 Medium; velocities from noised latents."""
    from keras_hub.src.models.stable_diffusion_3 import mmdit as M

    keras.config.set_dtype_policy(policy)
    with keras.device("cpu:0"):
        model = M.MMDiT(
            patch_size=2, hidden_dim=1536, num_layers=depth, num_heads=24, position_size=192, latent_shape=(size, size, 16),
            context_shape=(context, 4096), pooled_projection_shape=(2048,))

    def checkpointed(block):
        plain = block.call
        block.call = lambda *args, **rest: jax.checkpoint(lambda *a: plain(*a, **rest))(*args)

    for block in model.joint_blocks[:remat]:
        checkpointed(block)
    model.compile(optimizer=keras.optimizers.AdamW(1e-4), loss="mse", metrics=[], jit_compile=True)
    model.optimizer.build(model.trainable_variables)
    devices = mesh(topology, (chips,), ("batch",))
    variables = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables)
    state = placed(tuple(map(shapes, variables)), NamedSharding(devices, P()))
    inputs = {"latent": S("float32", batch, size, size, 16), "context": S("float32", batch, context, 4096),
              "pooled_projection": S("float32", batch, 2048), "timestep": S("float32", batch, 1)}
    data = placed((inputs, S("float32", batch, size, size, 16)), NamedSharding(devices, P("batch")))
    classify = lambda path: "input" if path.startswith("[1]") else {"[0][0]": "weight", "[0][2]": "opt"}.get(path[:6], "other")
    return Program(model.train_step, (state, data), classify, (0,) if donate else ())


def gemma3(topology, chips, batch, length, policy="bfloat16", shard=False):
    """Gemma 3 1B; CausalLM.generate_step as `generate` compiles it, its cache made inside."""
    keras.config.set_dtype_policy(policy)
    with keras.device("cpu:0"):
        backbone = keras_hub.models.Gemma3Backbone(
            vocabulary_size=262144, image_size=896, num_layers=26, num_query_heads=4, num_key_value_heads=1, hidden_dim=1152,
            intermediate_dim=6912, head_dim=256, use_post_ffw_norm=True, use_post_attention_norm=True, sliding_window_size=512,
            use_sliding_window_attention=True, vision_encoder=None)
    model = keras_hub.models.Gemma3CausalLM(backbone=backbone, preprocessor=None)
    model.compile(sampler="greedy")
    devices = mesh(topology, (chips,), ("x",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("x"))
    variables = (model.sampler.variables, model.trainable_variables, model.non_trainable_variables)
    sampler, weights, rest = map(shapes, variables)
    state = (placed(sampler, whole), placed(weights, largest_dimension(devices, "x") if shard else whole), placed(rest, whole))
    inputs = {name: jax.ShapeDtypeStruct((batch, length), dtype, sharding=split) for name, dtype in (("token_ids", "int32"), ("padding_mask", "bool"))}

    def generate(inputs, state):
        pairs = [pair for a, b in zip(variables, state) for pair in zip(a, b)]
        with keras.StatelessScope(state_mapping=pairs) as scope:
            outputs = model.generate_step(inputs, (106,))
        return {k: v for k, v in outputs.items() if v is not None}, [scope.get_current_value(v) for v in model.sampler.variables]

    classify = lambda path: "input" if path.startswith("[0]") else "weight" if path.startswith("[1][1]") else "other"
    return Program(generate, (inputs, state), classify)
