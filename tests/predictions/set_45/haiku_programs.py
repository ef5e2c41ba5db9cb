"""Haiku: IMPALA's learner (V-trace) with its deep network over frames and a recurrent core, unrolls of 100 steps, RMSProp, data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


class Section(hk.Module):
    def __init__(self, channels, name=None):
        super().__init__(name=name)
        self.channels = channels

    def __call__(self, x):
        conv = lambda: hk.Conv2D(self.channels, 3)
        x = hk.max_pool(conv()(x), (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for _ in range(2):
            x = x + conv()(jax.nn.relu(conv()(jax.nn.relu(x))))
        return x


def vtrace(log_rhos, discounts, rewards, values, bootstrap):
    """[time, batch]: what the values should be, and the advantages."""
    rhos = jnp.minimum(jnp.exp(log_rhos), 1.0)
    after = jnp.concatenate([values[1:], bootstrap[None]])
    deltas = rhos * (rewards + discounts * after - values)
    back = lambda acc, xs: ((new := xs[0] + xs[1] * xs[2] * acc), new)
    _, errors = jax.lax.scan(back, jnp.zeros_like(bootstrap), (deltas, discounts, rhos), reverse=True)
    targets = values + errors
    next_targets = jnp.concatenate([targets[1:], bootstrap[None]])
    return jax.lax.stop_gradient(targets), jax.lax.stop_gradient(rhos * (rewards + discounts * next_targets - values))


def impala(topology, chips, batch, steps=100, side=84, stacked=4, channels=(16, 32, 32), actions=18, core=256, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P(None, "data"))
    policy = jmp.Policy(param_dtype=jnp.float32, compute_dtype=jnp.dtype(compute), output_dtype=jnp.dtype(compute))
    hk.mixed_precision.set_policy(hk.Conv2D, policy)
    hk.mixed_precision.set_policy(hk.Linear, policy)

    def agent(data):
        time, rows = data["frames"].shape[:2]
        x = data["frames"].reshape(time * rows, side, side, stacked).astype(compute) / 255
        for i, c in enumerate(channels):
            section = Section(c, name=f"section_{i}")
            x = (hk.remat(section) if remat else section)(x)
        x = jax.nn.relu(hk.Linear(256)(hk.Flatten()(jax.nn.relu(x))))
        x = jnp.concatenate([x.astype(jnp.float32), jax.nn.one_hot(data["last_action"], actions).reshape(time * rows, -1), data["last_reward"].reshape(-1, 1)], -1)
        lstm = hk.ResetCore(hk.LSTM(core))
        x, _ = hk.dynamic_unroll(lstm, (x.reshape(time, rows, -1), data["first"]), lstm.initial_state(rows))
        x = hk.BatchApply(hk.nets.MLP([256], activate_final=True))(x).astype(jnp.float32)
        return hk.BatchApply(hk.Linear(actions))(x).astype(jnp.float32), hk.BatchApply(hk.Linear(1))(x)[..., 0].astype(jnp.float32)

    def shapes(rows, sharding):
        S = lambda d, *s: jax.ShapeDtypeStruct((steps + 1, rows, *s), d, sharding=sharding)
        return {"frames": S("uint8", side, side, stacked), "last_action": S("int32"), "last_reward": S("float32"), "first": S("bool"), "action": S("int32"), "behaviour": S("float32", actions), "reward": S("float32"), "discount": S("float32")}

    net = hk.without_apply_rng(hk.transform(agent))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), shapes(1, whole)), whole)
    transform = optax.chain(optax.clip_by_global_norm(40.0), optax.rmsprop(6e-4, decay=0.99, eps=0.1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        logits, values = net.apply(params, data)
        bootstrap, values, logits = jax.lax.stop_gradient(values[-1]), values[:-1], logits[:-1]
        taken = {n: a[:-1] for n, a in data.items() if n != "frames"}
        pick = lambda a: jnp.take_along_axis(jax.nn.log_softmax(a), taken["action"][..., None], -1)[..., 0]
        log_pi = pick(logits)
        targets, advantages = vtrace(jax.lax.stop_gradient(log_pi) - pick(taken["behaviour"]), taken["discount"] * 0.99, jnp.clip(taken["reward"], -1, 1), jax.lax.stop_gradient(values), bootstrap)
        entropy = -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1)
        return -(log_pi * advantages).mean() + 0.25 * jnp.square(targets - values).mean() - 0.01 * entropy.mean()

    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, shapes(batch, split)), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
