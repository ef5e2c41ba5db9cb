"""google-tunix: ORPO by its own trainer's loss, of its Qwen 2.5."""

import dataclasses
import importlib

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, step


def orpo(topology, shape, pairs, prompt, response, config="qwen2p5_1p5b", remat="NONE", donate_model=False, transform="adamw"):
    from tunix.sft.dpo import dpo_trainer as D

    M = importlib.import_module("tunix.models.qwen2.model")
    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(getattr(M.ModelConfig, config)(), remat_config=getattr(M.RematConfig, remat))
    split = NamedSharding(devices, P("fsdp"))
    rows, total = 2 * pairs, prompt + response
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=split)

    def inputs():
        return dict(train_example=D.TrainExample(
            input_ids=S("int32", rows, total), positions=S("int32", rows, total), attention_mask=S("bool", rows, total, total),
            ref_chosen_logps=None, ref_rejected_logps=None, completion_mask=S("float32", rows, response), logits_to_keep=response))

    def loss_fn(model, train_example):
        return D.dpo_loss_fn(model, train_example, algorithm="orpo", lambda_orpo=0.1)

    made = {"adamw": lambda: optax.adamw(1e-5), "lion": lambda: optax.lion(1e-5), "adafactor": lambda: optax.adafactor(1e-4)}[transform]()
    return step(lambda: M.Qwen2(config, rngs=nnx.Rngs(0)), made, devices, inputs, loss_fn, True, donate_model)
