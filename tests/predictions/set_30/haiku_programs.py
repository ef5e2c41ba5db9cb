"""Haiku: RLHF's step of a policy with a value head (hk.layer_stack), the whole distribution's KL to a frozen reference; data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from haiku_pieces import Layer
from pieces import HALF, shardings
from recipe import Program, largest_dimension, mesh, placed


def rlhf(topology, chips, batch, length=1024, words=50304, width=1280, heads=20, depth=24, remat=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def forward(tokens):
        table = hk.get_parameter("wte", [words, width], init=hk.initializers.RandomNormal(0.02))
        x = table[tokens] + hk.get_parameter("wpe", [length, width], init=hk.initializers.RandomNormal(0.02))
        layer = lambda x: Layer(heads, name="h")(x)
        x = hk.layer_stack(depth)(hk.remat(layer) if remat else layer)(x)
        x = hk.LayerNorm(-1, True, True, name="ln_f")(x)
        return (x @ table.T).astype(jnp.float32), hk.Linear(1, name="value_head")(x).astype(jnp.float32)[..., 0]

    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, length), "int32")), whole)
    reference = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, HALF, sharding=whole), params)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-6))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def rlhf_step(params, opt_state, reference, batch):
        tokens, mask = batch["tokens"], batch["mask"]
        ref = jax.lax.stop_gradient(jax.nn.log_softmax(net.apply(reference, tokens)[0][:, :-1]))

        def loss_fn(params):
            logits, values = net.apply(jax.tree.map(lambda a: a.astype(HALF), params), tokens)
            logp = jax.nn.log_softmax(logits[:, :-1])
            chosen = jnp.take_along_axis(logp, tokens[:, 1:, None], -1)[..., 0]
            ratio = jnp.exp(chosen - batch["old_logp"])
            adv = batch["advantages"]
            policy = -jnp.minimum(ratio * adv, jnp.clip(ratio, 0.8, 1.2) * adv)
            kl = (jnp.exp(logp) * (logp - ref)).sum(-1)
            value = (values[:, :-1] - batch["returns"]) ** 2
            return ((policy + 0.05 * kl + 0.1 * value) * mask).sum() / mask.sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, n: jax.ShapeDtypeStruct((batch, n), d, sharding=split)
    data = {"tokens": S("int32", length)} | {k: S("float32", length - 1) for k in ("mask", "old_logp", "advantages", "returns")}
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(rlhf_step, (params, opt, reference, data), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
