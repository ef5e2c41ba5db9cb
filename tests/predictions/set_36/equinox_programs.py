"""Equinox: a graph network that forecasts the weather, like GraphCast's small one (1 degree, a mesh of 10242 nodes, 16 layers of the processor), in bfloat16, whole on every device, data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


class Mlp(eqx.Module):
    """One hidden layer and a norm, on [batch, things, features]."""
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    scale: jax.Array
    shift: jax.Array
    norm: bool = eqx.field(static=True)

    def __init__(self, size, out, latent, key, norm=True):
        k1, k2 = jax.random.split(key)
        self.first, self.second, self.norm = eqx.nn.Linear(size, latent, key=k1), eqx.nn.Linear(latent, out, key=k2), norm
        self.scale, self.shift = jnp.ones(out), jnp.zeros(out)

    def __call__(self, x):
        on = lambda layer, x: jnp.einsum("bnd,fd->bnf", x, layer.weight.astype(HALF)) + layer.bias.astype(HALF)
        x = on(self.second, jax.nn.silu(on(self.first, x)))
        if not self.norm:
            return x
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return y.astype(HALF) * self.scale.astype(HALF) + self.shift.astype(HALF)


class Interaction(eqx.Module):
    """Edges see their ends, the receiving nodes the sum of their edges."""
    edge: Mlp
    node: Mlp

    def __init__(self, latent, key):
        k1, k2 = jax.random.split(key)
        self.edge, self.node = Mlp(3 * latent, latent, latent, k1), Mlp(2 * latent, latent, latent, k2)

    def __call__(self, senders, receivers, edges, graph):
        start, end = graph
        new = self.edge(jnp.concatenate([edges, senders[:, start], receivers[:, end]], -1))
        total = jnp.zeros_like(receivers).at[:, end].add(new)
        return receivers + self.node(jnp.concatenate([receivers, total], -1)), edges + new


class Forecast(eqx.Module):
    embed_grid: Mlp
    embed_mesh: Mlp
    embed_edges: list
    encode: Interaction
    grid_alone: Mlp
    process: list
    decode: Interaction
    leave: Mlp

    def __init__(self, features, out, latent, depth, key):
        ks = jax.random.split(key, depth + 9)
        self.embed_grid, self.embed_mesh = Mlp(features, latent, latent, ks[0]), Mlp(3, latent, latent, ks[1])
        self.embed_edges = [Mlp(4, latent, latent, k) for k in ks[2:5]]
        self.encode, self.grid_alone, self.decode = Interaction(latent, ks[5]), Mlp(latent, latent, latent, ks[6]), Interaction(latent, ks[7])
        self.leave, self.process = Mlp(latent, out, latent, ks[8], norm=False), [Interaction(latent, k) for k in ks[9:]]

    def __call__(self, weather, graph, remat):
        spread = lambda mlp, a: jnp.broadcast_to(mlp(a.astype(HALF)[None]), (weather.shape[0], a.shape[0], mlp.scale.shape[0]))
        grid, nodes = self.embed_grid(weather.astype(HALF)), spread(self.embed_mesh, graph["mesh"])
        into, within, back = (spread(mlp, graph[f"{n}_edges"]) for mlp, n in zip(self.embed_edges, ("into", "within", "back")))
        nodes, _ = self.encode(grid, nodes, into, graph["into"])
        grid = grid + self.grid_alone(grid)
        for layer in self.process:
            call = lambda layer, nodes, edges: layer(nodes, nodes, edges, graph["within"])
            nodes, within = (eqx.filter_checkpoint(call) if remat else call)(layer, nodes, within)
        grid, _ = self.decode(nodes, grid, back, graph["back"])
        return self.leave(grid)


def graphcast(topology, chips, batch, grid=65160, mesh_nodes=10242, mesh_edges=81900, latent=512, features=178, out=83, depth=16, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = eqx.filter_eval_shape(lambda: Forecast(features, out, latent, depth, jax.random.key(0)))
    params, static = eqx.partition(model, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(32.0), optax.adamw(1e-3, b2=0.95, weight_decay=0.1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, batch, graph):
        def loss_fn(params):
            off = eqx.combine(params, static)(batch["now"], graph, remat).astype(jnp.float32) - batch["change"]
            return (jnp.square(off) * graph["area"][:, None]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    data = lambda n: jax.ShapeDtypeStruct((batch, grid, n), "float32", sharding=split)
    G = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=whole)
    counts = {"into": 103680, "within": mesh_edges, "back": 3 * grid}
    graph = {n: (G("int32", c), G("int32", c)) for n, c in counts.items()} | {f"{n}_edges": G("float32", c, 4) for n, c in counts.items()}
    graph |= {"mesh": G("float32", mesh_nodes, 3), "area": G("float32", grid)}
    return Program(train_step, (params, opt, {"now": data(features), "change": data(out)}, graph), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
