"""google-tunix: DPO on its Gemma 3, supervised training of its Qwen 2.5 with gradients accumulated by optax.MultiSteps."""
import dataclasses, types
import jax, jax.numpy as jnp, optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh


def step(build, tx, m, make_inputs, loss_fn, has_aux, donate_model):
    from tunix.sft import peft_trainer as T
    m.__enter__()
    model = nnx.eval_shape(build)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, tx, wrt=nnx.Param), model)

    def spec(tree):
        one = lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(m, s if isinstance(s, P) else P()))
        return jax.tree.map(one, tree, nnx.get_partition_spec(tree))

    (gm, sm), (go, so) = nnx.split(model), nnx.split(optimizer)
    sm, so = spec(sm), spec(so)
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=loss_fn, _lora_enabled=False, _has_aux=has_aux)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(gm, model), nnx.merge(go, optimizer)
        loss, aux, norm = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), loss, aux, norm

    where = lambda t: jax.tree.map(lambda a: a.sharding, t)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(_train_step, (sm, so, make_inputs()), classify, (0, 1) if donate_model else (1,), (where(sm), where(so), None, None, None))


def constrained(module, m):
    """tunix leaves its own constraints out where the first device is a CPU, as here: put back."""
    put = lambda x, s, *a, **k: jax.lax.with_sharding_constraint(x, NamedSharding(m, P(*s)))
    for name in ("shard",):
        if hasattr(module, name):
            setattr(module, name, put)
    from tunix.utils import sharding_utils
    sharding_utils.shard = put


def dpo(topology, shape, pairs, prompt, answer, remat="DECODER", donate_model=False, constrain=True):
    from tunix.models.gemma3 import model as M
    from tunix.sft.dpo import dpo_trainer as D
    m = mesh(topology, shape, ("fsdp", "tp"))
    if constrain:
        constrained(M, m)
    config = dataclasses.replace(M.ModelConfig.gemma3_1b_pt(), remat_config=getattr(M.RematConfig, remat))
    B = NamedSharding(m, P("fsdp")); S = lambda s, d: jax.ShapeDtypeStruct(s, d, sharding=B)
    batch, length = 2 * pairs, prompt + answer
    inputs = lambda: {"train_example": D.TrainExample(input_ids=S((batch, length), "int32"), positions=S((batch, length), "int32"), attention_mask=S((batch, length, length), "bool"),
                      ref_chosen_logps=S((pairs,), "float32"), ref_rejected_logps=S((pairs,), "float32"), completion_mask=S((batch, answer), "int32"), logits_to_keep=answer)}
    return step(lambda: M.Gemma3(config, rngs=nnx.Rngs(0)), optax.adamw(1e-6), m, inputs, D.dpo_loss_fn, True, donate_model)


def qwen(topology, shape, batch, length, remat="NONE", accumulate=2, donate_model=True, constrain=True):
    from tunix.models.qwen2 import model as M
    from tunix.sft import peft_trainer as T
    m = mesh(topology, shape, ("fsdp", "tp"))
    if constrain:
        constrained(M, m)
    config = dataclasses.replace(M.ModelConfig.qwen2p5_0p5b(), remat_config=getattr(M.RematConfig, remat))
    B = NamedSharding(m, P("fsdp")); S = lambda s, d: jax.ShapeDtypeStruct(s, d, sharding=B)
    inputs = lambda: dict(input_tokens=S((batch, length), "int32"), input_mask=S((batch, length), "bool"), positions=S((batch, length), "int32"), attention_mask=S((batch, length, length), "bool"))
    tx = optax.MultiSteps(optax.adamw(1e-5), accumulate)
    return step(lambda: M.Qwen2(config, rngs=nnx.Rngs(0)), tx, m, inputs, T._default_loss_fn, False, donate_model)
