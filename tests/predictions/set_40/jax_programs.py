"""JAX alone: TD3 that learns to calm shallow water by sixteen jets: the environments' fields, the replay memory, and the learner in one step on one chip."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following
from recipe import Program, mesh


def flow(topology, chips, games, memory=5 * 2**20, drawn=32768, side=64, sensors=384, jets=16, width=1024, substeps=8, kept="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    on = NamedSharding(devices, P())
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on)
    F = lambda *s: A("float32", *s)
    mlp = lambda *sizes: [{"w": F(a, b), "b": F(b)} for a, b in zip(sizes, sizes[1:])]
    actor = lambda: mlp(sensors, width, width, width, jets)
    critics = lambda: [mlp(sensors + jets, width, width, width, 1) for _ in "12"]
    nets = {"actor": actor(), "critics": critics()}
    targets = {"actor": actor(), "critics": critics()}
    transform = optax.adam(3e-4)
    opt = {n: following(jax.eval_shape(transform.init, nets[n]), nets[n], on) for n in nets}
    replay = {"observations": A(kept, memory, sensors), "actions": F(memory, jets), "rewards": F(memory), "place": A("int32")}
    fields = {"height": F(games, side, side), "u": F(games, side, side), "v": F(games, side, side)}

    def through(layers, x):
        x = x.astype(HALF)
        for i, l in enumerate(layers):
            x = x @ l["w"].astype(HALF) + l["b"].astype(HALF)
            x = x if i == len(layers) - 1 else jax.nn.relu(x)
        return x.astype(jnp.float32)

    act = lambda actor, seen: jnp.tanh(through(actor, seen))
    value = lambda critic, seen, action: through(critic, jnp.concatenate([seen, action], -1))[:, 0]

    def sensed(fields):
        pool = lambda a: a.reshape(-1, 16, side // 16, 8, side // 8).mean((2, 4)).reshape(-1, 128)
        return jnp.concatenate([pool(fields[n]) for n in ("height", "u", "v")], -1)

    def simulated(fields, action):
        """The jets push along the lower bank."""
        force = jnp.zeros((action.shape[0], side), "float32").at[:, :: side // jets].set(action)
        dx = lambda a: (jnp.roll(a, -1, 2) - jnp.roll(a, 1, 2)) * 0.5
        dy = lambda a: (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1)) * 0.5
        smooth = lambda a: jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) + jnp.roll(a, 1, 2) + jnp.roll(a, -1, 2) - 4 * a

        def one(f, _):
            h, u, v = f["height"], f["u"], f["v"]
            u = u + 0.02 * (-u * dx(u) - v * dy(u) - 9.8 * dx(h) + 0.1 * smooth(u))
            v = v + 0.02 * (-u * dx(v) - v * dy(v) - 9.8 * dy(h) + 0.1 * smooth(v))
            v = v.at[:, 0].add(0.02 * force)
            return {"height": h - 0.02 * (dx((1 + h) * u) + dy((1 + h) * v)), "u": u, "v": v}, None

        return jax.lax.scan(one, fields, None, length=substeps)[0]

    def td3_step(nets, targets, opt_state, replay, fields, seed):
        k1, k2, k3 = jax.random.split(jax.random.key(seed), 3)
        seen = sensed(fields)
        action = jnp.clip(act(nets["actor"], seen) + 0.1 * jax.random.normal(k1, (games, jets)), -1, 1)
        fields = simulated(fields, action)
        reward = -jnp.square(fields["height"]).mean((1, 2)) - 0.01 * jnp.square(action).mean(-1)
        place = replay["place"]
        put = lambda a, x: jax.lax.dynamic_update_slice(a, x.astype(a.dtype), (place, *[0] * (x.ndim - 1)))
        replay = {"observations": put(replay["observations"], seen), "actions": put(replay["actions"], action), "rewards": put(replay["rewards"], reward), "place": (place + games) % memory}
        rows = jax.random.randint(k2, (drawn,), 0, memory)
        before, after = (replay["observations"][r].astype(jnp.float32) for r in (rows, (rows + games) % memory))
        done, gained = replay["actions"][rows], replay["rewards"][rows]
        noise = jnp.clip(0.2 * jax.random.normal(k3, done.shape), -0.5, 0.5)
        next_action = jnp.clip(act(targets["actor"], after) + noise, -1, 1)
        aim = gained + 0.99 * jnp.minimum(*[value(c, after, next_action) for c in targets["critics"]])

        def critics_loss(critics):
            return sum(jnp.square(value(c, before, done) - aim).mean() for c in critics)

        def actor_loss(actor):
            return -value(nets["critics"][0], before, act(actor, before)).mean()

        grads = {"critics": jax.grad(critics_loss)(nets["critics"]), "actor": jax.grad(actor_loss)(nets["actor"])}
        new, state = {}, {}
        for n in nets:
            updates, state[n] = transform.update(grads[n], opt_state[n], nets[n])
            new[n] = optax.apply_updates(nets[n], updates)
        targets = optax.incremental_update(new, targets, 0.005)
        return new, targets, state, replay, fields, reward.mean()

    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt", "[3]": "other", "[4]": "other"}.get(path[:3], "input")
    args = (nets, targets, opt, replay, fields, A("int32"))
    return Program(td3_step, args, classify, (0, 1, 2, 3, 4) if donate else (), None)
