"""google-tunix: direct preference optimisation (its DPO loss and its trainer's own step) of all weights of its Gemma 3 1B pruned to 12 layers, in bfloat16, fully sharded."""

import dataclasses
import types

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh


def dpo(topology, shape, batch, prompt=512, answer=512, depth=12, remat=False, donate=True):
    """`batch` pairs; the reference's probabilities are given."""
    from tunix.models.gemma3 import model as M
    from tunix.sft import peft_trainer as T
    from tunix.sft.dpo import dpo_trainer as D

    devices = mesh(topology, shape, ("fsdp", "tp"))
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    devices.__enter__()
    if remat:
        M.Block.__call__ = nnx.remat(M.Block.__call__)
    config = dataclasses.replace(M.ModelConfig.gemma3_1b(), num_layers=depth)
    model = nnx.eval_shape(lambda: M.Gemma3(config, rngs=nnx.Rngs(params=0)))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-6))
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())
        return jax.tree.map(lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where(spec)), tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P("fsdp")))
    rows, length = 2 * batch, prompt + answer
    example = D.TrainExample(
        input_ids=S("int32", rows, length), positions=S("int32", rows, length), attention_mask=S("bool", rows, length, length),
        ref_chosen_logps=S("float32", batch), ref_rejected_logps=S("float32", batch), completion_mask=S("bool", rows, answer), logits_to_keep=answer)
    given = lambda x: {"train_example": x, "algorithm": "dpo", "beta": 0.1, "label_smoothing": 0.0}
    trainer = types.SimpleNamespace(gen_model_input_fn=given, loss_fn=D.dpo_loss_fn, _lora_enabled=False, _has_aux=True)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        loss, aux = T.PeftTrainer._train_step(trainer, net, opt, inputs)[:2]
        return nnx.state(net), nnx.state(opt), loss, aux

    outs = (shardings(net_state), shardings(opt_state), None, None)
    return Program(_train_step, (net_state, opt_state, example), kind_of_step, (0, 1) if donate else (1,), outs)
