"""Flax NNX: a Perceiver, a recurrent PPO step, a diffusion transformer with adaLN whose layers are scanned."""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import flash, kind_of_nnx
from recipe import Program, largest_dimension, mesh, placed

HALF = jnp.bfloat16


def whole_scores(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(HALF), v)


class Attend(nnx.Module):
    def __init__(self, width, source, heads, rngs, inner=None):
        inner = inner or width
        self.heads = heads
        self.norm, self.norm_source = [nnx.LayerNorm(n, rngs=rngs, dtype=HALF) for n in (width, source)]
        self.query = nnx.Linear(width, inner, rngs=rngs, dtype=HALF)
        self.key = nnx.Linear(source, inner, rngs=rngs, dtype=HALF)
        self.value = nnx.Linear(source, inner, rngs=rngs, dtype=HALF)
        self.out = nnx.Linear(inner, width, rngs=rngs, dtype=HALF)
        self.norm_mlp = nnx.LayerNorm(width, rngs=rngs, dtype=HALF)
        self.up, self.down = nnx.Linear(width, 4 * width, rngs=rngs, dtype=HALF), nnx.Linear(4 * width, width, rngs=rngs, dtype=HALF)

    def __call__(self, x, source, attention):
        s = self.norm_source(source)
        cut = lambda a: a.reshape(*a.shape[:2], self.heads, -1)
        y = attention(cut(self.query(self.norm(x))), cut(self.key(s)), cut(self.value(s)))
        x = x + self.out(y.reshape(*y.shape[:2], -1))
        return x + self.down(nnx.gelu(self.up(self.norm_mlp(x))))


class Perceiver(nnx.Module):
    def __init__(self, latents, width, channels, rngs, remat, kernel):
        self.latents = nnx.Param(jax.random.normal(rngs.params(), (latents, width)))
        self.embed = nnx.Embed(262, channels, rngs=rngs, dtype=HALF)
        self.cross = nnx.List([Attend(width, channels, 8, rngs, 1024) for _ in range(3)])
        self.inner = nnx.List([Attend(width, width, 8, rngs) for _ in range(9)])
        self.head = nnx.Linear(width, 1000, rngs=rngs)
        self.remat, self.kernel = remat, kernel

    def __call__(self, bytes_):
        source = self.embed(bytes_)
        x = jnp.broadcast_to(self.latents[...].astype(HALF), (bytes_.shape[0], *self.latents.shape))
        attention = self.kernel or whole_scores
        one = lambda layer, x, source: layer(x, source, attention)
        one = nnx.remat(one) if self.remat else one
        for i in range(3):
            x = one(self.cross[i], x, source)
            for layer in self.inner[3 * i: 3 * i + 3]:
                x = one(layer, x, x)
        return self.head(x.mean(1).astype(jnp.float32))


def perceiver(topology, chips, batch, length, latents, width, channels, remat=False, kernel=False):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    spread = None
    if kernel:
        spread = jax.shard_map(partial(flash, causal=False), mesh=devices, in_specs=(P("data"),) * 3, out_specs=P("data"), check_vma=False)
    transform = optax.adamw(1e-4)

    def create():
        model = Perceiver(latents, width, channels, nnx.Rngs(0), remat, spread)
        return nnx.Dict(model=model, optimizer=nnx.Optimizer(model, transform, wrt=nnx.Param))

    graph, state = nnx.split(nnx.eval_shape(create))

    def train_step(state, tokens, labels):
        parts = nnx.merge(graph, state)
        loss = lambda model: optax.softmax_cross_entropy_with_integer_labels(model(tokens), labels).mean()
        value, gradients = nnx.value_and_grad(loss)(parts.model)
        parts.optimizer.update(parts.model, gradients)
        return nnx.state(parts), value

    args = (placed(state, whole), placed(jax.ShapeDtypeStruct((batch, length), jnp.int32), split), placed(jax.ShapeDtypeStruct((batch,), jnp.int32), split))
    return Program(train_step, args, kind_of_nnx, (0,))


class Policy(nnx.Module):
    def __init__(self, width, rngs):
        self.conv1 = nnx.Conv(4, 32, (8, 8), (4, 4), padding="VALID", rngs=rngs)
        self.conv2 = nnx.Conv(32, 64, (4, 4), (2, 2), padding="VALID", rngs=rngs)
        self.conv3 = nnx.Conv(64, 64, (3, 3), padding="VALID", rngs=rngs)
        self.flat = nnx.Linear(7 * 7 * 64, width, rngs=rngs)
        self.gru = nnx.GRUCell(width, width, rngs=rngs)
        self.actor, self.critic = nnx.Linear(width, 18, rngs=rngs), nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, carry, frame, start):
        x = frame.astype(jnp.float32) / 255
        for conv in (self.conv1, self.conv2, self.conv3):
            x = nnx.relu(conv(x))
        x = nnx.relu(self.flat(x.reshape(x.shape[0], -1)))
        carry, x = self.gru(jnp.where(start[:, None], 0.0, carry), x)
        return carry, (self.actor(x), self.critic(x)[..., 0])


