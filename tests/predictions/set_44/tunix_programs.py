"""google-tunix: LoRA (qwix, nothing quantised) of its Qwen3 4B pruned to 12 layers, frozen weights in bfloat16, by its trainer's own step and loss, over both axes."""

import dataclasses

import jax
import optax
import qwix
from flax import nnx

from recipe import mesh
from tunix_pieces import adapters, constrained, halved


def lora(topology, shape, batch, length=1024, rank=16, depth=12, remat="NONE", donate=True):
    from tunix.models.qwen3 import model as M

    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.qwen3_4b(), num_layers=depth, remat_config=getattr(M.RematConfig, remat))
    devices.__enter__()

    def build():
        net = halved(M.Qwen3(config, rngs=nnx.Rngs(params=0)))
        provider = qwix.LoraProvider(module_path=".*q_proj|.*k_proj|.*v_proj|.*o_proj|.*gate_proj|.*down_proj|.*up_proj", rank=rank, alpha=32.0)
        given = net.get_model_input()
        given = {n: (jax.numpy.repeat(a, shape[0] // 2, 0) if a is not None and shape[0] > 2 else a) for n, a in given.items()}
        return qwix.apply_lora_to_model(net, provider, **given, rngs=nnx.Rngs(0))

    return adapters(build, optax.adamw(1e-4), devices, batch, length, donate)
