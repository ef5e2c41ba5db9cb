"""jraph: DeeperGCN (28 layers of 128 by lax.scan, messages weighed by a softmax over each node's neighbours, for every channel) learns ogbn-products' 47 classes from clusters of its graph, one cluster of 120000 nodes and 1.2 million edges of each device, weights in float32, Adam, data parallel."""

import jax
import jax.numpy as jnp
import jraph
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def deepergcn(topology, chips, nodes=120000, edges=1200000, given=100, width=128, depth=28, classes=47, compute="float32", remat=False, donate=True):
    """`nodes` and `edges` are of one device."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    layers = {
        "scale": F(depth, width), "offset": F(depth, width), "heat": F(depth, 1), "in": F(depth, width, 2 * width), "in_bias": F(depth, 2 * width),
        "in_scale": F(depth, 2 * width), "in_offset": F(depth, 2 * width), "out": F(depth, 2 * width, width), "out_bias": F(depth, width)}
    params = placed({"embed": F(given, width), "layers": layers, "scale": F(width), "offset": F(width), "head": F(width, classes)}, whole)
    transform = optax.adam(1e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def norm(x, scale, offset):
        y = x.astype(jnp.float32)
        y = y - y.mean(-1, keepdims=True)
        y = y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5)
        return y.astype(x.dtype) * scale.astype(x.dtype) + offset.astype(x.dtype)

    def forward(params, graph):
        count = graph.nodes.shape[0]

        def layer(x, w):
            h = jax.nn.relu(norm(x, w["scale"], w["offset"]))
            sent = jax.nn.relu(h[graph.senders]) + jnp.asarray(1e-7, x.dtype)
            share = jraph.segment_softmax(sent * w["heat"].astype(x.dtype), graph.receivers, count)
            h = h + jraph.segment_sum(sent * share, graph.receivers, count)
            h = h @ w["in"].astype(x.dtype) + w["in_bias"].astype(x.dtype)
            h = jax.nn.relu(norm(h, w["in_scale"], w["in_offset"]))
            return x + h @ w["out"].astype(x.dtype) + w["out_bias"].astype(x.dtype), None

        x = graph.nodes.astype(compute) @ params["embed"].astype(compute)
        x, _ = jax.lax.scan(jax.checkpoint(layer) if remat else layer, x, params["layers"])
        return (jax.nn.relu(norm(x, params["scale"], params["offset"])) @ params["head"].astype(compute)).astype(jnp.float32)

    def loss_fn(params, graph, labels, mask):
        wrong = optax.softmax_cross_entropy_with_integer_labels(forward(params, graph), labels)
        return (wrong * mask).sum() / jnp.maximum(mask.sum(), 1.0)

    def on_device(params, graph, labels, mask):
        loss, grads = jax.value_and_grad(loss_fn)(params, graph, labels, mask)
        return jax.lax.pmean(loss, "data"), jax.lax.pmean(grads, "data")

    each = jax.shard_map(on_device, mesh=devices, in_specs=(P(), P("data"), P("data"), P("data")), out_specs=(P(), P()), check_vma=False)

    def train_step(params, opt_state, graph, labels, mask):
        loss, grads = each(params, graph, labels, mask)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((chips * s[0], *s[1:]), d, sharding=split)
    graph = jraph.GraphsTuple(
        nodes=S("float32", nodes, given), edges=None, senders=S("int32", edges), receivers=S("int32", edges), globals=None, n_node=S("int32", 1), n_edge=S("int32", 1))
    return Program(train_step, (params, opt, graph, S("int32", nodes), S("float32", nodes)), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
