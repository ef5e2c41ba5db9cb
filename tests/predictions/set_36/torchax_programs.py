"""Hugging Face transformers (PyTorch) through torchax' make_train_step: Pegasus large, fine-tuned to summarise, in float32, fully sharded; OLMo 2 1B, weights in bfloat16, whole on every device, data parallel."""

import jax
import optax
import torch_names  # noqa: F401
import torch
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import largest_dimension, mesh, placed
from torchax_pieces import build, words


def pegasus(topology, chips, batch, source=1024, target=128, dtype="float32", remat=False, donate=True, shard=True):
    """google/pegasus-cnn_dailymail."""
    config = transformers.PegasusConfig(vocab_size=96103, d_model=1024, encoder_layers=16, decoder_layers=16, encoder_attention_heads=16, decoder_attention_heads=16, encoder_ffn_dim=4096, decoder_ffn_dim=4096, max_position_embeddings=1024, activation_function="relu", scale_embedding=True, dropout=0.0, use_cache=False, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.PegasusForConditionalGeneration(config).to(getattr(torch, dtype))

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1), label_smoothing=0.1)

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda n: jax.ShapeDtypeStruct((batch, n), "int32", sharding=NamedSharding(devices, P("fsdp")))
    layers = lambda n: list(n.model.encoder.layers) + list(n.model.decoder.layers)
    call = lambda a: dict(input_ids=a[0], decoder_input_ids=a[1])
    return build(model, dtype, layers, call, loss, devices, (S(source), S(target)), S(target), optax.adamw(3e-5), donate, shard, 32 if remat else 0)


def olmo2(topology, chips, batch, length=1024, dtype="bfloat16", remat=False, donate=True, zero=False):
    """allenai/OLMo-2-0425-1B."""
    config = transformers.Olmo2Config(vocab_size=100352, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=4096, rope_parameters={"rope_type": "default", "rope_theta": 500000.0}, tie_word_embeddings=False, attn_implementation="eager", use_cache=False)
    with torch.device("meta"):
        model = transformers.Olmo2ForCausalLM(config).to(getattr(torch, dtype))
    made = words(model, dtype, topology, chips, batch, length, optax.adamw(2e-5, b2=0.95), donate, False, 16 if remat else 0)
    if zero:
        weights, buffers, state, x, y = made.args
        state = placed(state, largest_dimension(x.sharding.mesh, "fsdp", 1 << 16))
        made.args, made.out_shardings = (weights, buffers, state, x, y), (*made.out_shardings[:2], shardings(state))
    return made
