"""dm-haiku: its ResNet50 over the frames of videos, their batch merged; a graph network over a mesh, the batch in its middle."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def training(apply, params, state, loss, transform, data, devices, specs, dtype, donate=True):
    """`apply(params, state, *inputs)` gives outputs and state; the last of `data` is the target."""
    whole = NamedSharding(devices, P())

    def loss_fn(params, state, *batch):
        cast = lambda tree: jax.tree.map(lambda a: a.astype(dtype) if a.dtype == jnp.float32 else a, tree)
        out, state = apply(cast(params), state, *cast(batch[:-1]))
        return loss(out.astype(jnp.float32), batch[-1]), state

    def train_step(params, state, opt_state, *batch):
        (value, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, *batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), state, opt_state, value

    opt = jax.eval_shape(transform.init, params)
    state_args = [placed(x, whole) for x in (params, state, opt)]
    args = (*state_args, *[placed(x, NamedSharding(devices, s)) for x, s in zip(data, specs)])
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, args, classify, (0, 1, 2) if donate else ())


def video(topology, chips, batch, frames, size, half=False, remat=0):
    """The blocks of the first `remat` groups, of four, are checkpointed."""
    from haiku._src.nets import resnet

    if remat:
        def call(group, x, is_training, test_local_stats):
            for block in group.blocks:
                one = lambda x, block=block: block(x, is_training, test_local_stats)
                x = (hk.remat(one) if int(group.name[-1]) < remat else one)(x)
            return x

        resnet.ResNet.BlockGroup.__call__ = call
    dtype = jnp.bfloat16 if half else jnp.float32

    def forward(clips):  # [batch, frames, height, width, 3]
        tower = hk.nets.ResNet50(512)
        features = hk.BatchApply(lambda x: tower(x, is_training=True))(clips)
        core = hk.GRU(512)
        start = jax.tree.map(lambda a: a.astype(features.dtype), core.initial_state(clips.shape[0]))
        out, _ = hk.dynamic_unroll(core, features, start, time_major=False)
        return hk.Linear(400)(out[:, -1])

    net = hk.transform_with_state(forward)
    params, state = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, frames, size, size, 3), "float32"))
    data = (jax.ShapeDtypeStruct((batch, frames, size, size, 3), "float32"), jax.ShapeDtypeStruct((batch,), "int32"))
    loss = lambda logits, labels: optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    apply = lambda p, s, x: net.apply(p, s, None, x)
    devices = mesh(topology, (chips,), ("i",))
    return training(apply, params, state, loss, optax.sgd(0.1, momentum=0.9), data, devices, (P("i"), P("i")), dtype)


def weather(topology, chips, batch, nodes, edges, steps, channels, fields=227, half=False, remat=0, donate=True):
    """GraphCast's processor: messages along the edges of a mesh that is the same for all, [node or edge, batch, channel].

    The first `remat` steps are checkpointed.
    """
    dtype = jnp.bfloat16 if half else jnp.float32
    generator = np.random.default_rng(0)
    senders, receivers = (generator.integers(0, nodes, edges) for _ in range(2))

    def mlp(name, *inputs):
        x = jnp.concatenate(inputs, -1)
        x = hk.Linear(channels, name=name + "_out")(jax.nn.swish(hk.Linear(channels, name=name + "_in")(x)))
        return hk.LayerNorm(-1, True, True, name=name + "_norm")(x)

    def forward(weather, where):  # [node, batch, field], [edge, 4]
        n = mlp("embed_nodes", weather)
        e = jnp.broadcast_to(mlp("embed_edges", where)[:, None], (edges, weather.shape[1], channels))

        def process(n, e, name):
            messages = mlp(f"{name}_edges", e, n[senders], n[receivers])
            total = jax.ops.segment_sum(messages, receivers, nodes)
            return n + mlp(f"{name}_nodes", n, total), e + messages

        for i in range(steps):
            step = lambda n, e, i=i: process(n, e, f"step_{i}")
            n, e = (hk.remat(step) if i < remat else step)(n, e)
        return hk.Linear(fields, name="decode")(n)

    net = hk.transform_with_state(forward)
    S = jax.ShapeDtypeStruct
    params, state = jax.eval_shape(net.init, jax.random.key(0), S((nodes, 1, fields), "float32"), S((edges, 4), "float32"))
    data = (S((nodes, batch, fields), "float32"), S((edges, 4), "float32"), S((nodes, batch, fields), "float32"))
    apply = lambda p, s, x, where: net.apply(p, s, None, x, where)
    loss = lambda out, target: jnp.mean((out - target) ** 2)
    devices = mesh(topology, (chips,), ("i",))
    return training(apply, params, state, loss, optax.adamw(1e-3), data, devices, (P(None, "i"), P(), P(None, "i")), dtype, donate)
