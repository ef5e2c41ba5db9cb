"""jraph: GraphCast of one degree (65160 places of the grid, 10242 of the mesh with 81900 edges of all its levels, latents of 512, 16 layers of the processor one after another) learns the weather six hours on, float32, AdamW, states of the weather divided over devices by shard_map."""

import jax
import jax.numpy as jnp
import jraph
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def graphcast(topology, chips, batch, grid=65160, points=10242, edges=81900, to_mesh=104260, latent=512, depth=16, given=186, wanted=83, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole = NamedSharding(devices, P())
    to_grid = 3 * grid
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")

    def mlp(a, b=latent, norm=True):
        made = {"in": F(a, latent), "in_bias": F(latent), "out": F(latent, b), "out_bias": F(b)}
        return {**made, "scale": F(b), "offset": F(b)} if norm else made

    layer = lambda: {"edges": mlp(3 * latent), "nodes": mlp(2 * latent)}
    params = {
        "embed_grid": mlp(given + 3), "embed_mesh": mlp(given + 3), "embed_to_mesh": mlp(4), "embed_edges": mlp(4), "embed_to_grid": mlp(4),
        "encoder": {"edges": mlp(3 * latent), "mesh": mlp(2 * latent), "grid": mlp(latent)}, "processor": [layer() for _ in range(depth)],
        "decoder": {"edges": mlp(3 * latent), "grid": mlp(2 * latent)}, "head": mlp(latent, wanted, False)}
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(32.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-3, 1000, 300000), b2=0.95, weight_decay=0.1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def through(w, *parts):
        x = jnp.concatenate(parts, -1) if len(parts) > 1 else parts[0]
        x = jax.nn.silu(x @ w["in"].astype(x.dtype) + w["in_bias"].astype(x.dtype))
        x = x @ w["out"].astype(x.dtype) + w["out_bias"].astype(x.dtype)
        if "scale" not in w:
            return x
        y = x - x.mean(-1, keepdims=True)
        return y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5) * w["scale"].astype(x.dtype) + w["offset"].astype(x.dtype)

    def process(w, graph):
        sent = through(w["edges"], graph.edges, graph.nodes[graph.senders], graph.nodes[graph.receivers])
        got = jraph.segment_sum(sent, graph.receivers, points)
        return graph._replace(nodes=graph.nodes + through(w["nodes"], graph.nodes, got), edges=graph.edges + sent)

    def forward(params, weather, static):
        """weather [places, states, fields]"""
        count = weather.shape[1]
        spread = lambda a: jnp.broadcast_to(a.astype(compute)[:, None], (a.shape[0], count, a.shape[1]))
        graph, up, down = static["mesh"], static["to_mesh"], static["to_grid"]
        on_grid = through(params["embed_grid"], weather.astype(compute), spread(static["places"]))
        empty = jnp.zeros((points, count, given), compute)
        on_mesh = through(params["embed_mesh"], empty, spread(graph.nodes))
        w = params["encoder"]
        sent = through(w["edges"], through(params["embed_to_mesh"], spread(up["edges"])), on_grid[up["senders"]], on_mesh[up["receivers"]])
        on_mesh = on_mesh + through(w["mesh"], on_mesh, jraph.segment_sum(sent, up["receivers"], points))
        on_grid = on_grid + through(w["grid"], on_grid)
        graph = graph._replace(nodes=on_mesh, edges=through(params["embed_edges"], spread(graph.edges)))
        one = jax.checkpoint(process) if remat else process
        for w in params["processor"]:
            graph = one(w, graph)
        w = params["decoder"]
        sent = through(w["edges"], through(params["embed_to_grid"], spread(down["edges"])), graph.nodes[down["senders"]], on_grid[down["receivers"]])
        on_grid = on_grid + through(w["grid"], on_grid, jraph.segment_sum(sent, down["receivers"], grid))
        return through(params["head"], on_grid).astype(jnp.float32)

    def loss_fn(params, weather, after, static):
        wrong = (forward(params, weather, static) - after) ** 2
        return (wrong.mean(1) * static["area"][:, None]).mean()

    def on_device(params, weather, after, static):
        loss, grads = jax.value_and_grad(loss_fn)(params, weather, after, static)
        return jax.lax.pmean(loss, "data"), jax.lax.pmean(grads, "data")

    each = jax.shard_map(on_device, mesh=devices, in_specs=(P(), P(None, "data"), P(None, "data"), P()), out_specs=(P(), P()), check_vma=False)

    def train_step(params, opt_state, weather, after, static):
        loss, grads = each(params, weather, after, static)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=whole)
    B = lambda n: jax.ShapeDtypeStruct((grid, batch, n), "float32", sharding=NamedSharding(devices, P(None, "data")))
    links = lambda n: {"edges": A("float32", n, 4), "senders": A("int32", n), "receivers": A("int32", n)}
    graph = jraph.GraphsTuple(
        nodes=A("float32", points, 3), edges=A("float32", edges, 4), senders=A("int32", edges), receivers=A("int32", edges), globals=None, n_node=A("int32", 1), n_edge=A("int32", 1))
    static = {"places": A("float32", grid, 3), "area": A("float32", grid), "mesh": graph, "to_mesh": links(to_mesh), "to_grid": links(to_grid)}
    return Program(train_step, (params, opt, B(given), B(wanted), static), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
