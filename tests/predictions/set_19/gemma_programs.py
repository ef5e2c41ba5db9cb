"""The gemma library: quantization-aware training of its Gemma 3 4B by its own wrapper."""

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def qat(topology, chips, batch, length, remat=False, shard=True, dtype="bfloat16", donate=True, model="Gemma3_4B"):
    from gemma import gm, peft
    from gemma.gm.nn import _modules as M

    if remat:
        M.Block = nn.remat(M.Block)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    net = gm.nn.QuantizationAwareWrapper(method=peft.QuantizationMethod.INT4, model=getattr(gm.nn, model)(dtype=jnp.bfloat16, text_only=True))
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, dtype), params)
    transform = optax.sgd(1e-3, momentum=0.9)
    cut = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    params = placed(params, cut)
    state = placed(jax.eval_shape(transform.init, params), cut)

    def train_step(params, opt_state, tokens, mask):
        def loss_fn(params):
            logits = net.apply({"params": params}, tokens=tokens[:, :-1]).logits
            losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), tokens[:, 1:])
            return (losses * mask[:, 1:]).sum() / mask.sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d: jax.ShapeDtypeStruct((batch, length + 1), d, sharding=split)
    return Program(train_step, (params, state, S("int32"), S("float32")), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
