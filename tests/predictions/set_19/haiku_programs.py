"""Haiku: MuZero's learner on a board of 19 by 19: representation, five unrolled steps of dynamics, predictions; SGD with momentum, as the paper's."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def muzero(topology, chips, batch, unroll=5, blocks=16, channels=256, board=19, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("i",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("i"))
    dtype = jnp.bfloat16 if half else jnp.float32

    class Block(hk.Module):
        def __call__(self, x):
            y = hk.Conv2D(channels, 3, with_bias=False)(x)
            y = jax.nn.relu(hk.LayerNorm((-3, -2, -1), True, True)(y))
            y = hk.LayerNorm((-3, -2, -1), True, True)(hk.Conv2D(channels, 3, with_bias=False)(y))
            return jax.nn.relu(x + y)

    class Tower(hk.Module):
        def __call__(self, x):
            x = jax.nn.relu(hk.LayerNorm((-3, -2, -1), True, True)(hk.Conv2D(channels, 3, with_bias=False)(x)))
            for i in range(blocks):
                block = Block(name=f"block_{i}")
                x = hk.remat(block)(x) if remat else block(x)
            return x

    def forward(frames, actions):
        represent, dynamics = Tower(name="representation"), Tower(name="dynamics")
        policy = hk.Sequential([hk.Conv2D(2, 1), jax.nn.relu, hk.Flatten(), hk.Linear(board * board + 1)], name="policy")
        value = hk.Sequential([hk.Conv2D(1, 1), jax.nn.relu, hk.Flatten(), hk.Linear(256), jax.nn.relu, hk.Linear(1), jnp.tanh], name="value")
        state = represent(frames.astype(dtype))
        outs = [(policy(state), value(state))]
        for t in range(unroll):
            plane = jax.nn.one_hot(actions[:, t], board * board).reshape(-1, board, board, 1).astype(dtype)
            state = dynamics(jnp.concatenate([state, plane], -1))
            state = 0.5 * state + 0.5 * jax.lax.stop_gradient(state)
            outs.append((policy(state), value(state)))
        return outs

    if half:
        import jmp

        for kind in (Tower, hk.Sequential):
            hk.mixed_precision.set_policy(kind, jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16"))
    net = hk.without_apply_rng(hk.transform(forward))
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=split)
    frames, actions = S("float32", batch, board, board, 17), S("int32", batch, unroll)
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, board, board, 17), "float32"), jax.ShapeDtypeStruct((2, unroll), "int32"))
    transform = optax.chain(optax.add_decayed_weights(1e-4), optax.sgd(0.05, momentum=0.9))

    def learn(params, opt_state, frames, actions, policies, values):
        def loss_fn(params):
            total = 0.0
            for t, (p, v) in enumerate(net.apply(params, frames, actions)):
                p, v = p.astype(jnp.float32), v.astype(jnp.float32)
                total += optax.softmax_cross_entropy(p, policies[:, t]).mean() + ((v[:, 0] - values[:, t]) ** 2).mean()
            return total

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    put = lambda tree: placed(tree, whole)
    args = (put(params), put(jax.eval_shape(transform.init, params)), frames, actions, S("float32", batch, unroll + 1, board * board + 1), S("float32", batch, unroll + 1))
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(learn, args, classify, (0, 1) if donate else ())
