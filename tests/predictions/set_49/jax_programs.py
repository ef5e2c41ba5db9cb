"""JAX alone: DLRM (26 tables of 128 and dense towers), tables divided by rows over all chips inside shard_map: everyone's rows are asked of everyone, sums scattered back to where the examples are; row-wise Adagrad of the rows that were asked for alone, the towers by Adam."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF
from recipe import Program, mesh

# As in Criteo's, the largest ones grown; millions of rows over all chips are these by `grown`.
ROWS = (40, 40, 40, 40, 40, 25, 20, 16, 12, 8, 8, 6, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)


def dlrm(topology, chips, batch, grown=4, size=128, dense=13, bottom=(512, 256, 128), top=(1024, 1024, 512, 256, 1), kept="float32", donate=True):
    devices = mesh(topology, (chips,), ("x",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("x"))
    count = len(ROWS)
    rows = [n * grown * (1 << 20) for n in ROWS]
    A = lambda d, *s, on=whole: jax.ShapeDtypeStruct(s, d, sharding=on)
    tables = [A(kept, n, size, on=split) for n in rows]
    squares = [A("float32", n, on=split) for n in rows]

    def tower(first, sizes):
        return [{"w": A("float32", a, b), "b": A("float32", b)} for a, b in zip((first, *sizes), sizes)]

    crossed = (count + 1) * count // 2 + size
    nets = {"bottom": tower(dense, bottom), "top": tower(crossed, top)}
    transform = optax.adam(1e-3)
    opt = jax.tree.map(lambda a: A(a.dtype, *a.shape), jax.eval_shape(transform.init, nets))

    def through(layers, x, last):
        for i, layer in enumerate(layers):
            x = x @ layer["w"].astype(HALF) + layer["b"].astype(HALF)
            x = jax.nn.relu(x) if last or i + 1 < len(layers) else x
        return x

    def forward(nets, taken, x):
        z = through(nets["bottom"], x.astype(HALF), True)
        every = jnp.concatenate([z[:, None], taken.astype(HALF)], 1)
        products = jnp.einsum("bic,bjc->bij", every, every)
        i, j = jnp.tril_indices(count + 1, -1)
        return through(nets["top"], jnp.concatenate([z, products[:, i, j]], -1), False)[:, 0].astype(jnp.float32)

    def on_device(tables, squares, nets, opt_state, ids, x, clicked):
        asked = jax.lax.all_gather(ids, "x", axis=1, tiled=True)  # [tables, everyone's examples]
        here = jax.lax.axis_index("x")

        def local(i):
            """Where the rows of table i are that are here; beyond the table the others."""
            held = tables[i].shape[0]
            at = asked[i] - here * held
            return jnp.where((at >= 0) & (at < held), at, held)

        found = [tables[i].at[local(i)].get(mode="fill", fill_value=0) for i in range(count)]
        taken = jnp.stack([jax.lax.psum_scatter(rows, "x", scatter_dimension=0, tiled=True) for rows in found], 1)

        def loss_fn(nets, taken):
            return optax.sigmoid_binary_cross_entropy(forward(nets, taken, x), clicked).mean()

        loss, (grads, slopes) = jax.value_and_grad(loss_fn, (0, 1))(nets, taken)
        grads, loss = jax.lax.pmean((grads, loss), "x")
        updates, opt_state = transform.update(grads, opt_state, nets)
        new_tables, new_squares = [], []
        for i in range(count):
            slope = jax.lax.all_gather(slopes[:, i], "x", axis=0, tiled=True).astype(jnp.float32) / chips
            at = local(i)
            square = squares[i].at[at].add(jnp.square(slope).mean(-1), mode="drop")
            scale = 0.01 * jax.lax.rsqrt(square.at[at].get(mode="fill", fill_value=1.0) + 1e-8)
            new_tables.append(tables[i].at[at].add((-slope * scale[:, None]).astype(kept), mode="drop"))
            new_squares.append(square)
        return new_tables, new_squares, optax.apply_updates(nets, updates), opt_state, loss

    cut, all_of = P("x"), P()
    each = jax.shard_map(on_device, mesh=devices, in_specs=(cut, cut, all_of, all_of, P(None, "x"), cut, cut), out_specs=(cut, cut, all_of, all_of, all_of), check_vma=False)

    def train_step(tables, squares, nets, opt_state, ids, x, clicked):
        return each(tables, squares, nets, opt_state, ids, x, clicked)

    args = (tables, squares, nets, opt, A("int32", count, batch, on=NamedSharding(devices, P(None, "x"))), A("float32", batch, dense, on=split), A("float32", batch, on=split))
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight", "[3]": "opt"}.get(path[:3], "input")
    return Program(train_step, args, classify, (0, 1, 2, 3) if donate else ())
