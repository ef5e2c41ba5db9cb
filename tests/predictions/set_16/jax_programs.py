"""JAX alone: recurrent layers scanned over time, their merged gates cut across the devices as they come, the batch over another axis."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


def gru(topology, shape, batch, length, depth, width, vocabulary, remat=False, half=False, zero=False, donate=True):
    devices = mesh(topology, shape, ("data", "model"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda *s, where=(): jax.ShapeDtypeStruct(s, "float32", sharding=on(*where))
    layers = {"in": F(depth, width, 3 * width, where=(None, None, "model")), "again": F(depth, width, 3 * width, where=(None, None, "model")),
              "bias": F(depth, 3 * width, where=(None, "model")), "scale": F(depth, width)}
    params = {"embed": F(vocabulary, width, where=("model",)), "layers": layers, "head": F(width, vocabulary, where=(None, "model"))}
    transform = optax.adamw(1e-3)
    state = following(jax.eval_shape(transform.init, params), params, on())
    if zero:
        cut = {3: on(None, "data", "model"), 2: on("data", "model")}
        pick = lambda path, a: (on("model", "data") if "embed" in path else cut[a.ndim] if "bias" not in path and "scale" not in path and a.ndim > 1 else a.sharding)
        state = placed(state, pick)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    dtype = jnp.bfloat16 if half else jnp.float32

    def layer(x, w):  # [time, batch, width]
        h = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * w["scale"]
        given = h @ w["in"] + w["bias"]

        def one(h, g):
            again = h @ w["again"]
            reset, update = jnp.split(jax.nn.sigmoid(g[..., : 2 * width] + again[..., : 2 * width]), 2, -1)
            new = jnp.tanh(g[..., 2 * width:] + reset * again[..., 2 * width:])
            h = (1 - update) * h + update * new
            return h, h

        _, y = jax.lax.scan(jax.checkpoint(one) if remat else one, jnp.zeros_like(x[0]), given)
        return x + y, None

    def loss_fn(params, tokens):
        params = jax.tree.map(lambda a: a.astype(dtype), params)
        x = jax.lax.with_sharding_constraint(params["embed"][tokens.T], on(None, "data", "model"))
        x, _ = jax.lax.scan(layer, x, params["layers"])
        logits = (x @ params["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:-1], tokens.T[1:]).mean()

    step = training_step(jax.value_and_grad(loss_fn), transform)
    outs = (shardings(params), shardings(state), None)
    return Program(step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), outs)
