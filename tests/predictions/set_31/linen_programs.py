"""Linen: PPO as PureJaxRL has it, on pictures: rollouts, advantages and epochs of shuffled minibatches in one program; environments divided over the chips."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed


class Nature(nn.Module):
    actions: int
    dtype: str

    @nn.compact
    def __call__(self, x):
        x = x.astype(self.dtype) / 255
        for n, size, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = nn.relu(nn.Conv(n, (size, size), (stride, stride), padding="VALID", dtype=self.dtype)(x))
        x = nn.relu(nn.Dense(512, dtype=self.dtype)(x.reshape(x.shape[0], -1)))
        head = lambda n: nn.Dense(n, dtype=self.dtype)(x).astype(jnp.float32)
        return head(self.actions), head(1)[:, 0]


def render(ball, paddle):
    """One frame [n, 84, 84] of a ball and a paddle."""
    rows, columns = jnp.arange(84)[None, :, None], jnp.arange(84)[None, None, :]
    at = lambda a: a.astype(jnp.int32)[:, None, None]
    seen = (abs(rows - at(ball[:, 0])) <= 2) & (abs(columns - at(ball[:, 1])) <= 2)
    seen |= (rows >= 80) & (abs(columns - at(paddle)) <= 6)
    return jnp.where(seen, 255, 0).astype(jnp.uint8)


def environment(state, action, key):
    ball, speed, paddle, obs = state["ball"], state["speed"], state["paddle"], state["obs"]
    paddle = jnp.clip(paddle + 3.0 * (action - 1), 6, 77)
    ball = ball + speed
    speed = jnp.where((ball < 2) | (ball > 81), -speed, speed)
    low = ball[:, 0] > 79
    hit = low & (abs(ball[:, 1] - paddle) <= 6)
    done = low & ~hit
    fresh = jax.random.uniform(key, ball.shape, minval=10.0, maxval=70.0)
    ball = jnp.where(done[:, None], fresh, ball)
    obs = jnp.concatenate([obs[..., 1:], render(ball, paddle)[..., None]], -1)
    return {"ball": ball, "speed": speed, "paddle": paddle, "obs": obs}, jnp.where(hit, 1.0, jnp.where(done, -1.0, 0.0)), done


def ppo(topology, chips, envs, steps=128, epochs=4, minibatches=4, dtype="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Nature(3, dtype)
    make = lambda: TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.zeros((1, 84, 84, 4), "uint8")), tx=optax.chain(optax.clip_by_global_norm(0.5), optax.adam(2.5e-4, eps=1e-5)))
    state = placed(jax.eval_shape(make), whole)

    def local(train, env, key):  # of a device
        def one(carry, key):
            env, = carry
            logits, value = train.apply_fn(train.params, env["obs"])
            k1, k2 = jax.random.split(key)
            action = jax.random.categorical(k1, logits)
            logp = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
            new, reward, done = environment(env, action, k2)
            return (new,), {"obs": env["obs"], "action": action, "logp": logp, "value": value, "reward": reward, "done": done}

        key, roll, shuffle = jax.random.split(jax.random.fold_in(key, jax.lax.axis_index("data")), 3)
        (env,), seen = jax.lax.scan(one, (env,), jax.random.split(roll, steps))
        last = train.apply_fn(train.params, env["obs"])[1]

        def advantage(carry, t):
            total, following = carry
            alive = 1.0 - t["done"]
            delta = t["reward"] + 0.99 * following * alive - t["value"]
            total = delta + 0.99 * 0.95 * alive * total
            return (total, t["value"]), total

        scalars = {n: a for n, a in seen.items() if n != "obs"}
        _, gained = jax.lax.scan(advantage, (jnp.zeros_like(last), last), scalars, reverse=True)
        flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), {**seen, "gained": gained})

        def epoch(train, key):
            order = jax.random.permutation(key, flat["value"].shape[0])
            parts = jax.tree.map(lambda a: a[order].reshape(minibatches, -1, *a.shape[1:]), flat)

            def update(train, part):
                def loss_fn(params):
                    logits, value = train.apply_fn(params, part["obs"])
                    every = jax.nn.log_softmax(logits)
                    ratio = jnp.exp(jnp.take_along_axis(every, part["action"][:, None], 1)[:, 0] - part["logp"])
                    a = part["gained"]
                    a = (a - a.mean()) / (a.std() + 1e-8)
                    policy = -jnp.minimum(ratio * a, jnp.clip(ratio, 0.9, 1.1) * a).mean()
                    return policy + 0.5 * ((value - part["gained"] - part["value"]) ** 2).mean() + 0.01 * (jnp.exp(every) * every).sum(-1).mean()

                loss, grads = jax.value_and_grad(loss_fn)(train.params)
                return train.apply_gradients(grads=jax.lax.pmean(grads, "data")), loss

            return jax.lax.scan(update, train, parts)

        train, losses = jax.lax.scan(epoch, train, jax.random.split(shuffle, epochs))
        return train, env, jax.lax.pmean(losses.mean(), "data")

    env = {"ball": (envs, 2), "speed": (envs, 2), "paddle": (envs,)}
    env = {n: jax.ShapeDtypeStruct(s, "float32", sharding=split) for n, s in env.items()} | {"obs": jax.ShapeDtypeStruct((envs, 84, 84, 4), "uint8", sharding=split)}

    def update_step(train_state, env_state, key):
        run = jax.shard_map(local, mesh=devices, in_specs=(P(), P("data"), P()), out_specs=(P(), P("data"), P()), check_vma=False)
        return run(train_state, env_state, key)

    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype, sharding=whole)
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else {"[0]": "weight", "[2]": "other"}.get(path[:3], "input")
    return Program(update_step, (state, env, key), classify, (0, 1) if donate else (), (shardings(state), shardings(env), None))
