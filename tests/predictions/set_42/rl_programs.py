"""JAX alone: A2C that steers a reaction and diffusion (Gray and Scott's two fields of 128 by 128 places, fed at 16 of them), many environments divided over the chips; rollout by scan and one update in the same program; actor and critic of their own."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed

SIDE, COARSE, TAPS = 128, 16, 16


def seen_of(fields):
    """The second field, as means of 8 by 8 places."""
    step = SIDE // COARSE
    v = fields["v"].reshape(-1, COARSE, step, COARSE, step).mean((2, 4))
    return v.reshape(v.shape[0], COARSE * COARSE)


def environment(fields, action, target):
    u, v = fields["u"], fields["v"]
    side = int(TAPS**0.5)
    feed = 0.04 + 0.02 * jnp.tanh(action).reshape(-1, side, 1, side, 1)
    feed = jnp.broadcast_to(feed, (u.shape[0], side, SIDE // side, side, SIDE // side)).reshape(u.shape)
    spread = lambda a: jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) + jnp.roll(a, 1, 2) + jnp.roll(a, -1, 2) - 4 * a

    def small(_, uv):
        u, v = uv
        made = u * v * v
        return u + 0.16 * spread(u) - made + feed * (1 - u), v + 0.08 * spread(v) + made - (feed + 0.06) * v

    u, v = jax.lax.fori_loop(0, 4, small, (u, v))
    reward = -jnp.square(v.mean((1, 2)) - target) - 1e-3 * jnp.square(action).sum(-1)
    return {"u": u, "v": v}, reward


def a2c(topology, chips, envs, steps=32, width=512, depth=2, dtype="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    sizes = [COARSE * COARSE, *[width] * depth]
    net = lambda out: [{"w": F(a, b), "b": F(b)} for a, b in zip(sizes, sizes[1:])] + [{"w": F(width, out), "b": F(out)}]
    params = {"actor": net(TAPS), "critic": net(1), "spread": F(TAPS)}
    transform = optax.chain(optax.clip_by_global_norm(0.5), optax.rmsprop(7e-4, decay=0.99, eps=1e-5))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def through(layers, x):
        x = x.astype(dtype)
        for i, l in enumerate(layers):
            x = x @ l["w"].astype(dtype) + l["b"].astype(dtype)
            x = x if i == len(layers) - 1 else jnp.tanh(x)
        return x.astype(jnp.float32)

    def likely(mean, spread, action):
        return (-0.5 * jnp.square((action - mean) / jnp.exp(spread)) - spread - 0.919).sum(-1)

    def a2c_step(params, opt_state, env, key):
        def one(env, key):
            obs = seen_of(env)
            mean = through(params["actor"], obs)
            action = mean + jnp.exp(params["spread"]) * jax.random.normal(key, mean.shape)
            action = jax.lax.with_sharding_constraint(action, split)
            env, reward = environment(env, action, 0.2)
            return env, {"obs": obs, "action": action, "reward": reward}

        env, seen = jax.lax.scan(one, env, jax.random.split(key, steps))
        last = through(params["critic"], seen_of(env))[..., 0]

        def back(following, reward):
            following = reward + 0.99 * following
            return following, following

        _, gained = jax.lax.scan(back, last, seen["reward"], reverse=True)

        def loss_fn(params):
            mean = through(params["actor"], seen["obs"])
            value = through(params["critic"], seen["obs"])[..., 0]
            better = jax.lax.stop_gradient(gained - value)
            policy = -(likely(mean, params["spread"], seen["action"]) * better).mean()
            return policy + 0.5 * jnp.square(gained - value).mean() - 0.01 * params["spread"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, env, loss

    env = {n: jax.ShapeDtypeStruct((envs, SIDE, SIDE), "float32", sharding=split) for n in "uv"}
    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype, sharding=whole)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[3]": "other"}.get(path[:3], "input")
    return Program(a2c_step, (params, opt, env, key), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(opt), shardings(env), None))
