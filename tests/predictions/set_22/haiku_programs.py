"""Haiku: Perceiver IO on raw pixels; jraph's graph attention (its GAT) on a whole graph of a hundred million edges' order, cut into devices by edges."""

import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def attention(q_in, kv_in, heads, qk, v_size, name, linear):
    lin = lambda x, n, k: linear(f"{name}_{k}", n)(x)
    q, k, v = lin(q_in, qk, "q"), lin(kv_in, qk, "k"), lin(kv_in, v_size, "v")
    cut = lambda a: a.reshape(*a.shape[:-1], heads, -1)
    s = jnp.einsum("bqhd,bkhd->bhqk", cut(q), cut(k)) * (qk // heads) ** -0.5
    p = jax.nn.softmax(s)
    o = jnp.einsum("bhqk,bkhd->bqhd", p, cut(v))
    return lin(o.reshape(*o.shape[:2], -1), q_in.shape[-1], "o")


def perceiver(topology, chips, batch, size=224, bands=64, latents=512, width=1024, blocks=8, per_block=6, remat=False, half=False, donate=True):
    """ImageNet from pixels: one cross-attention into 512 latents, 8 times the same 6 self-attentions."""
    devices = mesh(topology, (chips,), ("i",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("i"))
    dtype = jnp.bfloat16 if half else jnp.float32

    made = {}  # the blocks share their modules

    def module(name, make):
        if name not in made:
            made[name] = make()
        return made[name]

    linear = lambda name, n: module(name, lambda: hk.Linear(n, name=name))

    def norm(x, name):
        return module(name, lambda: hk.LayerNorm(-1, True, True, name=name))(x)

    def mlp(x, name, widening=1):
        n = x.shape[-1]
        return linear(f"{name}_down", n)(jax.nn.gelu(linear(f"{name}_up", widening * n)(x)))

    def self_layer(z, name):
        h = norm(z, f"{name}_n1")
        z = z + attention(h, h, 8, width, width, name, linear)
        return z + mlp(norm(z, f"{name}_n2"), name)

    def forward(images):
        made.clear()
        b = images.shape[0]
        pos = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, size), jnp.linspace(-1, 1, size), indexing="ij"), -1).reshape(-1, 2)
        freq = jnp.linspace(1.0, size / 2, bands)
        ang = (pos[..., None] * freq * jnp.pi).reshape(size * size, -1)
        feats = jnp.concatenate([jnp.sin(ang), jnp.cos(ang), pos], -1)
        x = jnp.concatenate([images.reshape(b, -1, 3), jnp.broadcast_to(feats, (b, *feats.shape))], -1).astype(dtype)
        z = hk.get_parameter("latents", [latents, width], init=hk.initializers.TruncatedNormal(0.02)).astype(dtype)
        z = jnp.broadcast_to(z, (b, latents, width))
        x = norm(x, "in_norm")
        z = z + attention(norm(z, "cross_n"), x, 1, x.shape[-1], x.shape[-1], "cross", linear)
        z = z + mlp(norm(z, "cross_n2"), "cross")
        for _ in range(blocks):
            for i in range(per_block):
                layer = lambda z, i=i: self_layer(z, f"self{i}")
                z = (hk.remat(layer) if remat else layer)(z)
        return linear("classes", 1000)(norm(z.mean(1), "out_norm")).astype(jnp.float32)

    if half:
        import jmp

        for kind in (hk.Linear, hk.LayerNorm):
            hk.mixed_precision.set_policy(kind, jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16"))
    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, size, size, 3), "float32")), whole)
    transform = optax.lamb(2e-3, weight_decay=0.1)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def update(params, opt_state, images, labels):
        def loss_fn(params):
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(params, images), labels).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    images = jax.ShapeDtypeStruct((batch, size, size, 3), "float32", sharding=split)
    labels = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    return Program(update, (params, opt, images, labels), kind_of_step, (0, 1) if donate else ())


def gat(topology, chips, nodes, edges, features=128, hidden=32, heads=4, layers=3, classes=47, remat=False, half=False, donate=True):
    """A whole graph on one chip (ogbn-products is 2.4 million nodes; a sample of it): jraph's GAT, three layers, transductive."""
    devices = mesh(topology, (chips,), ("x",))
    here = NamedSharding(devices, P())
    dtype = jnp.bfloat16 if half else jnp.float32

    def forward(graph):
        for i in range(layers):
            last = i == layers - 1
            out = classes if last else hidden

            def query(n, i=i, out=out):
                return hk.Linear(heads * out, name=f"gat{i}_query")(n).reshape(-1, heads, out)

            def logit(s, r, e, i=i):
                x = jnp.concatenate([s, r], -1)
                return jax.nn.leaky_relu(hk.Linear(1, name=f"gat{i}_logit")(x), 0.2)

            def node(n, last=last):
                return n.mean(1) if last else jax.nn.elu(n).reshape(n.shape[0], -1)

            layer = lambda nodes, query=query, logit=logit, node=node: jraph.GAT(query, logit, node)(graph._replace(nodes=nodes)).nodes
            layer = hk.remat(layer) if remat else layer
            graph = graph._replace(nodes=layer(graph.nodes))
        return graph.nodes

    if half:
        import jmp

        hk.mixed_precision.set_policy(hk.Linear, jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16"))
    net = hk.without_apply_rng(hk.transform(forward))
    N = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=here)
    graph = jraph.GraphsTuple(nodes=N("float32", nodes, features), edges=None, senders=N("int32", edges), receivers=N("int32", edges),
                              n_node=N("int32", 1), n_edge=N("int32", 1), globals=None)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), graph), here)
    transform = optax.adam(5e-3)
    opt = placed(jax.eval_shape(transform.init, params), here)

    def train(params, opt_state, graph, labels, mask):
        def loss_fn(params):
            logits = net.apply(params, graph._replace(nodes=graph.nodes.astype(dtype))).astype(jnp.float32)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return (losses * mask).sum() / mask.sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return Program(train, (params, opt, graph, N("int32", nodes), N("float32", nodes)), kind_of_step, (0, 1) if donate else ())
