"""Haiku: IMPALA's learner as in its examples, a deep residual torso and an LSTM over unrolled trajectories, V-trace."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


class Residual(hk.Module):
    def __init__(self, channels, name=None):
        super().__init__(name=name)
        self.channels = channels

    def __call__(self, x):
        y = hk.Conv2D(self.channels, 3)(jax.nn.relu(x))
        return x + hk.Conv2D(self.channels, 3)(jax.nn.relu(y))


class Section(hk.Module):
    def __init__(self, channels, name=None):
        super().__init__(name=name)
        self.channels = channels

    def __call__(self, x):
        x = hk.max_pool(hk.Conv2D(self.channels, 3)(x), (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for i in range(2):
            x = Residual(self.channels, name=f"residual_{i}")(x)
        return x


class Net(hk.Module):
    def __init__(self, actions, remat, dtype):
        super().__init__(name="impala")
        self.actions, self.remat, self.dtype = actions, remat, dtype
        self.core = hk.ResetCore(hk.LSTM(256))

    def torso(self, frames):
        x = frames.astype(self.dtype) / 255
        for i, channels in enumerate((16, 32, 32)):
            section = Section(channels, name=f"section_{i}")
            x = (hk.remat(section) if self.remat else section)(x)
        return jax.nn.relu(hk.Linear(256)(hk.Flatten()(jax.nn.relu(x)))).astype(self.dtype)

    def unroll(self, frames, rewards, first, state):
        x = hk.BatchApply(self.torso)(frames)
        x = jnp.concatenate([x, jnp.clip(rewards, -1, 1)[..., None].astype(x.dtype)], -1)
        x, _ = hk.dynamic_unroll(self.core, (x, first), state)
        head = lambda x: (hk.Linear(self.actions, name="policy")(x), hk.Linear(1, name="value")(x)[..., 0])
        return jax.tree.map(lambda a: a.astype(jnp.float32), hk.BatchApply(head)(x))


def impala(topology, chips, batch, unroll, actions=18, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("i",))
    whole, split, first = NamedSharding(devices, P()), NamedSharding(devices, P(None, "i")), NamedSharding(devices, P("i"))
    dtype = jnp.bfloat16 if half else jnp.float32
    S = lambda d, *s, where=split: jax.ShapeDtypeStruct(s, d, sharding=where)
    steps = unroll + 1

    def forward(frames, rewards, first, state):
        return Net(actions, remat, dtype).unroll(frames, rewards, first, state)

    net = hk.without_apply_rng(hk.transform(forward))
    state = tuple(S("float32", batch, 256, where=first) for _ in range(2))
    state = hk.LSTMState(*state)
    data = dict(frames=S("uint8", steps, batch, 72, 96, 3), rewards=S("float32", steps, batch), first=S("bool", steps, batch),
                actions=S("int32", steps, batch), logits=S("float32", steps, batch, actions), state=state)
    params = jax.eval_shape(net.init, jax.random.key(0), data["frames"], data["rewards"], data["first"], state)
    transform = optax.chain(optax.clip_by_global_norm(40.0), optax.rmsprop(6e-4, decay=0.99, eps=1e-7))
    params = placed(params, whole)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        cast = jax.tree.map(lambda a: a.astype(dtype), params)
        carry = jax.tree.map(lambda a: a.astype(dtype), data["state"])
        logits, values = net.apply(cast, data["frames"], data["rewards"], data["first"], carry)
        taken = lambda l: -optax.softmax_cross_entropy_with_integer_labels(l[:-1], data["actions"][:-1])
        mine, behaviour = taken(logits), taken(data["logits"])
        rho = jnp.minimum(1.0, jnp.exp(jax.lax.stop_gradient(mine) - behaviour))
        discount = 0.99 * (1 - data["first"][1:].astype(jnp.float32))
        v, following, rewards = jax.lax.stop_gradient(values[:-1]), jax.lax.stop_gradient(values[1:]), data["rewards"][1:]
        delta = rho * (rewards + discount * following - v)

        def back(total, xs):
            d, g, r = xs
            total = d + g * r * total
            return total, total

        _, errors = jax.lax.scan(back, jnp.zeros_like(delta[0]), (delta, discount, rho), reverse=True)
        targets = v + errors
        ahead = jnp.concatenate([targets[1:], following[-1:]], 0)
        advantage = rho * (rewards + discount * ahead - v)
        entropy = -(jax.nn.softmax(logits[:-1]) * jax.nn.log_softmax(logits[:-1])).sum(-1)
        return (-mine * advantage).sum() + 0.5 * ((targets - values[:-1]) ** 2).sum() - 0.01 * entropy.sum()

    def update(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(update, (params, opt, data), classify, (0, 1) if donate else ())
