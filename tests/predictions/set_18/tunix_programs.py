"""google-tunix: supervised training of its Llama 3.2 (gradients accumulated by optax.MultiSteps, as its trainer does) and of its Gemma 4, with its own step."""

import dataclasses

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, step


def sft(kind, config, topology, shape, batch, length, remat="NONE", donate_model=False, constrain=True, transform=None, **more):
    import importlib

    from tunix.sft import peft_trainer as T

    M = importlib.import_module(f"tunix.models.{kind}.model")
    devices = mesh(topology, shape, ("fsdp", "tp"))
    if constrain:
        constrained(M, devices)
    config = dataclasses.replace(getattr(M.ModelConfig, config)(), remat_config=getattr(M.RematConfig, remat), **more)
    net = {"gemma3": lambda: M.Gemma3(config, rngs=nnx.Rngs(0)), "qwen3": lambda: M.Qwen3(config, rngs=nnx.Rngs(0)), "llama3": lambda: M.Llama3(config, rngs=nnx.Rngs(0)), "gemma4": lambda: M.Gemma4(config, rngs=nnx.Rngs(0))}[kind]
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))
    inputs = lambda: dict(
        input_tokens=S("int32", batch, length), input_mask=S("bool", batch, length), positions=S("int32", batch, length),
        attention_mask=S("bool", batch, length, length))
    transform = {None: optax.adamw(1e-5), "adafactor": optax.adafactor(1e-3), "multi": optax.MultiSteps(optax.adamw(1e-5), every_k_schedule=4)}[transform]
    return step(net, transform, devices, inputs, T._default_loss_fn, False, donate_model)
