"""The gemma library: Gemma 3 4B tuned on questions about images; its vision encoder (frozen by the library itself) runs in the step."""

import functools

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def vision(topology, chips, batch, length, remat=0, shard=True, donate=True, chunk_loss=1):
    from gemma import gm
    from gemma.gm.nn import _modules as M

    if remat:
        plain, kept = M.Block, nn.remat(M.Block)
        M.Block = lambda *a, **k: (kept if int(k["name"].split("_")[-1]) < remat else plain)(*a, **k)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    net = gm.nn.Gemma3_4B(dtype=jnp.bfloat16)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "float32"), params)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5, mu_dtype=jnp.bfloat16))
    cut = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    params = placed(params, cut)
    state = placed(jax.eval_shape(transform.init, params), cut)

    def vqa_step(params, opt_state, batch):
        def loss_fn(params):
            half = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
            half["vision_encoder"] = params["vision_encoder"]
            out = net.apply({"params": half}, tokens=batch["text"], images=batch["image"])
            losses = optax.softmax_cross_entropy_with_integer_labels(out.logits[:, :-1].astype(jnp.float32), batch["text"][:, 1:])
            return (losses * batch["mask"][:, 1:]).sum() / batch["mask"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    data = {"text": S("int32", length), "image": S("uint8", 1, 896, 896, 3), "mask": S("float32", length)}
    return Program(vqa_step, (params, state, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
