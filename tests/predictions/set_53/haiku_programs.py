"""Haiku: IMPALA's learner (the deep residual network, four times as wide: 64, 128 and 128 channels, an LSTM of 256) learns Atari's games by V-trace from trajectories of 20 steps of 84 by 84 by 4 pictures, float32, RMSProp, data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def seen(x, channels):
    for i, c in enumerate(channels):
        x = hk.Conv2D(c, 3, name=f"conv_{i}")(x)
        x = hk.max_pool(x, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for j in range(2):
            h = hk.Conv2D(c, 3, name=f"residual_{i}_{j}_a")(jax.nn.relu(x))
            x = x + hk.Conv2D(c, 3, name=f"residual_{i}_{j}_b")(jax.nn.relu(h))
    x = jax.nn.relu(x).reshape(x.shape[0], -1)
    return jax.nn.relu(hk.Linear(256, name="seen")(x))


def vtrace(logs, discounts, rewards, values, last):
    """Espeholt's targets and advantages; all [time, batch]."""
    rho = jnp.minimum(1.0, jnp.exp(logs))
    after = jnp.concatenate([values[1:], last[None]])
    deltas = rho * (rewards + discounts * after - values)

    def back(total, xs):
        delta, discount, c = xs
        total = delta + discount * c * total
        return total, total

    _, gaps = jax.lax.scan(back, jnp.zeros_like(last), (deltas, discounts, rho), reverse=True)
    targets = values + gaps
    return targets, rho * (rewards + discounts * jnp.concatenate([targets[1:], last[None]]) - values)


def impala(topology, chips, batch, steps=20, actions=18, wide=4, compute="float32", micro=1, donate=True):
    """`batch` trajectories."""
    if compute != "float32":
        policy = jmp.Policy(compute_dtype=jnp.dtype(compute), param_dtype=jnp.float32, output_dtype=jnp.dtype(compute))
        for module in (hk.Conv2D, hk.Linear):
            hk.mixed_precision.set_policy(module, policy)
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def forward(data):
        pictures = data["pictures"]
        b, t = pictures.shape[:2]
        x = seen(pictures.reshape(-1, *pictures.shape[2:]).astype(compute) / 255, (16 * wide, 32 * wide, 32 * wide)).reshape(b, t, -1)
        before = jax.nn.one_hot(data["actions"], actions, dtype=compute)
        x = jnp.concatenate([x, before, data["rewards"][..., None].astype(compute)], -1).astype(jnp.float32).swapaxes(0, 1)
        core = hk.ResetCore(hk.LSTM(256))
        state = hk.LSTMState(data["hidden"], data["cell"])
        x, _ = hk.dynamic_unroll(core, (x, data["first"].swapaxes(0, 1)), state)
        return hk.Linear(actions, name="policy")(x).astype(jnp.float32), hk.Linear(1, name="value")(x)[..., 0].astype(jnp.float32)

    net = hk.without_apply_rng(hk.transform(forward))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    length = steps + 1
    data = {
        "pictures": S("uint8", length, 84, 84, 4), "actions": S("int32", length), "rewards": S("float32", length), "first": S("bool", length), "logits": S("float32", length, actions),
        "hidden": S("float32", 256), "cell": S("float32", 256)}
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct((2, *a.shape[1:]), a.dtype), data)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), one), whole)
    transform = optax.chain(optax.clip_by_global_norm(40.0), optax.rmsprop(optax.linear_schedule(6e-4, 0.0, 100000), 0.99, 0.1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        logits, values = net.apply(params, data)
        turn = lambda a: a.swapaxes(0, 1)
        taken, rewards, discounts = turn(data["actions"])[1:], jnp.clip(turn(data["rewards"])[1:], -1, 1), 0.99 * (1.0 - turn(data["first"])[1:])
        of = lambda l: jnp.take_along_axis(jax.nn.log_softmax(l), taken[..., None], -1)[..., 0]
        ours = of(logits[:-1])
        logs = jax.lax.stop_gradient(ours) - of(turn(data["logits"])[:-1])
        targets, advantages = vtrace(logs, discounts, rewards, jax.lax.stop_gradient(values[:-1]), jax.lax.stop_gradient(values[-1]))
        share = jax.nn.softmax(logits[:-1])
        entropy = -(share * jax.nn.log_softmax(logits[:-1])).sum(-1)
        return -(ours * advantages).mean() + 0.5 * ((targets - values[:-1]) ** 2).mean() - 0.01 * entropy.mean()

    def gradients(params, data):
        if micro == 1:
            return jax.value_and_grad(loss_fn)(params, data)

        def parts(a):
            a = a.reshape(chips, micro, -1, *a.shape[1:]).swapaxes(0, 1)
            return jax.lax.with_sharding_constraint(a.reshape(micro, -1, *a.shape[3:]), NamedSharding(devices, P(None, "data")))

        def add(total, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, total, grads), loss

        grads, losses = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), jax.tree.map(parts, data))
        return losses.mean(), jax.tree.map(lambda g: g / micro, grads)

    def learn(params, opt_state, data):
        loss, grads = gradients(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return Program(learn, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
