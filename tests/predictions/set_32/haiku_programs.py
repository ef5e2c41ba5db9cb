"""Haiku: LiT: a locked image tower (ViT-L/16, hk.layer_stack) and a text tower that is trained, a contrastive loss over all devices' pairs; SAC with its replay memory in the step."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh, placed

norm = lambda name: hk.LayerNorm(-1, True, True, name=name)


class Layer(hk.Module):
    def __init__(self, heads, name=None):
        super().__init__(name=name)
        self.heads = heads

    def __call__(self, x):
        width = x.shape[-1]
        h = norm("ln_1")(x)
        q, k, v = (hk.Linear(width, name=n)(h).reshape(*h.shape[:2], self.heads, -1) for n in ("query", "key", "value"))
        p = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5).astype(x.dtype)
        x = x + hk.Linear(width, name="proj")(jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(x.shape))
        return x + hk.Linear(width, name="mlp_out")(jax.nn.gelu(hk.Linear(4 * width, name="mlp_in")(norm("ln_2")(x))))


def lit(topology, chips, batch, side=224, patch=16, length=64, words=32000, sight=1024, seers=16, deep=24, width=768, heads=12, depth=12, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def picture(pixels):
        x = hk.Conv2D(sight, patch, patch, padding="VALID", name="patches")(pixels)
        x = x.reshape(x.shape[0], -1, sight)
        x = x + hk.get_parameter("places", [x.shape[1], sight], x.dtype, init=jnp.zeros)
        x = hk.experimental.layer_stack(deep, name="image_stack")(lambda x: Layer(seers, name="block")(x))(x)
        return norm("image_norm")(x).mean(1)

    def text(tokens):
        x = hk.Embed(words, width, name="word")(tokens) + hk.get_parameter("places", [length, width], init=jnp.zeros)
        x = x.astype(HALF)
        for i in range(depth):
            layer = Layer(heads, name=f"text_{i}")
            x = (hk.remat(layer) if remat else layer)(x)
        hk.get_parameter("t", [], init=jnp.zeros)
        return hk.Linear(sight, name="head")(norm("text_norm")(x)[:, -1])

    see, read = hk.without_apply_rng(hk.transform(picture)), hk.without_apply_rng(hk.transform(text))
    key = jax.random.key(0)
    frozen = jax.eval_shape(see.init, key, jax.ShapeDtypeStruct((1, side, side, 3), HALF))
    frozen = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, HALF), frozen), whole)
    params = placed(jax.eval_shape(read.init, key, jax.ShapeDtypeStruct((1, length), "int32")), whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    opt = placed(jax.eval_shape(transform.init, params), whole)
    unit = lambda a: a / (jnp.linalg.norm(a, axis=-1, keepdims=True) + 1e-6)

    def update(params, opt_state, frozen, batch):
        seen = unit(see.apply(frozen, batch["image"].astype(HALF) / HALF(127.5) - HALF(1)).astype(jnp.float32))

        def loss_fn(params):
            half = jax.tree.map(lambda a: a.astype(HALF), params)
            said = unit(read.apply(half, batch["text"]).astype(jnp.float32))
            scores = jax.lax.with_sharding_constraint(seen @ said.T, split) * jnp.exp(params["~"]["t"])
            labels = jnp.arange(scores.shape[0])
            loss = optax.softmax_cross_entropy_with_integer_labels
            return (loss(scores, labels).mean() + loss(scores.T, labels).mean()) / 2

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(update, (params, opt, frozen, {"image": S("uint8", side, side, 3), "text": S("int32", length)}), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


def sac(topology, chips, envs, steps=16, room=2048, sees=376, acts=17, width=1024, updates=16, batch=32768, memory="float32", donate=True):
    """SAC on a humanoid; `room` places in the memory of each environment, [room, envs, ...]; what is learnt from is drawn from it."""
    where = NamedSharding(mesh(topology, (chips,), ("x",)), P())

    def actor(obs):
        h = hk.nets.MLP([width, width, width, 2 * acts], activation=jax.nn.relu, name="actor")(obs)
        return jnp.split(h, 2, -1)

    def critic(obs, action):
        x = jnp.concatenate([obs, action], -1)
        return jnp.stack([hk.nets.MLP([width, width, width, 1], activation=jax.nn.relu, name=f"critic_{i}")(x)[..., 0] for i in range(2)])

    policy, value = hk.without_apply_rng(hk.transform(actor)), hk.without_apply_rng(hk.transform(critic))
    O, A = jax.ShapeDtypeStruct((1, sees), "float32"), jax.ShapeDtypeStruct((1, acts), "float32")
    key = jax.random.key(0)
    pi, q = jax.eval_shape(policy.init, key, O), jax.eval_shape(value.init, key, O, A)
    adam = optax.adam(3e-4)
    learner = {"actor": pi, "critic": q, "target": q, "actor_opt": jax.eval_shape(adam.init, pi), "critic_opt": jax.eval_shape(adam.init, q)}
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d)
    env_state = {"obs": S("float32", envs, sees), "qpos": S("float32", envs, 24), "qvel": S("float32", envs, 23), "time": S("int32", envs)}
    replay = {"obs": S(memory, room, envs, sees), "next_obs": S(memory, room, envs, sees), "action": S(memory, room, envs, acts), "reward": S(memory, room, envs), "discount": S(memory, room, envs), "insert": S("int32")}

    def draw(pi, obs, key):
        mean, spread = policy.apply(pi, obs)
        spread = jnp.exp(jnp.clip(spread, -5, 2))
        raw = mean + spread * jax.random.normal(key, mean.shape)
        chance = -0.5 * ((raw - mean) / spread) ** 2 - jnp.log(spread) - 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))
        return jnp.tanh(raw), chance.sum(-1)

    def move(s, action):
        force = jnp.concatenate([action, jnp.zeros(6)])
        qvel = s["qvel"] + 0.015 * (force - jnp.sin(s["qpos"][:23]) - 0.1 * s["qvel"])
        qpos = s["qpos"].at[:23].add(0.015 * qvel)
        seen = jnp.concatenate([qpos, qvel])
        obs = jnp.tanh(jnp.outer(seen, jnp.array([0.5, 1, 1.5, 2, 3, 4, 5, 6])).reshape(-1))[:sees]
        done = (qpos[2] < -1) | (s["time"] > 1000)
        return {"obs": obs, "qpos": jnp.where(done, 0.0, qpos), "qvel": jnp.where(done, 0.0, qvel), "time": jnp.where(done, 0, s["time"] + 1)}, qvel[0], 1.0 - done

    def training_step(learner, env_state, replay, key):
        def collect(carry, _):
            state, replay, key = carry
            key, now = jax.random.split(key)
            action, _ = draw(learner["actor"], state["obs"], now)
            after, reward, discount = jax.vmap(move)(state, action)
            fresh = {"obs": state["obs"], "next_obs": after["obs"], "action": action, "reward": reward, "discount": discount}
            at = replay["insert"]
            replay = {**{n: jax.lax.dynamic_update_index_in_dim(replay[n], a.astype(replay[n].dtype), at, 0) for n, a in fresh.items()}, "insert": (at + 1) % room}
            return (after, replay, key), reward.mean()

        (env_state, replay, key), rewards = jax.lax.scan(collect, (env_state, replay, key), None, steps)

        def learn(carry, key):
            k1, k2, k3, k4 = jax.random.split(key, 4)
            row, column = jax.random.randint(k1, (batch,), 0, room), jax.random.randint(k2, (batch,), 0, envs)
            b = {n: replay[n][row, column].astype(jnp.float32) for n in ("obs", "next_obs", "action", "reward", "discount")}

            def critic_loss(q):
                action, chance = draw(carry["actor"], b["next_obs"], k3)
                goal = b["reward"] + 0.99 * b["discount"] * (value.apply(carry["target"], b["next_obs"], action).min(0) - 0.1 * chance)
                return ((value.apply(q, b["obs"], b["action"]) - jax.lax.stop_gradient(goal)) ** 2).mean()

            def actor_loss(pi):
                action, chance = draw(pi, b["obs"], k4)
                return (0.1 * chance - value.apply(carry["critic"], b["obs"], action).min(0)).mean()

            out = dict(carry)
            loss, grads = jax.value_and_grad(critic_loss)(carry["critic"])
            change, out["critic_opt"] = adam.update(grads, carry["critic_opt"])
            out["critic"] = optax.apply_updates(carry["critic"], change)
            grads = jax.grad(actor_loss)(carry["actor"])
            change, out["actor_opt"] = adam.update(grads, carry["actor_opt"])
            out["actor"] = optax.apply_updates(carry["actor"], change)
            out["target"] = optax.incremental_update(out["critic"], carry["target"], 0.005)
            return out, loss

        key, now = jax.random.split(key)
        learner, losses = jax.lax.scan(learn, learner, jax.random.split(now, updates))
        return learner, env_state, replay, key, losses.mean(), rewards.mean()

    args = placed((learner, env_state, replay, S("uint32", 2)), where)
    classify = lambda path: ("opt" if "_opt" in path else "weight") if path.startswith("[0]") else "other"
    return Program(training_step, args, classify, (0, 1, 2) if donate else ())
