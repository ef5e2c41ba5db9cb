"""Linen: PPO of a soft robot (a chain of 64 masses on springs in a stream, pushed at eight of them), many environments on one chip: rollout, advantages and epochs of shuffled minibatches in one program; wide actor and critic."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed

MASSES, JETS = 64, 8


class Wide(nn.Module):
    width: int
    dtype: str

    @nn.compact
    def __call__(self, x):
        def through(x, name, out):
            x = x.astype(self.dtype)
            for i in range(3):
                x = nn.elu(nn.LayerNorm(dtype=self.dtype, name=f"{name}_norm_{i}")(nn.Dense(self.width, dtype=self.dtype, name=f"{name}_{i}")(x)))
            return nn.Dense(out, dtype=self.dtype, name=f"{name}_out")(x).astype(jnp.float32)

        spread = self.param("spread", nn.initializers.zeros, (3 * JETS,))
        return through(x, "actor", 3 * JETS), spread, through(x, "critic", 1)[:, 0]


def seen_of(env):
    return jnp.concatenate([env["at"].reshape(env["at"].shape[0], -1), env["speed"].reshape(env["at"].shape[0], -1)], -1)


def environment(env, action, key):
    """A few small steps of the chain; one that has gone too far begins anew."""
    at, speed = env["at"], env["speed"]
    push = jnp.zeros_like(at).at[:, :: MASSES // JETS].set(action.reshape(-1, JETS, 3))

    def small(carry, _):
        at, speed = carry
        gap = at[:, 1:] - at[:, :-1]
        length = jnp.sqrt(jnp.square(gap).sum(-1, keepdims=True) + 1e-6)
        pull = 50.0 * (length - 0.1) * gap / length
        force = push + jnp.pad(pull, ((0, 0), (0, 1), (0, 0))) - jnp.pad(pull, ((0, 0), (1, 0), (0, 0))) - 0.5 * (speed - jnp.array([0.3, 0.0, 0.0]))
        speed = speed + 0.005 * force
        return (at + 0.005 * speed, speed), None

    (at, speed), _ = jax.lax.scan(small, (at, speed), None, length=4)
    reward = -speed.mean((1, 2)) - 0.001 * jnp.square(action).sum(-1)
    done = jnp.abs(at.mean(1)).max(-1) > 10.0
    fresh = 0.1 * jax.random.normal(key, at.shape)
    at = jnp.where(done[:, None, None], fresh, at)
    return {"at": at, "speed": jnp.where(done[:, None, None], 0.0, speed)}, reward, done


def ppo(topology, chips, envs, steps=64, epochs=4, minibatches=4, width=2048, dtype="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    on = NamedSharding(devices, P())
    net = Wide(width, dtype)
    make = lambda: TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.zeros((1, 6 * MASSES))), tx=optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-4, eps=1e-5)))
    state = placed(jax.eval_shape(make), on)

    def likely(mean, spread, action):
        return (-0.5 * jnp.square((action - mean) / jnp.exp(spread)) - spread - 0.919).sum(-1)

    def ppo_step(train_state, env_state, key):
        def one(env, key):
            obs = seen_of(env)
            mean, spread, value = train_state.apply_fn(train_state.params, obs)
            k1, k2 = jax.random.split(key)
            action = mean + jnp.exp(spread) * jax.random.normal(k1, mean.shape)
            new, reward, done = environment(env, action, k2)
            return new, {"obs": obs, "action": action, "logp": likely(mean, spread, action), "value": value, "reward": reward, "done": done}

        roll, shuffle = jax.random.split(key)
        env, seen = jax.lax.scan(one, env_state, jax.random.split(roll, steps))
        last = train_state.apply_fn(train_state.params, seen_of(env))[2]

        def advantage(carry, t):
            total, following = carry
            alive = 1.0 - t["done"]
            total = t["reward"] + 0.99 * following * alive - t["value"] + 0.99 * 0.95 * alive * total
            return (total, t["value"]), total

        scalars = {n: seen[n] for n in ("reward", "done", "value")}
        _, gained = jax.lax.scan(advantage, (jnp.zeros_like(last), last), scalars, reverse=True)
        flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), {**seen, "gained": gained})

        def epoch(train, key):
            order = jax.random.permutation(key, flat["value"].shape[0]).reshape(minibatches, -1)

            def update(train, rows):
                part = jax.tree.map(lambda a: a[rows], flat)

                def loss_fn(params):
                    mean, spread, value = train.apply_fn(params, part["obs"])
                    ratio = jnp.exp(likely(mean, spread, part["action"]) - part["logp"])
                    a = (part["gained"] - part["gained"].mean()) / (part["gained"].std() + 1e-8)
                    policy = -jnp.minimum(ratio * a, jnp.clip(ratio, 0.8, 1.2) * a).mean()
                    return policy + 0.5 * jnp.square(value - part["gained"] - part["value"]).mean() - 0.001 * spread.sum()

                loss, grads = jax.value_and_grad(loss_fn)(train.params)
                return train.apply_gradients(grads=grads), loss

            return jax.lax.scan(update, train, order)

        train, losses = jax.lax.scan(epoch, train_state, jax.random.split(shuffle, epochs))
        return train, env, losses.mean()

    env = {n: jax.ShapeDtypeStruct((envs, MASSES, 3), "float32", sharding=on) for n in ("at", "speed")}
    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype, sharding=on)
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else {"[0]": "weight", "[2]": "other"}.get(path[:3], "input")
    return Program(ppo_step, (state, env, key), classify, (0, 1) if donate else (), (shardings(state), shardings(env), None))
