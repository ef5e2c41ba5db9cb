"""Haiku: GPT under hk.layer_stack; micro-batches within the loss: a scan of checkpointed losses, whose derivative sums the gradients; data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from haiku_pieces import Layer
from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


def gpt(topology, chips, batch, micro=4, length=1024, words=32128, width=1024, heads=16, depth=16, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def forward(tokens):
        table = hk.get_parameter("wte", [words, width], init=hk.initializers.RandomNormal(0.02))
        x = table[tokens] + hk.get_parameter("wpe", [length, width], init=hk.initializers.RandomNormal(0.02))
        layer = lambda x: Layer(heads, name="h")(x)
        x = hk.layer_stack(depth)(hk.remat(layer) if remat else layer)(x)
        return hk.LayerNorm(-1, True, True, name="ln_f")(x) @ table.T

    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, length), "int32")), whole)
    transform = optax.adamw(3e-4)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def update(params, opt_state, tokens):
        parts = jax.lax.with_sharding_constraint(tokens.reshape(-1, micro, length).swapaxes(0, 1), NamedSharding(devices, P(None, "data")))

        def loss_fn(params):
            @jax.checkpoint
            def one(total, part):
                logits = net.apply(jax.tree.map(lambda a: a.astype(HALF), params), part).astype(jnp.float32)
                return total + optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], part[:, 1:]).mean(), None

            return jax.lax.scan(one, 0.0, parts)[0] / micro

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(update, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
