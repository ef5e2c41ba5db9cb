"""Written after the score: networks of messages on one graph, of which several states are divided behind its nodes (Linen; Haiku, whose modules share names), and a decoder that is given more texts than it uses (JAX alone); Adam, data parallel."""

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed

CLASSES = lambda path: "input" if path.startswith("[2]") else "weight" if path.startswith("[0]") else "opt"


def step_of(loss, params, data, devices):
    whole = NamedSharding(devices, P())
    params = placed(params, whole)
    transform = optax.adam(1e-3)
    state = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, batch):
        grads = jax.grad(loss)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    outs = tuple(jax.tree.map(lambda leaf: leaf.sharding, tree) for tree in (params, state))
    return Program(train_step, (params, state, data), CLASSES, (0, 1), outs)


def graph(devices, nodes, edges, states, fields):
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P(None, "data"))
    S = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=split)
    I = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=whole)
    return {"now": S(nodes, states, fields), "change": S(nodes, states, fields), "senders": I(edges), "receivers": I(edges)}


def linen_mesh(topology, chips, states, nodes=20480, edges=122880, width=256, steps=8, fields=96, remat=False):
    devices = mesh(topology, (chips,), ("data",))

    class Step(nn.Module):
        @nn.compact
        def __call__(self, x, e, senders, receivers):
            m = jnp.concatenate([e, x[senders], x[receivers]], -1)
            m = nn.LayerNorm()(nn.Dense(width)(nn.gelu(nn.Dense(width)(m))))
            seen = jax.ops.segment_sum(m, receivers, x.shape[0])
            return x + nn.Dense(width)(nn.gelu(nn.Dense(width)(jnp.concatenate([x, seen], -1)))), e + m

    class Net(nn.Module):
        @nn.compact
        def __call__(self, batch):
            x = nn.Dense(width, name="embed")(batch["now"])
            e = nn.Dense(width, name="embed_edges")(x[batch["senders"]] - x[batch["receivers"]])
            for i in range(steps):
                x, e = (nn.remat(Step) if remat else Step)(name=f"step_{i}")(x, e, batch["senders"], batch["receivers"])
            return nn.Dense(fields, name="head")(x)

    net = Net()
    data = graph(devices, nodes, edges, states, fields)
    params = jax.eval_shape(lambda d: net.init(jax.random.key(0), d)["params"], data)
    return step_of(lambda p, b: jnp.mean((net.apply({"params": p}, b) - b["change"]) ** 2), params, data, devices)


def haiku_mesh(topology, chips, states, nodes=16384, edges=65536, width=384, steps=6, fields=64, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    net = lambda *parts: hk.nets.MLP([width, width], activation=jax.nn.swish)(jnp.concatenate(parts, -1))

    class Processor(hk.Module):
        def __call__(self, x, e, senders, receivers):
            m = net(e, x[senders], x[receivers])
            return x + net(x, jax.ops.segment_sum(m, receivers, x.shape[0])), e + m

    def forward(batch):
        x = net(batch["now"])
        e = net(x[batch["senders"]], x[batch["receivers"]])
        for i in range(steps):
            block = Processor(name=f"processor_{i}")
            x, e = (hk.remat(block) if remat else block)(x, e, batch["senders"], batch["receivers"])
        return hk.Linear(fields, name="head")(x)

    model = hk.without_apply_rng(hk.transform(forward))
    data = graph(devices, nodes, edges, states, fields)
    params = jax.eval_shape(model.init, jax.random.key(0), data)
    return step_of(lambda p, b: jnp.mean((model.apply(p, b) - b["change"]) ** 2), params, data, devices)


def cut(topology, chips, given=4, used=2, layers=16, width=2048, wide=8192, length=2048, words=32000, remat=False):
    """Of `given` texts on each device, the first `used` are learned from."""
    devices = mesh(topology, (chips,), ("data",))
    W = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    params = {"embed": W(words, width), "layers": {"up": W(layers, width, wide), "down": W(layers, wide, width)}}
    tokens = jax.ShapeDtypeStruct((given * chips, length), "int32", sharding=NamedSharding(devices, P("data")))

    def loss_of(p, tokens, targets):
        half = jnp.bfloat16

        def body(x, w):
            h = jax.nn.gelu(x @ w["up"].astype(half))
            return x + h @ w["down"].astype(half), None

        x, _ = jax.lax.scan(jax.checkpoint(body) if remat else body, p["embed"][tokens].astype(half), p["layers"])
        logits = (x @ p["embed"].T.astype(half)).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    def loss(p, batch):
        own = lambda p, t, y: jax.lax.pmean(loss_of(p, t[:used], y[:used]), "data")
        return jax.shard_map(own, mesh=devices, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)(p, batch["tokens"], batch["targets"])

    return step_of(loss, params, {"tokens": tokens, "targets": tokens}, devices)
