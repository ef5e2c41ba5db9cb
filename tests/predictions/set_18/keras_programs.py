"""keras-hub: GPT-NeoX and Moonshine (speech from the raw wave), by Keras' own training step."""

import jax
import keras
import keras_hub

from keras_pieces import training


def S(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def neox(topology, chips, batch, length, depth=16, policy="mixed_bfloat16", remat=0, shard=False, donate=True):
    """The widths of Pythia 1B."""
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.GPTNeoXBackbone(
        vocabulary_size=50304, num_layers=depth, num_heads=8, hidden_dim=2048, intermediate_dim=8192, max_sequence_length=length)
    for layer in list(backbone.transformer_layers)[:remat]:
        layer.call = (lambda plain: lambda x, **rest: jax.checkpoint(lambda x: plain(x, **rest))(x))(layer.call)
    model = keras_hub.models.GPTNeoXCausalLM(backbone=backbone, preprocessor=None)
    data = ({"token_ids": S("int32", batch, length), "padding_mask": S("int32", batch, length)}, S("int32", batch, length))
    return training(model, keras.optimizers.AdamW(1e-4), topology, chips, data, donate, shard)


def moonshine(topology, chips, batch, seconds=16, words=192, policy="mixed_bfloat16", remat=False, donate=True):
    """Moonshine base."""
    keras.config.set_dtype_policy(policy)
    backbone = keras_hub.models.MoonshineBackbone(
        vocabulary_size=32768, filter_dim=416, encoder_num_layers=8, decoder_num_layers=8, hidden_dim=416, intermediate_dim=1664,
        encoder_num_heads=8, decoder_num_heads=8)
    if remat:
        for layer in backbone._flatten_layers():
            if type(layer).__name__ in ("MoonshineEncoderBlock", "MoonshineDecoderBlock"):
                layer.call = (lambda plain: lambda *given, **rest: jax.checkpoint(lambda *given: plain(*given, **rest))(*given))(layer.call)
    model = backbone
    samples = 16000 * seconds
    data = {"encoder_input_values": S("float32", batch, samples, 1), "encoder_padding_mask": S("bool", batch, samples),
            "decoder_token_ids": S("int32", batch, words), "decoder_padding_mask": S("bool", batch, words)}
    sequence = model.output["decoder_sequence_output"] if isinstance(model.output, dict) else model.output
    logits = backbone.token_embedding(sequence, reverse=True) if hasattr(backbone, "token_embedding") else keras.layers.Dense(32768)(sequence)
    model = keras.Model(model.input, logits)
    return training(model, keras.optimizers.Adam(1e-4), topology, chips, (data, S("int32", batch, words)), donate, False)
