"""google-tunix: distillation by its LogitStrategy (temperature 2, half of it hard labels) of its Llama 3.2 1B, in bfloat16, fully sharded, its trainer's own step; the teacher's logits come with the batch."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import mesh
from tunix_pieces import constrained, halved, step


def distill(topology, shape, rows, length=1024, remat="NONE", donate=True):
    from tunix.distillation.strategies import logit
    from tunix.models.llama3 import model as M

    devices = mesh(topology, shape, ("fsdp", "tp"))
    constrained(M, devices)
    config = dataclasses.replace(M.ModelConfig.llama3p2_1b(), remat_config=getattr(M.RematConfig, remat))
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))

    def forward(model, input_tokens, positions, attention_mask):
        return model(input_tokens, positions=positions, cache=None, attention_mask=attention_mask)[0]

    def labels(input_tokens, positions, attention_mask):
        return jax.nn.one_hot(jnp.roll(input_tokens, -1, 1), config.vocab_size)

    strategy = logit.LogitStrategy(forward, forward, labels, temperature=2.0, alpha=0.5)
    loss_fn = lambda model, inputs, teacher_output: strategy.get_train_loss(model, teacher_output, inputs)

    def inputs():
        tokens = dict(input_tokens=S("int32", rows, length), positions=S("int32", rows, length), attention_mask=S("bool", rows, length, length))
        return dict(inputs=tokens, teacher_output=S("bfloat16", rows, length, config.vocab_size))

    made = step(lambda: halved(M.Llama3(config, rngs=nnx.Rngs(0))), optax.adamw(1e-5), devices, inputs, loss_fn, True, True)
    if not donate:
        made.donate = ()
    return made
