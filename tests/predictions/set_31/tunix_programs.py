"""google-tunix: QLoRA (qwix, nf4) of its Gemma 2 2B by its trainer's own step and loss, as its notebook has it, by tensor parallelism."""

import dataclasses

import jax
import optax
import qwix
from flax import nnx

from recipe import mesh
from tunix_pieces import adapters, constrained


def qlora(topology, shape, batch, length=512, rank=16, remat="NONE", donate=True):
    from tunix.models.gemma import model as M

    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.gemma2_2b(), remat_config=getattr(M.RematConfig, remat))
    devices.__enter__()

    def build():
        net = M.Gemma(config, rngs=nnx.Rngs(params=0))
        nnx.update(net, jax.tree.map(lambda a: a.astype("bfloat16") if a.dtype == "float32" else a, nnx.state(net)))
        provider = qwix.LoraProvider(module_path=".*q_einsum|.*kv_einsum|.*gate_proj|.*down_proj|.*up_proj", rank=rank, alpha=2.0, weight_qtype="nf4", tile_size=256)
        net = qwix.apply_lora_to_model(net, provider, **net.get_model_input(), rngs=nnx.Rngs(0))
        net.set_attributes(qwix_rngs=nnx.Rngs(0))  # again: qwix 0.1.8 sees the kernels of nnx.Linear only once they are quantised
        net(**net.get_model_input())
        net.set_attributes(qwix_rngs=None)
        return net

    return adapters(build, optax.adamw(1e-3), devices, batch, length, donate)
