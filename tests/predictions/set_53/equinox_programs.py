"""Equinox: a recommender as MLPerf's DLRM with DCN v2 (26 tables of Criteo's categories, 204 million rows of 128, their rows divided over 8 chips; three low-rank crosses of 3456, an MLP) learns which advertisements are clicked, float32, Adam, the rest data parallel."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed

ROWS = (
    40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4, 976, 14, 40000000, 40000000, 40000000, 590152, 12973, 108, 36)


def stored_as(transform, dtype):
    """Its moments kept in `dtype`, computed in float32."""
    cast = lambda tree, d: jax.tree.map(lambda a: a.astype(d) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree)

    def update(grads, state, params):
        updates, state = transform.update(grads, cast(state, "float32"), params)
        return updates, cast(state, dtype)

    return optax.GradientTransformation(lambda params: cast(transform.init(params), dtype), update)


class Cross(eqx.Module):
    down: eqx.nn.Linear
    up: eqx.nn.Linear

    def __init__(self, width, rank, key):
        a, b = jax.random.split(key)
        self.down, self.up = eqx.nn.Linear(width, rank, use_bias=False, key=a), eqx.nn.Linear(rank, width, key=b)

    def __call__(self, first, x):
        return first * self.up(self.down(x)) + x


class DLRM(eqx.Module):
    tables: list
    bottom: eqx.nn.MLP
    crosses: list
    layers: list
    out: eqx.nn.Linear

    def __init__(self, rows, size, key):
        k = jax.random.split(key, 40)
        self.tables = [eqx.nn.Embedding(n, size, key=k[0]) for n in rows]
        sizes = [13, 512, 256, size]
        self.bottom = [eqx.nn.Linear(a, b, key=k[1 + i]) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]
        width = (len(rows) + 1) * size
        self.crosses = [Cross(width, 512, k[10 + i]) for i in range(3)]
        sizes = [width, 1024, 1024, 512, 256]
        self.layers = [eqx.nn.Linear(a, b, key=k[20 + i]) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]
        self.out = eqx.nn.Linear(256, 1, key=k[30])

    def above(self, dense, found):
        """Of one case: its numbers [13], its categories' rows [26, size]."""
        for layer in self.bottom:
            dense = jax.nn.relu(layer(dense))
        first = x = jnp.concatenate([dense[None], found]).reshape(-1)
        for cross in self.crosses:
            x = cross(first, x)
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return self.out(x)[0]


def dlrm(topology, chips, batch, size=128, stored="float32", moments="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    rows = [-(-n // chips) * chips for n in ROWS]
    model = eqx.filter_eval_shape(lambda: DLRM(rows, size, jax.random.key(0)))
    divided = lambda path, leaf: split if "tables" in path and leaf.shape[0] > 1 << 14 else whole
    masters, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    masters = placed(masters, divided)
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, stored, sharding=a.sharding), masters)
    transform = stored_as(optax.adam(1e-3), moments)
    opt = placed(jax.eval_shape(transform.init, masters), divided)

    @functools.partial(jax.shard_map, mesh=devices, in_specs=(P("data"), P("data")), out_specs=P("data"), check_vma=False)
    def rows_of(table, ids):
        """Every device looks for every case's row among its own."""
        everyone = jax.lax.all_gather(ids, "data", tiled=True) - jax.lax.axis_index("data") * table.shape[0]
        here = (everyone >= 0) & (everyone < table.shape[0])
        found = jnp.where(here[:, None], table[jnp.where(here, everyone, 0)], 0)
        return jax.lax.psum_scatter(found, "data", tiled=True)

    def loss_fn(params, data):
        net = eqx.combine(params, static)
        look = lambda table, ids: rows_of(table.weight, ids) if table.weight.shape[0] > 1 << 14 else table.weight[ids]
        found = jnp.stack([look(table, data["categories"][:, i]) for i, table in enumerate(net.tables)], 1)
        logits = jax.vmap(net.above)(data["numbers"].astype(found.dtype), found)
        return optax.sigmoid_binary_cross_entropy(logits.astype(jnp.float32), data["clicked"]).mean()

    def make_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(jax.tree.map(lambda g: g.astype("float32"), grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"numbers": S("float32", 13), "categories": S("int32", 26), "clicked": S("float32")}
    return Program(make_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