def ppo(topology, chips, envs, steps, width, remat=False, micro=1):
    """One update of recurrent PPO; the network is scanned over time. Rollouts are [envs, steps, …]."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    transform = optax.chain(optax.clip_by_global_norm(0.5), optax.rmsprop(3e-4))
    graph, params = nnx.split(nnx.eval_shape(lambda: Policy(width, nnx.Rngs(0))))
    opt_state = jax.eval_shape(transform.init, params)

    def loss(params, roll):
        time = jax.tree.map(lambda a: a.swapaxes(0, 1), {k: v for k, v in roll.items() if k != "carry"})

        def body(carry, at):
            return nnx.merge(graph, params)(carry, at["frames"], at["starts"])

        _, (logits, values) = jax.lax.scan(jax.checkpoint(body) if remat else body, roll["carry"], time)
        chance = jnp.take_along_axis(jax.nn.log_softmax(logits), time["actions"][..., None], -1)[..., 0]
        ratio = jnp.exp(chance - time["log_probs"])
        gain = jnp.minimum(ratio * time["advantages"], jnp.clip(ratio, 0.8, 1.2) * time["advantages"])
        entropy = -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1)
        return -gain.mean() + 0.5 * jnp.square(values - time["returns"]).mean() - 0.01 * entropy.mean()

    def update(params, opt_state, roll):
        if micro == 1:
            value, gradients = jax.value_and_grad(loss)(params, roll)
        else:
            parts = jax.tree.map(lambda a: a.reshape(-1, micro, *a.shape[1:]).swapaxes(0, 1), roll)
            zero = (0.0, jax.tree.map(jnp.zeros_like, params))
            add = lambda total, part: (jax.tree.map(lambda a, b: a + b / micro, total, jax.value_and_grad(loss)(params, part)), None)
            (value, gradients), _ = jax.lax.scan(add, zero, parts)
        updates, opt_state = transform.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    f = lambda *shape, dtype=jnp.float32: jax.ShapeDtypeStruct((envs, *shape), dtype)
    roll = {"frames": f(steps, 84, 84, 4, dtype=jnp.uint8), "starts": f(steps, dtype=jnp.bool_), "actions": f(steps, dtype=jnp.int32),
            "log_probs": f(steps), "advantages": f(steps), "returns": f(steps), "carry": f(width)}
    args = (placed(params, whole), placed(opt_state, whole), placed(roll, split))
    return Program(update, args, lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input"), (0, 1))


class DiTBlock(nnx.Module):
    def __init__(self, width, heads, rngs):
        linear = lambda a, b: nnx.Linear(a, b, rngs=rngs, dtype=HALF)
        self.heads = heads
        self.ada, self.qkv, self.proj = linear(width, 6 * width), linear(width, 3 * width), linear(width, width)
        self.fc1, self.fc2 = linear(width, 4 * width), linear(4 * width, width)

    def __call__(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = jnp.split(self.ada(nnx.silu(c))[:, None], 6, -1)
        def norm(a):
            a = a.astype(jnp.float32)
            return ((a - a.mean(-1, keepdims=True)) * jax.lax.rsqrt(a.var(-1, keepdims=True) + 1e-6)).astype(HALF)
        q, k, v = [a.reshape(*a.shape[:2], self.heads, -1) for a in jnp.split(self.qkv(norm(x) * (1 + scale1) + shift1), 3, -1)]
        x = x + gate1 * self.proj(whole_scores(q, k, v).reshape(x.shape))
        return x + gate2 * self.fc2(nnx.gelu(self.fc1(norm(x) * (1 + scale2) + shift2)))


class DiT(nnx.Module):
    def __init__(self, depth, width, heads, tokens, rngs, remat):
        self.patch = nnx.Conv(4, width, (2, 2), (2, 2), rngs=rngs, dtype=HALF)
        self.pos = nnx.Param(jnp.zeros((tokens, width)))
        self.time, self.label = nnx.Linear(256, width, rngs=rngs, dtype=HALF), nnx.Embed(1000, width, rngs=rngs, dtype=HALF)

        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=0, out_axes=0)
        def create(rngs):
            return DiTBlock(width, heads, rngs)

        self.blocks = create(rngs)
        self.final = nnx.Linear(width, 16, rngs=rngs, dtype=HALF)
        self.remat = remat

    def __call__(self, latents, time, label):
        x = self.patch(latents.astype(HALF)).reshape(latents.shape[0], -1, self.pos.shape[-1]) + self.pos[...].astype(HALF)
        angles = time[:, None] * jnp.exp(-jnp.arange(128) / 14.0)
        c = self.time(jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)) + self.label(label)
        body = lambda x, block: block(x, c)
        if self.remat:
            body = nnx.remat(body)
        x = nnx.scan(body, in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(x, self.blocks)
        return self.final(x).astype(jnp.float32)


def dit(topology, chips, batch, size, depth, width, heads, remat=False, sharded=False):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    transform = optax.adam(1e-4)
    graph, params = nnx.split(nnx.eval_shape(lambda: DiT(depth, width, heads, (size // 2) ** 2, nnx.Rngs(0), remat)))
    opt_state = jax.eval_shape(transform.init, params)

    def train_step(params, ema, opt_state, latents, noise, time, label):
        def loss(params):
            mixed = latents + time[:, None, None, None] * noise
            guess = nnx.merge(graph, params)(mixed, time, label)
            true = noise.reshape(noise.shape[0], size // 2, 2, size // 2, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(guess.shape)
            return jnp.square(guess - true).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, opt_state = transform.update(gradients, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, optax.incremental_update(params, ema, 1e-4), opt_state, value

    image = jax.ShapeDtypeStruct((batch, size, size, 4), jnp.float32)
    params_, ema = placed(params, whole), placed(params, whole)
    state = placed(opt_state, largest_dimension(devices, "data") if sharded else whole)
    data = [placed(a, split) for a in (image, image, jax.ShapeDtypeStruct((batch,), jnp.float32), jax.ShapeDtypeStruct((batch,), jnp.int32))]
    rule = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    outs = (*[jax.tree.map(lambda a: a.sharding, x) for x in (params_, ema, state)], None)
    return Program(train_step, (params_, ema, state, *data), rule, (0, 1, 2), outs)
