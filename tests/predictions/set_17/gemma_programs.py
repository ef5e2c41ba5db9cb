"""The gemma library: direct preference optimisation by its own DpoLoss and a frozen anchor; texts scored by Gemma 3n."""

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, largest_dimension, mesh, placed


def half(tree):
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "bfloat16" if jnp.issubdtype(a.dtype, jnp.floating) else a.dtype), tree)


def dpo(topology, chips, pairs, length, remat=False, shard=False, donate=True):
    """Gemma 3 1B in bfloat16, Adafactor."""
    from gemma import gm
    from gemma.gm.nn import _modules as M

    if remat:
        M.Block = nn.remat(M.Block)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    net = gm.nn.AnchoredPolicy(policy=gm.nn.Gemma3_1B(dtype=jnp.bfloat16))
    params = half(jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 2, 32), "int32")))["params"])
    transform = optax.adafactor(1e-5)
    cut = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    policy, anchor = placed(params["policy"], cut), placed(params["anchor"], cut)
    state = placed(jax.eval_shape(transform.init, params["policy"]), cut)
    loss = gm.losses.DpoLoss(tau=0.1, tokens="a", sequence_mask="b", policy_logits="c", anchor_logits="d")

    def train_step(policy, anchor, opt_state, tokens, mask):
        def loss_fn(policy):
            out = net.apply({"params": {"policy": policy, "anchor": anchor}}, tokens=tokens)
            values = loss.get_values(
                tokens=tokens[..., 1:], sequence_mask=mask[..., 1:], policy_logits=out.policy.logits[..., :-1, :], anchor_logits=out.anchor.logits[..., :-1, :])
            return values.mean()

        value, grads = jax.value_and_grad(loss_fn)(policy)
        updates, opt_state = transform.update(grads, opt_state, policy)
        return optax.apply_updates(policy, updates), opt_state, value

    S = lambda d: jax.ShapeDtypeStruct((pairs, 2, length), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (policy, anchor, state, S("int32"), S("bool")), classify, (0, 2) if donate else ())


def score(topology, chips, batch, length, shard=False):
    """The log-likelihood of every token by Gemma 3n E2B, as gm.evals would need it."""
    from gemma import gm

    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    from gemma.gm.nn import gemma3n

    net = gemma3n.Gemma3n_E2B(dtype=jnp.bfloat16) if hasattr(gemma3n, "Gemma3n_E2B") else gm.nn.Gemma3n_E2B(dtype=jnp.bfloat16)
    params = half(jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"])
    params = placed(params, largest_dimension(devices, "fsdp", 1 << 16) if shard else whole)

    def score(params, tokens):
        logits = net.apply({"params": params}, tokens=tokens).logits.astype(jnp.float32)
        return -optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:])

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(score, (params, tokens), lambda path: "weight" if path.startswith("[0]") else "input")
