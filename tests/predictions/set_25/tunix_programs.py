"""google-tunix: LoRA (by qwix) of its Gemma 3 4B on its own trainer's step and loss."""

import dataclasses
import importlib
import types

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh
from tunix_pieces import constrained


def lora(topology, shape, batch, length, config="gemma3_4b_it", rank=32, remat="NONE", donate=True):
    import qwix
    from tunix.sft import peft_trainer as T

    M = importlib.import_module("tunix.models.gemma3.model")
    devices = mesh(topology, shape, ("fsdp", "tp"))
    devices.__enter__()
    config = dataclasses.replace(getattr(M.ModelConfig, config)(), remat_config=getattr(M.RematConfig, remat))
    provider = qwix.LoraProvider(module_path=".*q_einsum|.*kv_einsum|.*attn_vec_einsum|.*gate_proj|.*up_proj|.*down_proj", rank=rank, alpha=2.0 * rank)

    def build():
        net = M.Gemma3(config, rngs=nnx.Rngs(0))
        net = qwix.apply_lora_to_model(net, provider, **net.get_model_input(), rngs=nnx.Rngs(1))
        state = nnx.state(net)  # as its loader of checkpoints makes it: bfloat16
        nnx.update(net, jax.tree.map(lambda a: a.astype(jnp.bfloat16) if a.dtype == jnp.float32 else a, state))
        return net

    model = nnx.eval_shape(build)
    constrained(M, devices)
    transform = optax.adamw(1e-4)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.LoRAParam), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())
        one = lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where(spec))
        return jax.tree.map(one, tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=T._default_loss_fn, _lora_enabled=True, _has_aux=False)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        loss, aux, norm = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), loss, norm

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=NamedSharding(devices, P("fsdp")))
    inputs = dict(input_tokens=S("int32", length), input_mask=S("bool", length), positions=S("int32", length), attention_mask=S("bool", length, length))
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(_train_step, (net_state, opt_state, inputs), classify, (0, 1) if donate else (), (shardings(net_state), shardings(opt_state), None, None))
