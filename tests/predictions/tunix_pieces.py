"""google-tunix' own training step, and its own constraints."""

import types

import jax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program


def step(build, transform, devices, make_inputs, loss_fn, has_aux, donate_model):
    """PeftTrainer's step of the model that `build` makes; the mesh stays entered."""
    from tunix.sft import peft_trainer as T

    devices.__enter__()
    model = nnx.eval_shape(build)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())
        one = lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where(spec))
        return jax.tree.map(one, tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=loss_fn, _lora_enabled=False, _has_aux=has_aux)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        loss, aux, norm = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), loss, aux, norm

    outs = (shardings(net_state), shardings(opt_state), None, None, None)
    return Program(_train_step, (net_state, opt_state, make_inputs()), kind_of_step, (0, 1) if donate_model else (1,), outs)


def constrained(module, devices):
    """tunix leaves its own constraints out where the first device is a CPU, as here: put back."""
    from tunix.utils import sharding_utils

    put = lambda x, spec, *args, **kwargs: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if hasattr(module, "shard"):
        module.shard = put
    sharding_utils.shard = put
