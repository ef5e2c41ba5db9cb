"""Haiku: GraphCast's small size (1 degree, 13 levels; its mesh of 10242 places, 16 steps of messages of 512) learns the weather six hours on; networks of one hidden layer with swish and layer norm, AdamW, float32, data parallel: batches are the second dimension, as in its own code."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def graphcast(topology, chips, batch, high=181, wide=360, mesh_nodes=10242, mesh_edges=81600, to_mesh=101640, fields=186, wanted=83, width=512, steps=16, compute="float32", remat=False, donate=True):
    if compute != "float32":
        policy = jmp.Policy(compute_dtype=jnp.dtype(compute), param_dtype=jnp.float32, output_dtype=jnp.dtype(compute))
        for module in (hk.Linear, hk.LayerNorm):
            hk.mixed_precision.set_policy(module, policy)
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P(None, "data"))
    grid_nodes = high * wide
    to_grid = 3 * grid_nodes

    def net(name, size=width, normed=True):
        def call(*parts):
            x = jnp.concatenate(parts, -1)
            with hk.experimental.name_scope(name):
                x = hk.nets.MLP([width, size], activation=jax.nn.swish, name="mlp")(x)
                return hk.LayerNorm(-1, True, True, name="norm")(x) if normed else x

        return call

    def summed(edges, receivers, count):
        return jax.ops.segment_sum(edges, receivers, count)

    class Interaction(hk.Module):
        """Messages along the edges from one set of nodes to another, or to itself."""

        def __call__(self, edges, sent, got, graph):
            more = net("edges")(edges, sent[graph["senders"]], got[graph["receivers"]])
            got = got + net("nodes")(got, summed(more, graph["receivers"], got.shape[0]))
            return edges + more, got

    def forward(batch):
        wide_as = lambda a: jnp.broadcast_to(a[:, None].astype(compute), (a.shape[0], batch["now"].shape[1], a.shape[1]))
        graphs = batch["graphs"]
        now = batch["now"].astype(compute)
        grid = net("embed_grid")(now, wide_as(batch["grid_places"]))
        places = net("embed_mesh")(jnp.zeros((mesh_nodes, *now.shape[1:]), compute), wide_as(batch["mesh_places"]))
        edges = net("embed_to_mesh")(wide_as(graphs["to_mesh"]["features"]))
        _, seen = Interaction(name="grid_to_mesh")(edges, grid, places, graphs["to_mesh"])
        grid = grid + net("grid_alone")(grid)
        edges = net("embed_mesh_edges")(wide_as(graphs["mesh"]["features"]))
        for i in range(steps):
            step = Interaction(name=f"mesh_{i}")
            edges, seen = (hk.remat(step) if remat else step)(edges, seen, seen, graphs["mesh"])
        edges = net("embed_to_grid")(wide_as(graphs["to_grid"]["features"]))
        _, grid = Interaction(name="mesh_to_grid")(edges, seen, grid, graphs["to_grid"])
        return net("head", wanted, False)(grid).astype(jnp.float32)

    F = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=whole)
    S = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=split)
    graph = lambda n: {"features": F("float32", n, 4), "senders": F("int32", n), "receivers": F("int32", n)}
    data = {
        "now": S(grid_nodes, batch, fields), "change": S(grid_nodes, batch, wanted), "grid_places": F("float32", grid_nodes, 3), "mesh_places": F("float32", mesh_nodes, 3),
        "graphs": {"mesh": graph(mesh_edges), "to_mesh": graph(to_mesh), "to_grid": graph(to_grid)}, "areas": F("float32", grid_nodes), "levels": F("float32", wanted)}
    model = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(model.init, jax.random.key(0), data), whole)
    transform = optax.chain(optax.clip_by_global_norm(32.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 1000, 300000), b2=0.95, weight_decay=0.1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, batch):
        wrong = (model.apply(params, batch) - batch["change"]) ** 2
        return jnp.mean(wrong * batch["areas"][:, None, None] * batch["levels"])

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
