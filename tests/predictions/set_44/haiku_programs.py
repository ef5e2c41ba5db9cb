"""Haiku: MeshGraphNets (a cloth or flow over meshes; nodes and edges made over by turns, edges summed by segment_sum), 15 steps one after another, several meshes on each device, in float32, Adam, data parallel, whole state on every device."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


class MLP(hk.Module):
    def __init__(self, width, out, normed=True, name=None):
        super().__init__(name=name)
        self.sizes, self.normed = (width, width, out), normed

    def __call__(self, x):
        for i, size in enumerate(self.sizes):
            w = hk.get_parameter(f"w_{i}", (x.shape[-1], size), init=hk.initializers.TruncatedNormal(x.shape[-1] ** -0.5))
            x = x @ w.astype(x.dtype) + hk.get_parameter(f"b_{i}", (size,), init=jnp.zeros).astype(x.dtype)
            x = x if i == len(self.sizes) - 1 else jax.nn.relu(x)
        return hk.LayerNorm(-1, True, True, name="norm")(x.astype(jnp.float32)).astype(x.dtype) if self.normed else x


class Step(hk.Module):
    """One passing of messages in every mesh, [meshes, nodes or edges, width]."""

    def __init__(self, width, name=None):
        super().__init__(name=name)
        self.width = width

    def __call__(self, nodes, edges, senders, receivers):
        pick = jax.vmap(lambda a, i: a[i])
        new = MLP(self.width, self.width, name="edges")(jnp.concatenate([edges, pick(nodes, senders), pick(nodes, receivers)], -1))
        count = nodes.shape[1]
        summed = jax.vmap(lambda a, i: jax.ops.segment_sum(a, i, count))(new, receivers)
        nodes = nodes + MLP(self.width, self.width, name="nodes")(jnp.concatenate([nodes, summed], -1))
        return nodes, edges + new


def meshes(topology, chips, batch, nodes=4096, edges=24576, seen=12, links=7, width=128, steps=15, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def graph(data):
        n = MLP(width, width, name="encode_nodes")(data["nodes"].astype(compute))
        e = MLP(width, width, name="encode_edges")(data["edges"].astype(compute))
        for i in range(steps):
            step = Step(width, name=f"step_{i}")
            n, e = (hk.remat(step) if remat else step)(n, e, data["senders"], data["receivers"])
        return MLP(width, 3, normed=False, name="decode")(n).astype(jnp.float32)

    def shapes(rows, sharding):
        S = lambda d, *s: jax.ShapeDtypeStruct((rows, *s), d, sharding=sharding)
        return {"nodes": S("float32", nodes, seen), "edges": S("float32", edges, links), "senders": S("int32", edges), "receivers": S("int32", edges), "wanted": S("float32", nodes, 3), "free": S("float32", nodes)}

    net = hk.without_apply_rng(hk.transform(graph))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), shapes(1, whole)), whole)
    transform = optax.adam(1e-4)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        wrong = jnp.square(net.apply(params, data) - data["wanted"]).sum(-1)
        return (wrong * data["free"]).sum() / data["free"].sum()

    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, shapes(batch, split)), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
