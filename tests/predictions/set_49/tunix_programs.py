"""google-tunix: distillation of a teacher's logits (its LogitStrategy, its DistillationTrainer's loss and its trainer's own step) into its Llama 3.2 1B, all weights in bfloat16, fully sharded and tensor parallel; the teacher's logits are given with the texts."""

import types

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh
from tunix_pieces import halved


def distil(topology, shape, batch, length=1024, remat=False, donate=False):
    """Its trainer donates the optimizer alone; with `donate` the model, too."""
    from tunix.distillation import distillation_trainer as D
    from tunix.distillation.strategies import logit
    from tunix.models.llama3 import model as M
    from tunix.sft import peft_trainer as T

    devices = mesh(topology, shape, ("fsdp", "tp"))
    # tunix leaves its own constraints out where the first device is a CPU, as here: put back
    M.shard = lambda x, spec: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    devices.__enter__()
    if remat:
        M.DecoderLayer.__call__ = nnx.remat(M.DecoderLayer.__call__)
    config = M.ModelConfig.llama3_2_1b()
    model = nnx.eval_shape(lambda: halved(M.Llama3(config, rngs=nnx.Rngs(params=0))))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5))
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())
        return jax.tree.map(lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where(spec)), tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)

    def student(model, input_tokens, input_mask):
        positions = jnp.maximum(jnp.cumsum(input_mask, -1) - 1, 0)
        seen = jnp.tril(jnp.ones((length, length), bool))[None] & input_mask[:, None, :]
        return model(input_tokens, positions, None, seen)[0]

    def labels(input_tokens, input_mask):
        return jax.nn.one_hot(jnp.roll(input_tokens, -1, 1), config.vocab_size)

    strategy = logit.LogitStrategy(student, student, labels, temperature=2.0, alpha=0.5)
    distilled = types.SimpleNamespace(strategy=strategy)
    loss_fn = lambda model, teacher_output, inputs: D.DistillationTrainer.get_train_loss(distilled, model, teacher_output, inputs)
    given = lambda x: {"inputs": {"input_tokens": x["tokens"], "input_mask": x["mask"]}, "teacher_output": x["teacher"]}
    trainer = types.SimpleNamespace(gen_model_input_fn=given, loss_fn=loss_fn, _lora_enabled=False, _has_aux=False)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        loss = T.PeftTrainer._train_step(trainer, net, opt, inputs)[0]
        return nnx.state(net), nnx.state(opt), loss

    S = lambda d, *s, spec=P("fsdp"): jax.ShapeDtypeStruct((batch, length, *s), d, sharding=NamedSharding(devices, spec))
    inputs = {"tokens": S("int32"), "mask": S("bool"), "teacher": S("bfloat16", config.vocab_size, spec=P("fsdp", None, "tp"))}
    return Program(_train_step, (net_state, opt_state, inputs), kind_of_step, (0, 1) if donate else (1,), (shardings(net_state), shardings(opt_state), None))
