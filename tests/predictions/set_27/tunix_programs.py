"""google-tunix: supervised training of its Qwen 3 1.7B, whole fine-tuning, its trainer's step; adafactor or AdamW."""

import dataclasses
import importlib

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, step


def sft(topology, shape, batch, length, config="qwen3_1p7b", remat="NONE", donate_model=True, dtype="bfloat16"):
    from tunix.sft import peft_trainer as T

    M = importlib.import_module("tunix.models.qwen3.model")
    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(getattr(M.ModelConfig, config)(), remat_config=getattr(M.RematConfig, remat), dtype=jnp.bfloat16, param_dtype=getattr(jnp, dtype))
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))
    inputs = lambda: dict(
        input_tokens=S("int32", batch, length), input_mask=S("bool", batch, length), positions=S("int32", batch, length),
        attention_mask=S("bool", batch, length, length))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-5, 10, 1000)))
    return step(lambda: M.Qwen3(config, rngs=nnx.Rngs(0)), transform, devices, inputs, T._default_loss_fn, False, donate_model)
