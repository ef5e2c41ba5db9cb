"""google-tunix: DPO (its own loss and its trainer's own step, the model not donated, as there) of its Llama 3.2 3B, weights in bfloat16, what the reference says given, fully sharded."""

import dataclasses
import types

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh
from tunix_pieces import halved


def dpo(topology, shape, batch, prompt=512, answer=512, depth=28, remat=False, donate=False):
    """`batch` pairs of answers."""
    from tunix.models.llama3 import model as M
    from tunix.sft import peft_trainer as T
    from tunix.sft.dpo import dpo_trainer as D

    devices = mesh(topology, shape, ("fsdp", "tp"))
    devices.__enter__()
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if remat:
        M.DecoderLayer.__call__ = nnx.remat(M.DecoderLayer.__call__)
    config = dataclasses.replace(M.ModelConfig.llama3_2_3b(), num_layers=depth)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 5e-7, 100, 1000), weight_decay=0.0))
    length = prompt + answer
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P("fsdp")))

    def inputs():
        return D.TrainExample(
            input_ids=S("int32", 2 * batch, length), positions=S("int32", 2 * batch, length), attention_mask=S("bool", 2 * batch, length, length),
            ref_chosen_logps=S("float32", batch), ref_rejected_logps=S("float32", batch), completion_mask=S("int32", 2 * batch, answer), logits_to_keep=answer)

    def loss(model, train_example):
        return D.dpo_loss_fn(model, train_example, "dpo", 0.1, 0.0, 0.0)

    model = nnx.eval_shape(lambda: halved(M.Llama3(config, rngs=nnx.Rngs(params=0))))
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())
        return jax.tree.map(lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where(spec)), tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=loss, _lora_enabled=False, _has_aux=True)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        out = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), out

    outs = (shardings(net_state), shardings(opt_state), None)
    return Program(_train_step, (net_state, opt_state, {"train_example": inputs()}), kind_of_step, (0, 1) if donate else (1,), outs)
