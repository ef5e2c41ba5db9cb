"""google-tunix: DPO on its Gemma 3, supervised training of its Qwen 2.5 with gradients accumulated by optax.MultiSteps."""
import dataclasses
import jax, optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import mesh
from tunix_pieces import constrained, step


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
