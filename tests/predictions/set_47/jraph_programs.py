"""jraph: SchNet as the Open Catalyst project trains it (1024 wide, 256 filters, 5 interactions, 200 gaussians to 6 angstroms): energies, and forces as their gradient; graphs padded by jraph's sizes, one jraph.GraphsTuple a device, by shard_map, data parallel, float32, AdamW."""

import jax
import jax.numpy as jnp
import jraph
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def schnet(topology, chips, systems, atoms=80, edges=4096, width=1024, filters=256, depth=5, gaussians=200, cutoff=6.0, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    dense = lambda a, b: {"w": F(a, b), "b": F(b)}
    interaction = lambda: {"filter_1": dense(gaussians, filters), "filter_2": dense(filters, filters), "to": F(width, filters), "from": dense(filters, width), "out": dense(width, width)}
    params = placed({"embed": F(100, width), "interactions": [interaction() for _ in range(depth)], "head_1": dense(width, width // 2), "head_2": dense(width // 2, 1)}, whole)
    transform = optax.chain(optax.clip_by_global_norm(10.0), optax.adamw(1e-4, weight_decay=0.0))
    opt = placed(jax.eval_shape(transform.init, params), whole)
    ssp = lambda a: jax.nn.softplus(a) - jnp.log(2.0).astype(a.dtype)
    through = lambda p, a: a @ p["w"].astype(a.dtype) + p["b"].astype(a.dtype)

    def interact(w, h, basis, near, senders, receivers):
        filt = through(w["filter_2"], ssp(through(w["filter_1"], basis))) * near
        x = h @ w["to"].astype(h.dtype)
        x = jraph.segment_sum(x[senders] * filt, receivers, h.shape[0])
        return h + through(w["out"], ssp(through(w["from"], x)))

    def energies(params, places, graph):
        one = jax.checkpoint(interact) if remat else interact
        apart = places[graph.receivers] - places[graph.senders] + graph.edges["shift"]
        far = jnp.sqrt((apart * apart).sum(-1) + 1e-12)
        centers = jnp.linspace(0.0, cutoff, gaussians)
        basis = jnp.exp(-0.5 * ((far[:, None] - centers) / (centers[1] - centers[0])) ** 2).astype(compute)
        near = (0.5 * (jnp.cos(far * jnp.pi / cutoff) + 1.0))[:, None].astype(compute)
        h = params["embed"][graph.nodes["kind"]].astype(compute)
        for w in params["interactions"]:
            h = one(w, h, basis, near, graph.senders, graph.receivers)
        h = through(params["head_2"], ssp(through(params["head_1"], h))).astype(jnp.float32)[:, 0]
        count = graph.n_node.shape[0]
        whose = jnp.repeat(jnp.arange(count), graph.n_node, total_repeat_length=h.shape[0])
        energy = jraph.segment_sum(h, whose, count)
        return energy.sum(), energy

    def loss_fn(params, graph):
        (_, energy), slope = jax.value_and_grad(energies, argnums=1, has_aux=True)(params, graph.nodes["place"], graph)
        real = jraph.get_graph_padding_mask(graph)
        wrong = jnp.where(real, jnp.abs(energy - graph.globals), 0.0).sum() / real.sum()
        free = graph.nodes["free"]
        pull = (jnp.abs(-slope - graph.nodes["force"]).sum(-1) * free).sum() / free.sum()
        return wrong + 30.0 * pull

    def on_device(params, graph):
        loss, grads = jax.value_and_grad(loss_fn)(params, jax.tree.map(lambda a: a[0], graph))
        return jax.lax.pmean(loss, "data"), jax.lax.pmean(grads, "data")

    each = jax.shard_map(on_device, mesh=devices, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=False)

    def train_step(params, opt_state, graph):
        loss, grads = each(params, graph)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    n, e = systems * atoms, systems * edges
    A = lambda d, *s: jax.ShapeDtypeStruct((chips, *s), d, sharding=split)
    graph = jraph.GraphsTuple(
        nodes={"kind": A("int32", n), "place": A("float32", n, 3), "force": A("float32", n, 3), "free": A("float32", n)}, edges={"shift": A("float32", e, 3)},
        receivers=A("int32", e), senders=A("int32", e), globals=A("float32", systems), n_node=A("int32", systems), n_edge=A("int32", systems))
    return Program(train_step, (params, opt, graph), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
