"""JAX and Optax alone: a graph attention network (three layers, three heads of 250) of the whole graph of ogbn-arxiv (169343 papers; 1166243 citations, both ways and to themselves), by gathers and segment sums, on one chip."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def gat(topology, chips, nodes=169343, edges=2501829, given=128, heads=3, size=250, classes=40, depth=3, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole = NamedSharding(devices, P())
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")

    def layer(i):
        a, b = given if i == 0 else heads * size, classes if i == depth - 1 else size
        return {"w": F(a, heads, b), "res": F(a, heads, b), "to": F(heads, b), "from": F(heads, b), "scale": F(heads * b), "bias": F(heads * b)}

    params = placed([layer(i) for i in range(depth)], whole)
    transform = optax.adam(2e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def one(w, x, senders, receivers, last):
        w = jax.tree.map(lambda a: a.astype(compute), w)
        h = jnp.einsum("nd,dhk->nhk", x, w["w"])
        score = (h * w["from"]).sum(-1)[senders] + (h * w["to"]).sum(-1)[receivers]
        score = jax.nn.leaky_relu(score, 0.2).astype(jnp.float32)
        most = jax.ops.segment_max(jax.lax.stop_gradient(score), receivers, nodes)
        score = jnp.exp(score - most[receivers])
        share = (score / jax.ops.segment_sum(score, receivers, nodes)[receivers]).astype(compute)
        out = jax.ops.segment_sum(h[senders] * share[..., None], receivers, nodes)
        out = out + jnp.einsum("nd,dhk->nhk", x, w["res"])
        if last:
            return out.mean(1)
        out = out.reshape(nodes, -1)
        mean, var = out.mean(0), out.var(0)
        return jax.nn.relu((out - mean) * jax.lax.rsqrt(var + 1e-5) * w["scale"] + w["bias"])

    def train_step(params, opt_state, graph):
        def loss_fn(params):
            x = graph["x"].astype(compute)
            for i, w in enumerate(params):
                call = lambda w, x, i=i: one(w, x, graph["senders"], graph["receivers"], i == depth - 1)
                x = (jax.checkpoint(call) if remat else call)(w, x)
            losses = optax.softmax_cross_entropy_with_integer_labels(x.astype(jnp.float32), graph["labels"])
            return (losses * graph["mask"]).sum() / graph["mask"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=whole)
    graph = {"x": A("float32", nodes, given), "senders": A("int32", edges), "receivers": A("int32", edges), "labels": A("int32", nodes), "mask": A("float32", nodes)}
    return Program(train_step, (params, opt, graph), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
