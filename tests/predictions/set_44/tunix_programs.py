"""google-tunix: LoRA (qwix, nothing quantised) of its Qwen3 4B pruned to 12 layers, frozen weights in bfloat16, by its trainer's own step and loss, over both axes."""

import dataclasses
import types

import jax
import optax
import qwix
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh
from tunix_pieces import constrained, halved


def lora(topology, shape, batch, length=1024, rank=16, depth=12, remat="NONE", donate=True):
    from tunix.models.qwen3 import model as M
    from tunix.sft import peft_trainer as T

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

    model = nnx.eval_shape(build)
    transform = optax.adamw(1e-4)
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
