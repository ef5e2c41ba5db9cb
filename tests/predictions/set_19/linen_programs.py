"""Flax Linen: a T5 1.1 with logical axes on a mesh of two dimensions and Adafactor (t5x' style); PPO of a recurrent net with its environment in the program (PureJaxRL's style)."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed

def divided(devices, axis):
    def choose(path, leaf):
        fits = [i for i, n in enumerate(leaf.shape) if n % devices.shape[axis] == 0 and leaf.size >= 1 << 14]
        best = max(fits, key=lambda i: leaf.shape[i], default=None)
        return NamedSharding(devices, P(*[axis if i == best else None for i in range(leaf.ndim)]))
    return choose


RULES = (("batch", "data"), ("vocab", "model"), ("embed", None), ("heads", "model"), ("mlp", "model"), ("kv", None), ("relpos", None), ("length", None))
FSDP = tuple(("embed", "data") if a == "embed" else (a, b) for a, b in RULES)


def part(*names):
    return nn.with_logical_partitioning(nn.initializers.lecun_normal(), names)


class Norm(nn.Module):
    dtype: object

    @nn.compact
    def __call__(self, x):
        scale = self.param("scale", nn.with_logical_partitioning(nn.initializers.ones, ("embed",)), (x.shape[-1],))
        y = x.astype(jnp.float32)
        return (y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6) * scale).astype(self.dtype)


class Attention(nn.Module):
    heads: int
    size: int
    dtype: object

    @nn.compact
    def __call__(self, x, other, bias):
        dense = lambda name: nn.DenseGeneral((self.heads, self.size), use_bias=False, dtype=self.dtype, kernel_init=part("embed", "heads", "kv"), name=name)
        q, k, v = dense("query")(x), dense("key")(other), dense("value")(other)
        q, k, v = (nn.with_logical_constraint(a, ("batch", "length", "heads", "kv")) for a in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32)
        scores = scores if bias is None else scores + bias
        weights = jax.nn.softmax(scores).astype(self.dtype)
        out = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        return nn.DenseGeneral(x.shape[-1], axis=(-2, -1), use_bias=False, dtype=self.dtype, kernel_init=part("heads", "kv", "embed"), name="out")(out)


class Mlp(nn.Module):
    hidden: int
    dtype: object

    @nn.compact
    def __call__(self, x):
        dense = lambda name: nn.Dense(self.hidden, use_bias=False, dtype=self.dtype, kernel_init=part("embed", "mlp"), name=name)
        h = nn.gelu(dense("wi_0")(x)) * dense("wi_1")(x)
        h = nn.with_logical_constraint(h, ("batch", "length", "mlp"))
        return nn.Dense(x.shape[-1], use_bias=False, dtype=self.dtype, kernel_init=part("mlp", "embed"), name="wo")(h)


class EncoderLayer(nn.Module):
    c: dict

    @nn.compact
    def __call__(self, x, bias):
        h = Norm(self.c["dtype"])(x)
        x = x + Attention(self.c["heads"], self.c["size"], self.c["dtype"])(h, h, bias)
        x = x + Mlp(self.c["hidden"], self.c["dtype"])(Norm(self.c["dtype"])(x))
        return nn.with_logical_constraint(x, ("batch", "length", "embed")) if not self.c["fsdp"] else x


class DecoderLayer(nn.Module):
    c: dict

    @nn.compact
    def __call__(self, x, encoded, bias):
        h = Norm(self.c["dtype"])(x)
        x = x + Attention(self.c["heads"], self.c["size"], self.c["dtype"], name="self_attention")(h, h, bias)
        x = x + Attention(self.c["heads"], self.c["size"], self.c["dtype"], name="cross_attention")(Norm(self.c["dtype"])(x), encoded, None)
        return x + Mlp(self.c["hidden"], self.c["dtype"])(Norm(self.c["dtype"])(x))


class T5(nn.Module):
    c: dict

    @nn.compact
    def __call__(self, inputs, targets):
        c = self.c
        table = self.param("token_embedder", part("vocab", "embed"), (c["vocabulary"], c["width"]))
        enc, dec = (nn.remat(EncoderLayer), nn.remat(DecoderLayer)) if c["remat"] else (EncoderLayer, DecoderLayer)

        def bias(name, n, causal):
            near = self.param(name, part("heads", "relpos"), (c["heads"], 32))
            d = jnp.arange(n)[None] - jnp.arange(n)[:, None]
            b = near[:, jnp.clip(d + 16, 0, 31)].astype(jnp.float32)
            return jnp.where(d > 0, -1e10, b) if causal else b

        x = table.astype(c["dtype"])[inputs]
        rel = bias("encoder_relpos", inputs.shape[1], False)
        for i in range(c["depth"]):
            x = enc(c, name=f"encoder_layers_{i}")(x, rel)
        encoded = Norm(c["dtype"], name="encoder_norm")(x)
        y = table.astype(c["dtype"])[jnp.pad(targets[:, :-1], ((0, 0), (1, 0)))]
        rel = bias("decoder_relpos", targets.shape[1], True)
        for i in range(c["depth"]):
            y = dec(c, name=f"decoder_layers_{i}")(y, encoded, rel)
        y = Norm(c["dtype"], name="decoder_norm")(y)
        logits = nn.Dense(c["vocabulary"], use_bias=False, dtype=c["dtype"], kernel_init=part("embed", "vocab"), name="logits_dense")(y)
        return nn.with_logical_constraint(logits, ("batch", "length", "vocab"))


def t5x(topology, shape, batch, inputs, targets, width=2048, heads=32, size=64, hidden=5120, depth=24, vocabulary=32128, remat=False, half=True, fsdp=False, zero=False, donate=True):
    """The widths of T5 1.1 XL."""
    devices = mesh(topology, shape, ("data", "model"))
    rules = FSDP if fsdp else RULES
    c = dict(width=width, heads=heads, size=size, hidden=hidden, depth=depth, vocabulary=vocabulary, remat=remat, dtype=jnp.bfloat16 if half else jnp.float32, fsdp=fsdp)
    net = T5(c)
    devices.__enter__()
    nn.logical_axis_rules(rules).__enter__()
    boxed = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((2, 32), "int32"), jnp.zeros((2, 32), "int32"))["params"]
    where = nn.logical_to_mesh_sharding(nn.get_partition_spec(boxed), devices, rules)
    params = jax.tree.map(lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s), nn.meta.unbox(boxed), where)
    transform = optax.adafactor(1e-3)
    state = jax.eval_shape(transform.init, params)
    state = placed(state, divided(devices, "model") if zero else NamedSharding(devices, P()))

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            logits = net.apply({"params": params}, batch["inputs"], batch["targets"]).astype(jnp.float32)
            logz = jax.nn.logsumexp(logits, -1)
            picked = jnp.take_along_axis(logits, batch["targets"][..., None], -1)[..., 0]
            return (logz - picked + 1e-4 * logz**2).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    I = lambda n: jax.ShapeDtypeStruct((batch, n), "int32", sharding=NamedSharding(devices, P("data")))
    args = (params, state, {"inputs": I(inputs), "targets": I(targets)})
    return Program(train_step, args, kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


class ActorCritic(nn.Module):
    actions: int
    width: int
    dtype: object = jnp.float32

    @nn.compact
    def __call__(self, hidden, x, resets):
        x = nn.relu(nn.Dense(self.width, dtype=self.dtype)(x))

        class Cell(nn.Module):
            @nn.compact
            def __call__(me, carry, xs):
                x, reset = xs
                carry = jnp.where(reset[:, None], jnp.zeros_like(carry), carry)
                return nn.GRUCell(self.width, dtype=self.dtype)(carry, x)

        scanned = nn.scan(Cell, variable_broadcast="params", in_axes=0, out_axes=0, split_rngs={"params": False})
        hidden, x = scanned(name="rnn")(hidden, (x, resets))
        a, v = nn.relu(nn.Dense(self.width, dtype=self.dtype)(x)), nn.relu(nn.Dense(self.width, dtype=self.dtype)(x))
        return hidden, nn.Dense(self.actions)(a).astype(jnp.float32), nn.Dense(1)(v).astype(jnp.float32)[..., 0]


def ppo_rnn(topology, chips, envs, steps=64, cells=(9, 11, 83), width=512, actions=43, epochs=4, minibatches=8, half=False, remat=False, donate=True):
    """Collects `steps` of every environment (a map of one-hot cells, as Craftax' symbolic one), then four epochs of minibatches of whole environments."""
    devices = mesh(topology, (chips,), ("env",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("env"))
    size = cells[0] * cells[1] * cells[2] + 43
    net = ActorCritic(actions, width, jnp.bfloat16 if half else jnp.float32)
    per = envs // chips
    zeros = lambda *s: jnp.zeros(s, jnp.float32)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), zeros(2, width), zeros(1, 2, size), jnp.zeros((1, 2), bool)))
    transform = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(2e-4))

    def observe(state):
        tiles = jax.nn.one_hot(state["map"], cells[2])
        return jnp.concatenate([tiles.reshape(tiles.shape[0], -1), state["body"]], -1)

    def step_env(key, state, action):
        roll = jnp.roll(state["map"], 1, 1)
        moved = jnp.where((action % 2 == 0)[:, None, None], roll, state["map"])
        new = (moved + jax.random.randint(key, moved.shape, 0, 3)) % cells[2]
        body = jnp.tanh(state["body"] + jax.nn.one_hot(action, 43) - 0.1)
        reward = (new[:, 4, 5] == action).astype(jnp.float32)
        done = jax.random.uniform(key, action.shape) < 0.001
        return {"map": new, "body": body}, reward, done

    def update(params, opt_state, state, hidden, key):
        def act(carry, key):
            state, hidden, done = carry
            obs = observe(state)
            hidden2, logits, value = net.apply(params, hidden, obs[None], done[None])
            action = jax.random.categorical(key, logits[0])
            logp = jnp.take_along_axis(jax.nn.log_softmax(logits[0]), action[:, None], 1)[:, 0]
            state2, reward, done2 = step_env(key, state, action)
            return (state2, hidden2, done2), dict(obs=obs, action=action, logp=logp, value=value[0], reward=reward, done=done)

        key, k = jax.random.split(key)
        (state2, hidden2, done), traj = jax.lax.scan(act, (state, hidden, jnp.zeros(per, bool)), jax.random.split(k, steps))
        _, _, last = net.apply(params, hidden2, observe(state2)[None], done[None])

        def advantage(carry, t):
            gae, nxt, d = carry
            delta = t["reward"] + 0.99 * nxt * (1 - d) - t["value"]
            gae = delta + 0.99 * 0.95 * (1 - d) * gae
            return (gae, t["value"], t["done"].astype(jnp.float32)), gae

        _, adv = jax.lax.scan(advantage, (jnp.zeros(per), last[0], done.astype(jnp.float32)), {k: traj[k] for k in ("reward", "value", "done")}, reverse=True)
        traj["adv"], traj["target"] = adv, adv + traj["value"]

        def loss_fn(params, hidden, t):
            apply = jax.checkpoint(net.apply) if remat else net.apply
            _, logits, value = apply(params, hidden, t["obs"], t["done"])
            logp = jax.nn.log_softmax(logits)
            chosen = jnp.take_along_axis(logp, t["action"][..., None], -1)[..., 0]
            ratio = jnp.exp(chosen - t["logp"])
            a = (t["adv"] - t["adv"].mean()) / (t["adv"].std() + 1e-8)
            actor = -jnp.minimum(ratio * a, jnp.clip(ratio, 0.8, 1.2) * a).mean()
            return actor + 0.5 * ((value - t["target"]) ** 2).mean() + 0.01 * (jnp.exp(logp) * logp).sum(-1).mean()

        def epoch(carry, key):
            params, opt_state = carry
            order = jax.random.permutation(key, per)
            shuffled = jax.tree.map(lambda a: jnp.take(a, order, 1), traj)
            parts = jax.tree.map(lambda a: jnp.moveaxis(a.reshape(a.shape[0], minibatches, -1, *a.shape[2:]), 1, 0), shuffled)
            hiddens = jnp.take(hidden, order, 0).reshape(minibatches, -1, width)

            def one(carry, xs):
                params, opt_state = carry
                grads = jax.lax.pmean(jax.grad(loss_fn)(params, *xs), "env")
                updates, opt_state = transform.update(grads, opt_state, params)
                return (optax.apply_updates(params, updates), opt_state), None

            return jax.lax.scan(one, carry, (hiddens, parts))[0], None

        (params, opt_state), _ = jax.lax.scan(epoch, (params, opt_state), jax.random.split(key, epochs))
        return params, opt_state, state2, hidden2, traj["reward"].mean()[None]

    step = jax.shard_map(update, mesh=devices, in_specs=(P(), P(), P("env"), P("env"), P()), out_specs=(P(), P(), P("env"), P("env"), P("env")), check_vma=False)
    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=split)
    state = {"map": S("int32", envs, *cells[:2]), "body": S("float32", envs, 43)}
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), state, S("float32", envs, width), jax.ShapeDtypeStruct((2,), "uint32", sharding=whole))
    return Program(step, args, kind_of_step, (0, 1, 2, 3) if donate else ())
