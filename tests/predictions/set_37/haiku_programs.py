"""Haiku: IMPALA: its deep residual network over the pictures of whole trajectories, an LSTM (hk.dynamic_unroll with resets), V-trace, RMSProp; the learner's step, trajectories divided over the devices."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def impala(topology, chips, batch, steps=80, side=84, actions=18, memory=256, compute="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole = NamedSharding(devices, P())

    def block(x, i, j):
        y = x
        for k in (0, 1):
            y = hk.Conv2D(x.shape[-1], 3, name=f"section_{i}_block_{j}_conv_{k}")(jax.nn.relu(y))
        return x + y

    def torso(frames):
        x = frames.astype(compute) / 255
        for i, channels in enumerate((16, 32, 32)):
            x = hk.Conv2D(channels, 3, name=f"section_{i}_conv")(x)
            x = hk.max_pool(x, (3, 3, 1), (2, 2, 1), "SAME")
            for j in (0, 1):
                x = block(x, i, j)
        return jax.nn.relu(hk.Linear(256, name="torso_out")(jax.nn.relu(x).reshape(x.shape[0], -1)))

    def agent(data):
        time, rows = data["reward"].shape
        x = torso(data["frames"].reshape(time * rows, side, side, 4)).reshape(time, rows, -1)
        before = jax.nn.one_hot(data["last_action"], actions, dtype=x.dtype)
        x = jnp.concatenate([x, before, jnp.clip(data["reward"], -1, 1)[..., None].astype(x.dtype)], -1)
        core = hk.ResetCore(hk.LSTM(memory))
        state = hk.LSTMState(data["hidden"].astype(compute), data["cell"].astype(compute))
        x, _ = hk.dynamic_unroll(core, (x, data["first"]), state)
        return hk.Linear(actions, name="policy")(x).astype(jnp.float32), hk.Linear(1, name="value")(x)[..., 0].astype(jnp.float32)

    net = hk.without_apply_rng(hk.transform(agent))

    def S(dtype, *shape, axis=1):
        spec = [None] * len(shape)
        spec[axis] = "data"
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(devices, P(*spec)))

    data = {"frames": S("uint8", steps, batch, side, side, 4), "reward": S("float32", steps, batch), "discount": S("float32", steps, batch), "first": S("bool", steps, batch),
            "last_action": S("int32", steps, batch), "action": S("int32", steps, batch), "logits": S("float32", steps, batch, actions), "hidden": S("float32", batch, memory, axis=0), "cell": S("float32", batch, memory, axis=0)}
    params = jax.eval_shape(net.init, jax.random.key(0), data)  # Haiku makes them of the input's type
    params = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "float32"), params), whole)
    transform = optax.chain(optax.clip_by_global_norm(40.0), optax.rmsprop(6e-4, decay=0.99, eps=0.1, momentum=0.0))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def learner_step(params, opt_state, data):
        def loss_fn(params):
            logits, values = net.apply(jax.tree.map(lambda a: a.astype(compute), params), data)
            logp, old = jax.nn.log_softmax(logits), jax.nn.log_softmax(data["logits"])
            pick = lambda a: jnp.take_along_axis(a, data["action"][..., None], -1)[..., 0]
            rho = jnp.minimum(1.0, jnp.exp(jax.lax.stop_gradient(pick(logp)) - pick(old)))
            fixed = jax.lax.stop_gradient(values)
            after = jnp.concatenate([fixed[1:], fixed[-1:]])
            delta = rho * (data["reward"] + data["discount"] * after - fixed)
            back = lambda total, xs: (xs[0] + xs[1] * xs[2] * total, xs[0] + xs[1] * xs[2] * total)
            extra = jax.lax.scan(back, jnp.zeros(values.shape[1]), (delta, data["discount"], rho), reverse=True)[1]
            target = fixed + extra
            advantage = rho * (data["reward"] + data["discount"] * jnp.concatenate([target[1:], fixed[-1:]]) - fixed)
            entropy = -(jnp.exp(logp) * logp).sum(-1)
            return -(pick(logp) * advantage).sum() + 0.5 * ((target - values) ** 2).sum() - 0.01 * entropy.sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return Program(learner_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
