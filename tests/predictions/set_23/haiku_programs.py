"""Haiku: a Wasserstein GAN with a gradient penalty (derivatives of the critic's derivative), residual networks of 128 pixels; jraph: message passing on molecules (an interaction network), padded batches."""

import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step
from recipe import Program, mesh, placed


def wgan(topology, chips, batch, size=128, base=64, remat=False, half=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    dtype = HALF if half else jnp.float32

    def down(x, n, name):
        def f(x):
            y = hk.Conv2D(n, 3, name=f"{name}_a")(jax.nn.leaky_relu(x, 0.2))
            y = hk.Conv2D(n, 3, name=f"{name}_b")(jax.nn.leaky_relu(y, 0.2))
            return hk.avg_pool(y + hk.Conv2D(n, 1, name=f"{name}_skip")(x), (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (hk.remat(f) if remat else f)(x)

    def up(x, n, name):
        def f(x):
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            norm = lambda y, k: hk.GroupNorm(16, name=f"{name}_n{k}")(y)
            y = hk.Conv2D(n, 3, name=f"{name}_a")(jax.nn.relu(norm(x, 1)))
            y = hk.Conv2D(n, 3, name=f"{name}_b")(jax.nn.relu(norm(y, 2)))
            return y + hk.Conv2D(n, 1, name=f"{name}_skip")(x)
        return (hk.remat(f) if remat else f)(x)

    def critic(images):
        x = hk.Conv2D(base, 3, name="first")(images.astype(dtype))
        for i in range(5):
            x = down(x, min(base * 2 ** (i + 1), 512), f"down{i}")
        return hk.Linear(1, name="score")(x.reshape(x.shape[0], -1))[:, 0].astype(jnp.float32)

    def generator(z):
        x = hk.Linear(4 * 4 * 512, name="start")(z.astype(dtype)).reshape(-1, 4, 4, 512)
        for i in range(5):
            x = up(x, max(512 // 2**i, base), f"up{i}")
        return jnp.tanh(hk.Conv2D(3, 3, name="last")(jax.nn.relu(x))).astype(jnp.float32)

    if half:
        import jmp

        for kind in (hk.Conv2D, hk.Linear, hk.GroupNorm):
            hk.mixed_precision.set_policy(kind, jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16"))
    C, G = hk.without_apply_rng(hk.transform(critic)), hk.without_apply_rng(hk.transform(generator))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    params = {"critic": jax.eval_shape(C.init, jax.random.key(0), F(1, size, size, 3)), "generator": jax.eval_shape(G.init, jax.random.key(0), F(1, 128))}
    transform = optax.adam(1e-4, b1=0.0, b2=0.9)
    params = placed(params, whole)
    opt = {k: placed(jax.eval_shape(transform.init, v), whole) for k, v in params.items()}

    def step(params, opt_state, images, z, mix):
        def critic_loss(c):
            fake = jax.lax.stop_gradient(G.apply(params["generator"], z))
            m = mix[:, None, None, None]
            between = m * images + (1 - m) * fake
            slope = jax.grad(lambda x: C.apply(c, x).sum())(between)
            penalty = ((jnp.sqrt((slope**2).sum((1, 2, 3)) + 1e-8) - 1) ** 2).mean()
            return C.apply(c, fake).mean() - C.apply(c, images).mean() + 10 * penalty

        def generator_loss(g):
            return -C.apply(params["critic"], G.apply(g, z)).mean()

        out, states = {}, {}
        for name, f in (("critic", critic_loss), ("generator", generator_loss)):
            grads = jax.grad(f)(params[name])
            updates, states[name] = transform.update(grads, opt_state[name])
            out[name] = optax.apply_updates(params[name], updates)
        return out, states

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    return Program(step, (params, opt, S(size, size, 3), S(128), S()), kind_of_step, (0, 1) if donate else ())


def molecules(topology, nodes, edges, graphs, width=256, depth=12, remat=False, half=False, donate=True):
    """One chip; QM-sized molecules, batched and padded by jraph; residual interaction networks with layer norms."""
    devices = mesh(topology, (1,), ("x",))
    here = NamedSharding(devices, P())
    dtype = HALF if half else jnp.float32

    def mlp(x, name):
        h = jax.nn.silu(hk.Linear(width, name=f"{name}_1")(x))
        h = jax.nn.silu(hk.Linear(width, name=f"{name}_2")(h))
        return hk.LayerNorm(-1, True, True, name=f"{name}_n")(hk.Linear(width, name=f"{name}_3")(h))

    def forward(graph):
        graph = graph._replace(nodes=mlp(graph.nodes.astype(dtype), "in_nodes"), edges=mlp(graph.edges.astype(dtype), "in_edges"))
        for i in range(depth):
            def edge(e, s, r, g, i=i):
                return mlp(jnp.concatenate([e, s, r], -1), f"edge{i}")

            def node(n, s, r, g, i=i):
                return mlp(jnp.concatenate([n, r], -1), f"node{i}")

            def layer(n, e, edge=edge, node=node):
                new = jraph.GraphNetwork(edge, node)(graph._replace(nodes=n, edges=e))
                return n + new.nodes, e + new.edges

            n, e = (hk.remat(layer) if remat else layer)(graph.nodes, graph.edges)
            graph = graph._replace(nodes=n, edges=e)
        which = jnp.repeat(jnp.arange(graphs), graph.n_node, total_repeat_length=nodes)
        pooled = jax.ops.segment_sum(graph.nodes, which, graphs)
        return hk.Linear(1, name="energy")(pooled)[:, 0].astype(jnp.float32)

    if half:
        import jmp

        for kind in (hk.Linear, hk.LayerNorm):
            hk.mixed_precision.set_policy(kind, jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16"))
    net = hk.without_apply_rng(hk.transform(forward))
    N = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=here)
    graph = jraph.GraphsTuple(nodes=N("float32", nodes, 32), edges=N("float32", edges, 20), senders=N("int32", edges), receivers=N("int32", edges),
                              n_node=N("int32", graphs), n_edge=N("int32", graphs), globals=None)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), graph), here)
    transform = optax.adam(5e-4)
    opt = placed(jax.eval_shape(transform.init, params), here)

    def update(params, opt_state, graph, energies):
        def loss_fn(params):
            return jnp.abs(net.apply(params, graph) - energies).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return Program(update, (params, opt, graph, N("float32", graphs)), kind_of_step, (0, 1) if donate else ())
