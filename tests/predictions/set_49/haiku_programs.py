"""Haiku: GraphCast at one degree (65160 places, a mesh refined five times with the edges of all its levels, 512 wide, 16 rounds of messages) learns the weather six hours on, float32, AdamW, data parallel, one state of the weather a device."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings, training_step
from recipe import Program, mesh, placed

GRID, MESH = 181 * 360, 10242
EDGES = {"to_mesh": (104256, GRID, MESH), "mesh": (81900, MESH, MESH), "to_grid": (3 * GRID, MESH, GRID)}


class Through(hk.Module):
    """An MLP of one hidden layer, swish, and a norm."""

    def __init__(self, width, out=None, name=None):
        super().__init__(name=name)
        self.width, self.out = width, out

    def __call__(self, *parts):
        x = jnp.concatenate(parts, -1)
        x = hk.Linear(self.out or self.width, name="out")(jax.nn.swish(hk.Linear(self.width, name="hidden")(x)))
        return x if self.out else hk.LayerNorm(-1, True, True, name="norm")(x)


class Messages(hk.Module):
    """Edges and the nodes that they end at, made over; [nodes, batch, channels] as GraphCast has them."""

    def __init__(self, width, name=None):
        super().__init__(name=name)
        self.width = width

    def __call__(self, edges, start, end, senders, receivers):
        new = Through(self.width, name="edges")(edges, start[senders], end[receivers])
        got = jax.ops.segment_sum(new, receivers, end.shape[0])
        return edges + new, end + Through(self.width, name="nodes")(end, got)


def graphcast(topology, chips, batch, seen=474, wanted=227, width=512, rounds=16, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P(None, "data"))
    policy = jmp.Policy(param_dtype=jnp.float32, compute_dtype=jnp.dtype(compute), output_dtype=jnp.dtype(compute))
    for module in (hk.Linear, hk.LayerNorm):
        hk.mixed_precision.set_policy(module, policy)

    def forward(data):
        count = data["weather"].shape[1]
        one = lambda module: hk.remat(module) if remat else module
        spread = lambda a: jnp.broadcast_to(a[:, None], (a.shape[0], count, a.shape[1])).astype(compute)
        grid = Through(width, name="embed_grid")(data["weather"].astype(compute), spread(data["grid"]))
        net = Through(width, name="embed_mesh")(spread(jnp.pad(data["net"], ((0, 0), (0, seen)))))
        edges = {n: Through(width, name=f"embed_{n}")(spread(data["edges"][n])) for n in EDGES}
        ends = lambda n: (data["senders"][n], data["receivers"][n])
        _, net = one(Messages(width, name="to_mesh"))(edges["to_mesh"], grid, net, *ends("to_mesh"))
        grid = grid + Through(width, name="grid")(grid)
        between = edges["mesh"]
        for i in range(rounds):
            between, net = one(Messages(width, name=f"round_{i}"))(between, net, net, *ends("mesh"))
        _, grid = one(Messages(width, name="to_grid"))(edges["to_grid"], net, grid, *ends("to_grid"))
        return Through(width, wanted, name="head")(grid).astype(jnp.float32)

    def shapes(rows, where):
        S = lambda d, *s, on=whole: jax.ShapeDtypeStruct(s, d, sharding=on)
        return {
            "weather": S("float32", GRID, rows, seen, on=where), "next": S("float32", GRID, rows, wanted, on=where), "grid": S("float32", GRID, 3), "net": S("float32", MESH, 3), "area": S("float32", GRID), "levels": S("float32", wanted),
            "edges": {n: S("float32", e, 4) for n, (e, _, _) in EDGES.items()}, "senders": {n: S("int32", e) for n, (e, _, _) in EDGES.items()}, "receivers": {n: S("int32", e) for n, (e, _, _) in EDGES.items()}}

    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), shapes(1, whole)), whole)
    transform = optax.chain(optax.clip_by_global_norm(32.0), optax.adamw(1e-3, b2=0.95, weight_decay=0.1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        wrong = jnp.square(net.apply(params, data) - data["next"])
        return (wrong * data["area"][:, None, None] * data["levels"]).mean()

    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, shapes(batch, split)), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
