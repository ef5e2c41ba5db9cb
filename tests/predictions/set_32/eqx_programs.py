"""Equinox: PPO as PureJaxRL runs it on Craftax with symbols, samples collected inside the step; Llama 3.2 3B, frozen in int4 with groups, LoRA in its stacked layers."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, rms, turned
from recipe import Program, mesh, placed

KINDS, VIEW, GOODS, ACTIONS = 83, (9, 11), 51, 43


class ActorCritic(eqx.Module):
    actor: list
    critic: list

    def __init__(self, sees, width, key):
        keys = iter(jax.random.split(key, 8))
        make = lambda out: [eqx.nn.Linear(a, b, key=next(keys)) for a, b in ((sees, width), (width, width), (width, width), (width, out))]
        self.actor, self.critic = make(ACTIONS), make(1)

    def __call__(self, x):
        def run(layers):
            h = x
            for layer in layers[:-1]:
                h = jnp.tanh(layer(h))
            return layers[-1](h)

        return run(self.actor), run(self.critic)[0]


def look(state):
    view = jax.lax.dynamic_slice(state["map"], (state["place"][0], state["place"][1]), VIEW)
    return jnp.concatenate([jax.nn.one_hot(view, KINDS).reshape(-1), state["goods"]])


def act(state, action, side):
    way = jnp.array([[0, 0], [0, 1], [0, -1], [1, 0], [-1, 0]])[jnp.where(action < 5, action, 0)]
    place = jnp.clip(state["place"] + way, 0, side - max(VIEW) - 1)
    middle = place + jnp.array(VIEW) // 2
    found = state["map"][middle[0], middle[1]]
    digs = (action >= 5) & (found == action)
    ground = state["map"].at[middle[0], middle[1]].set(jnp.where(digs, 0, found))
    goods = state["goods"].at[jnp.clip(action, 0, GOODS - 1)].add(digs * 0.1)
    time = state["time"] + 1
    done = time >= 10000
    place = jnp.where(done, 16, place)
    return {"map": ground, "place": place, "goods": jnp.where(done, 0.0, goods), "time": jnp.where(done, 0, time)}, digs.astype(jnp.float32), done


def craftax(topology, chips, envs, steps=64, epochs=4, parts=8, side=48, width=512, donate=True):
    sees = VIEW[0] * VIEW[1] * KINDS + GOODS
    where = NamedSharding(mesh(topology, (chips,), ("x",)), P())
    net = eqx.filter_eval_shape(lambda: ActorCritic(sees, width, jax.random.PRNGKey(0)))
    params, static = eqx.partition(net, eqx.is_array_like)
    params, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(2e-4, eps=1e-5))
    opt = jax.eval_shape(transform.init, params)

    def update_step(params, opt_state, env_state, last_obs, key):
        def collect(carry, _):
            state, obs, key = carry
            key, now = jax.random.split(key)
            logits, value = jax.vmap(eqx.combine(params, static))(obs)
            action = jax.random.categorical(now, logits)
            chance = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
            state, reward, done = jax.vmap(lambda s, a: act(s, a, side))(state, action)
            return (state, jax.vmap(look)(state), key), dict(obs=obs, action=action, chance=chance, value=value, reward=reward, done=done)

        (env_state, last_obs, key), traj = jax.lax.scan(collect, (env_state, last_obs, key), None, steps)
        last = jax.vmap(eqx.combine(params, static))(last_obs)[1]

        def back(carry, t):
            gae, after = carry
            delta = t["reward"] + 0.99 * after * (1 - t["done"]) - t["value"]
            gae = delta + 0.99 * 0.8 * (1 - t["done"]) * gae
            return (gae, t["value"]), gae

        gain = jax.lax.scan(back, (jnp.zeros_like(last), last), {k: traj[k] for k in ("reward", "done", "value")}, reverse=True, unroll=16)[1]
        batch = {**{k: traj[k] for k in ("obs", "action", "chance", "value")}, "gain": gain, "goal": gain + traj["value"]}
        flat = jax.tree.map(lambda a: a.reshape(steps * envs, *a.shape[2:]), batch)

        def loss_fn(params, b):
            logits, value = jax.vmap(eqx.combine(params, static))(b["obs"])
            logp = jax.nn.log_softmax(logits)
            ratio = jnp.exp(jnp.take_along_axis(logp, b["action"][:, None], 1)[:, 0] - b["chance"])
            gain = (b["gain"] - b["gain"].mean()) / (b["gain"].std() + 1e-8)
            policy = -jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain).mean()
            near = b["value"] + jnp.clip(value - b["value"], -0.2, 0.2)
            worth = 0.5 * jnp.maximum((value - b["goal"]) ** 2, (near - b["goal"]) ** 2).mean()
            return policy + 0.5 * worth + 0.01 * (jnp.exp(logp) * logp).sum(-1).mean()

        def minibatch(carry, b):
            params, opt_state = carry
            loss, grads = jax.value_and_grad(loss_fn)(params, b)
            updates, opt_state = transform.update(grads, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), loss

        def epoch(carry, key):
            order = jax.random.permutation(key, steps * envs)
            mixed = jax.tree.map(lambda a: jnp.take(a, order, axis=0).reshape(parts, -1, *a.shape[1:]), flat)
            return jax.lax.scan(minibatch, carry, mixed)

        keys = jax.random.split(key, epochs + 1)
        (params, opt_state), losses = jax.lax.scan(epoch, (params, opt_state), keys[1:])
        return params, opt_state, env_state, last_obs, keys[0], losses.mean()

    S = lambda d, *s: jax.ShapeDtypeStruct(s, d)
    env_state = {"map": S("int32", envs, side, side), "place": S("int32", envs, 2), "goods": S("float32", envs, GOODS), "time": S("int32", envs)}
    args = placed((params, opt, env_state, S("float32", envs, sees), S("uint32", 2)), where)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "other")
    return Program(update_step, args, classify, (0, 1, 2, 3) if donate else ())


class Quantised(eqx.Module):
    """A frozen matrix in int4, a scale for each group of 64 rows, and its adapter."""
    codes: jax.Array
    scales: jax.Array
    lora_a: jax.Array
    lora_b: jax.Array

    def __init__(self, depth, rows, columns, rank):
        S = lambda d, *s: jnp.zeros((depth, *s), d)
        self.codes, self.scales = S("int4", rows, columns), S("bfloat16", rows // 64, columns)
        self.lora_a, self.lora_b = S("float32", rows, rank), S("float32", rank, columns)

    def __call__(self, x):
        w = (self.codes.astype(HALF).reshape(-1, 64, self.codes.shape[-1]) * self.scales[:, None]).reshape(self.codes.shape)
        return x @ w + (x @ self.lora_a.astype(HALF)) @ self.lora_b.astype(HALF) * HALF(2.0)


class Block(eqx.Module):
    q: Quantised
    k: Quantised
    v: Quantised
    o: Quantised
    gate: Quantised
    up: Quantised
    down: Quantised
    norm1: jax.Array
    norm2: jax.Array
    heads: int = eqx.field(static=True)

    def __init__(self, depth, width, heads, kv, hidden, rank):
        size = width // heads
        lin = lambda a, b: Quantised(depth, a, b, rank)
        self.q, self.k, self.v, self.o = lin(width, width), lin(width, kv * size), lin(width, kv * size), lin(width, width)
        self.gate, self.up, self.down = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.norm1, self.norm2, self.heads = jnp.zeros((depth, width), "bfloat16"), jnp.zeros((depth, width), "bfloat16"), heads

    def __call__(self, x):
        h, size = rms(x, self.norm1), x.shape[-1] // self.heads
        q, k, v = (f(h).reshape(*h.shape[:2], -1, size) for f in (self.q, self.k, self.v))
        x = x + self.o(jax.nn.dot_product_attention(turned(q, 500000.0), turned(k, 500000.0), v, is_causal=True).reshape(x.shape))
        h = rms(x, self.norm2)
        return x + self.down(jax.nn.silu(self.gate(h)) * self.up(h))


class Llama(eqx.Module):
    embed: jax.Array
    norm: jax.Array
    layers: Block

    def __init__(self, words, width, heads, kv, hidden, depth, rank):
        self.embed, self.norm = jnp.zeros((words, width), "bfloat16"), jnp.zeros((width,), "bfloat16")
        self.layers = Block(depth, width, heads, kv, hidden, rank)

    def __call__(self, tokens, remat):
        dynamic, static = eqx.partition(self.layers, lambda a: isinstance(a, jax.Array) or eqx.is_array(a))
        body = lambda x, layer: (eqx.combine(layer, static)(x), None)
        x = self.embed[tokens]
        return rms(jax.lax.scan(jax.checkpoint(body, prevent_cse=False) if remat else body, x, dynamic)[0], self.norm)


def qlora(topology, chips, batch, length=1024, words=128256, width=3072, heads=24, kv=8, hidden=8192, depth=28, rank=16, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    model = eqx.filter_eval_shape(lambda: Llama(words, width, heads, kv, hidden, depth, rank))
    chosen = jax.tree_util.tree_map_with_path(lambda p, a: "lora" in jax.tree_util.keystr(p), model)
    lora, frozen = eqx.partition(model, chosen)
    transform = optax.chain(optax.clip_by_global_norm(0.3), optax.adamw(2e-4))
    opt = jax.eval_shape(transform.init, lora)

    def train_step(lora, opt_state, frozen, tokens):
        def loss_fn(lora):
            net = eqx.combine(lora, frozen)
            return entropy(net(tokens, remat), net.embed.T, jnp.roll(tokens, -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(lora)
        updates, opt_state = transform.update(grads, opt_state, lora)
        return optax.apply_updates(lora, updates), opt_state, loss

    lora, opt, frozen = placed((lora, opt, frozen), NamedSharding(devices, P()))
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("data")))
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, (lora, opt, frozen, tokens), classify, (0, 1) if donate else ())
