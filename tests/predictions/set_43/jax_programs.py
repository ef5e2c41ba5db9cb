"""JAX alone: a two-tower retriever with a history (items and users by large tables, whole on every device, in-batch softmax with sampled words' correction), AdaGrad of everything, data parallel over 16 devices."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def retrieval(topology, chips, batch, users=2_400_000, items=1_600_000, size=128, history=50, hidden=2048, zero=False, donate=False):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    mlp = lambda *sizes: [{"kernel": F(a, b), "bias": F(b)} for a, b in zip(sizes, sizes[1:])]
    params = {"tables": {"users": F(users, size), "items": F(items, size)}, "query": mlp(2 * size, hidden, hidden, size), "item": mlp(size, hidden, size)}
    params = placed(params, whole)
    transform = optax.adagrad(0.02)
    opt = jax.eval_shape(transform.init, params)
    opt = placed(opt, largest_dimension(devices, "data")) if zero else following(opt, params, whole)

    def through(layers, x):
        for i, layer in enumerate(layers):
            x = x @ layer["kernel"] + layer["bias"]
            x = x if i == len(layers) - 1 else jax.nn.relu(x)
        return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6)

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            tables = params["tables"]
            seen, mask = tables["items"][batch["history"]], (batch["history"] > 0).astype("float32")[..., None]
            mean = (seen * mask).sum(1) / jnp.maximum(mask.sum(1), 1)
            query = through(params["query"], jnp.concatenate([tables["users"][batch["user"]], mean], -1))
            wanted = through(params["item"], tables["items"][batch["item"]])
            # Negatives are those of the same device's part of the batch.
            parts = lambda a: jax.lax.with_sharding_constraint(a.reshape(chips, -1, *a.shape[1:]), split)
            logits = jnp.einsum("cqd,cid->cqi", parts(query), parts(wanted)) / 0.05 - parts(batch["log_frequency"])[:, None]
            return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.arange(logits.shape[-1])[None]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"user": S("int32"), "item": S("int32"), "history": S("int32", history), "log_frequency": S("float32")}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
