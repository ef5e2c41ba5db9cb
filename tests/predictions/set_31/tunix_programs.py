"""google-tunix: QLoRA (qwix, nf4) of its Gemma 2 2B by its trainer's own step and loss, as its notebook has it, by tensor parallelism."""

import dataclasses
import types

import jax
import optax
import qwix
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh
from tunix_pieces import constrained


def qlora(topology, shape, batch, length=512, rank=16, remat="NONE", donate=True):
    from tunix.models.gemma import model as M
    from tunix.sft import peft_trainer as T

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

    model = nnx.eval_shape(build)
    transform = optax.adamw(1e-3)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.LoRAParam), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())

        def one(leaf, spec):
            sharding = where(spec)
            try:
                sharding.shard_shape(leaf.shape)
            except ValueError:
                sharding = where(None)
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

        return jax.tree.map(one, tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))
    inputs = dict(input_tokens=S("int32", batch, length), input_mask=S("bool", batch, length), positions=S("int32", batch, length), attention_mask=S("bool", batch, length, length))
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=T._default_loss_fn, _lora_enabled=True, _has_aux=False)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        loss, aux, norm = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), loss, aux, norm

    outs = (shardings(net_state), shardings(opt_state), None, None, None)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input") if "rngs" not in path else "other"
    return Program(_train_step, (net_state, opt_state, inputs), classify, (0, 1) if donate else (1,), outs)
