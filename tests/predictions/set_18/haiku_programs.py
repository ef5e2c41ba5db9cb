"""Haiku: MeshGraphNets' simulator of meshes; the world model of Dreamer (convolutions, a recurrent state space) on sequences of frames."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def mlp(width, out=None, norm=True):
    layers = [hk.Linear(width), jax.nn.relu, hk.Linear(width), jax.nn.relu, hk.Linear(out or width)]
    return hk.Sequential(layers + ([hk.LayerNorm(-1, True, True)] if norm else []))


def meshgraph(topology, chips, batch, nodes=16384, edges=98304, width=128, steps=15, remat=False, half=False, donate=True):
    """`batch` meshes of one size; the processor's steps have weights of their own."""
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))

    def forward(x, e, senders, receivers):
        take = jax.vmap(lambda n, i: n[i])
        add = jax.vmap(lambda values, i: jax.ops.segment_sum(values, i, nodes))
        if half:
            x, e = x.astype(jnp.bfloat16), e.astype(jnp.bfloat16)
        with hk.experimental.name_scope("encoder"):
            x, e = mlp(width)(x), mlp(width)(e)

        def step(x, e):
            messages = mlp(width)(jnp.concatenate([e, take(x, senders), take(x, receivers)], -1))
            new = mlp(width)(jnp.concatenate([x, add(messages, receivers)], -1))
            return x + new, e + messages

        for i in range(steps):
            with hk.experimental.name_scope(f"processor_{i}"):
                x, e = (hk.remat(step) if remat else step)(x, e)
        return mlp(width, 3, False)(x).astype(jnp.float32)

    if half:
        import jmp

        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        for kind in (hk.Linear, hk.LayerNorm):
            hk.mixed_precision.set_policy(kind, policy)
    net = hk.without_apply_rng(hk.transform(forward))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    graph = (S("float32", nodes, 12), S("float32", edges, 7), S("int32", edges), S("int32", edges))
    small = [jax.ShapeDtypeStruct((1, *a.shape[1:]), a.dtype) for a in graph]
    params = jax.eval_shape(net.init, jax.random.key(0), *small)
    transform = optax.adam(1e-4)

    def update(params, opt_state, graph, target):
        loss_fn = lambda params: jnp.mean((net.apply(params, *graph) - target) ** 2)
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), graph, S("float32", nodes, 3))
    return Program(update, args, lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input"), (0, 1) if donate else ())


def dreamer(topology, chips, batch, length=64, depth=48, state=1024, size=64, remat=False, half=False, donate=True):
    """Encoder and decoder as in DreamerV2: four convolutions each; the recurrent part is unrolled by hk.dynamic_unroll."""
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    act = jax.nn.elu

    def forward(frames, actions):
        b, t = actions.shape[:2]
        key = hk.next_rng_key()

        def encode(x):
            for i in range(4):
                x = act(hk.Conv2D(depth * 2**i, 4, 2, padding="VALID", name=f"conv_{i}")(x))
            return x.reshape(x.shape[0], -1)

        def decode(x):
            x = hk.Linear(depth * 32, name="dense")(x)[:, None, None]
            for i, (kernel, out) in enumerate(((5, depth * 4), (5, depth * 2), (6, depth), (6, 3))):
                x = hk.Conv2DTranspose(out, kernel, 2, padding="VALID", name=f"deconv_{i}")(x)
                x = act(x) if i < 3 else x
            return x

        first = frames.reshape(b * t, size, size, 3).astype(jnp.bfloat16 if half else jnp.float32)
        with hk.experimental.name_scope("encoder"):
            seen = (hk.remat(encode) if remat else encode)(first).reshape(b, t, -1)
        with hk.experimental.name_scope("rssm"):
            core = hk.GRU(state)
            given = act(hk.Linear(state)(jnp.concatenate([seen, actions.astype(seen.dtype)], -1))).astype(jnp.float32)
            h, _ = hk.dynamic_unroll(core, given, core.initial_state(b), time_major=False)
            prior = hk.Linear(32 * 32)(act(hk.Linear(state)(h))).reshape(b, t, 32, 32)
            post = hk.Linear(32 * 32)(act(hk.Linear(state)(jnp.concatenate([h, seen.astype(jnp.float32)], -1)))).reshape(b, t, 32, 32)
            draw = jax.nn.one_hot(jax.random.categorical(key, post), 32) + jax.nn.softmax(post) - jax.lax.stop_gradient(jax.nn.softmax(post))
        features = jnp.concatenate([h, draw.reshape(b, t, -1)], -1)
        with hk.experimental.name_scope("decoder"):
            flat = features.reshape(b * t, -1).astype(jnp.bfloat16 if half else jnp.float32)
            image = (hk.remat(decode) if remat else decode)(flat).astype(jnp.float32)
        reward = hk.Linear(1)(act(hk.Linear(400)(features)))[..., 0]
        return image, reward, prior, post

    if half:
        import jmp

        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        for kind in (hk.Conv2D, hk.Conv2DTranspose):
            hk.mixed_precision.set_policy(kind, policy)
    net = hk.transform(forward)
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, length, *s), d, sharding=split)
    frames, actions, rewards = S("uint8", size, size, 3), S("float32", 6), S("float32")
    params = jax.eval_shape(net.init, jax.random.key(0), *[jax.ShapeDtypeStruct((1, *a.shape[1:]), a.dtype) for a in (frames, actions)])
    transform = optax.chain(optax.clip_by_global_norm(100.0), optax.adam(3e-4))

    def update(params, opt_state, key, frames, actions, rewards):
        def loss_fn(params):
            image, reward, prior, post = net.apply(params, key, frames, actions)
            target = frames.reshape(image.shape).astype(jnp.float32) / 255 - 0.5
            kl = (jax.nn.softmax(post) * (jax.nn.log_softmax(post) - jax.nn.log_softmax(prior))).sum((-1, -2)).mean()
            return 0.5 * ((image - target) ** 2).sum((1, 2, 3)).mean() + ((reward - rewards) ** 2).mean() + kl

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype, sharding=whole)
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), key, frames, actions, rewards)
    return Program(update, args, lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input"), (0, 1) if donate else ())
