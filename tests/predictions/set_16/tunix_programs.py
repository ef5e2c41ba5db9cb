"""google-tunix: distillation of logits into its Qwen 2.5 (the teacher's logits come with the batch, as its trainer gives them)."""

import dataclasses

import jax
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, step


def distill(topology, shape, batch, length, remat="NONE", constrain=True, donate_model=False):
    from tunix.distillation.strategies import logit
    from tunix.models.qwen2 import model as M

    devices = mesh(topology, shape, ("fsdp", "tp"))
    if constrain:
        constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.qwen2p5_0p5b(), remat_config=getattr(M.RematConfig, remat))
    S = lambda dtype, *s, where=P("fsdp"): jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, where))
    forward = lambda net, input_tokens, positions, attention_mask: net(input_tokens, positions, None, attention_mask)[0]
    labels = lambda input_tokens, **rest: jax.nn.one_hot(input_tokens, config.vocab_size)
    strategy = logit.LogitStrategy(forward, forward, labels, temperature=2.0, alpha=0.5)

    def inputs():
        return dict(
            teacher_output=S("bfloat16", batch, length, config.vocab_size, where=P("fsdp", None, "tp")),
            inputs=dict(input_tokens=S("int32", batch, length), positions=S("int32", batch, length), attention_mask=S("bool", batch, length, length)))

    def loss_fn(model, teacher_output, inputs):
        return strategy.get_train_loss(model, teacher_output, inputs)

    return step(lambda: M.Qwen2(config, rngs=nnx.Rngs(0)), optax.adamw(1e-5), devices, inputs, loss_fn, True, donate_model)
