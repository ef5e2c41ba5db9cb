"""Flax Linen: Rainbow's kind of Q-learning with its replay memory in the program; the decoder of Stable Diffusion's autoencoder; GPT-2 XL served with Linen's own cache; ViT-L with sharpness-aware minimization."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class QNet(nn.Module):
    actions: int

    @nn.compact
    def __call__(self, x):
        x = x.astype(jnp.float32) / 255
        for n, k, s in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = nn.relu(nn.Conv(n, (k, k), (s, s), padding="VALID")(x))
        x = nn.relu(nn.Dense(512)(x.reshape(x.shape[0], -1)))
        return nn.Dense(self.actions)(x)


def dqn(topology, chips, capacity, sample=512, envs=128, rollout=4, updates=16, actions=18, donate=True, flat=False):
    """Every chip has its own memory of single frames, and an environment of moving sprites; gradients are averaged."""
    devices = mesh(topology, (chips,), ("env",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("env"))
    net = QNet(actions)
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, 84, 84, 4), "uint8"))
    transform = optax.adam(6.25e-5, eps=1.5e-4)

    def draw(place):
        grid = jnp.arange(84)
        hit = (jnp.abs(grid[:, None] - place[:, 0, None, None]) < 4) & (jnp.abs(grid[None] - place[:, 1, None, None]) < 4)
        return jnp.where(hit, 255, 0).astype(jnp.uint8)

    def train(params, target, opt_state, memory, env, key):
        def once(carry, key):
            params, opt_state, memory, env = carry
            ka, kb, kc = jax.random.split(key, 3)

            def act(c, key):
                stack, place = c
                q = net.apply(params, stack)
                explore = jax.random.bernoulli(key, 0.05, (envs,))
                action = jnp.where(explore, jax.random.randint(key, (envs,), 0, actions), q.argmax(-1)).astype(jnp.int32)
                place = (place + jnp.stack([action % 3 - 1, action // 3 % 3 - 1], -1)) % 84
                frame = draw(place)
                reward = (place[:, 0] == place[:, 1]).astype(jnp.float32)
                return (jnp.concatenate([stack[..., 1:], frame[..., None]], -1), place), (frame, action, reward)

            env, (frames, acts, rewards) = jax.lax.scan(act, env, jax.random.split(ka, rollout))
            at = memory["at"]
            put = lambda m, new: jax.lax.dynamic_update_slice_in_dim(m, new.swapaxes(0, 1).reshape(-1, *new.shape[2:]), at, 0)
            memory = {"frames": put(memory["frames"], frames.reshape(*frames.shape[:2], -1) if flat else frames), "actions": put(memory["actions"], acts), "rewards": put(memory["rewards"], rewards),
                      "at": (at + envs * rollout) % capacity}
            index = jax.random.randint(kb, (sample,), 4, capacity - 1)
            window = memory["frames"][index[:, None] + jnp.arange(-3, 2)].reshape(sample, 5, 84, 84)  # [sample, 5, 84, 84]
            before, after = jnp.moveaxis(window[:, :4], 1, -1), jnp.moveaxis(window[:, 1:], 1, -1)
            a, r = memory["actions"][index], memory["rewards"][index]

            def loss_fn(params):
                best = net.apply(params, after).argmax(-1)
                wanted = r + 0.99 * jnp.take_along_axis(net.apply(target, after), best[:, None], 1)[:, 0]
                q = jnp.take_along_axis(net.apply(params, before), a[:, None], 1)[:, 0]
                return optax.huber_loss(q, jax.lax.stop_gradient(wanted)).mean()

            loss, grads = jax.value_and_grad(loss_fn)(params)
            grads = jax.lax.pmean(grads, "env")
            change, opt_state = transform.update(grads, opt_state, params)
            return (optax.apply_updates(params, change), opt_state, memory, env), loss

        memory = {k: v if k != "at" else v[0] for k, v in memory.items()}
        (params, opt_state, memory, env), losses = jax.lax.scan(once, (params, opt_state, memory, env), jax.random.split(key, updates))
        memory["at"] = memory["at"][None]
        return params, opt_state, memory, env, losses.mean()[None]

    spec = (P(), P(), P(), P("env"), P("env"), P())
    step = jax.shard_map(train, mesh=devices, in_specs=spec, out_specs=(P(), P(), P("env"), P("env"), P("env")), check_vma=False)
    S = lambda d, *s: jax.ShapeDtypeStruct((s[0] * chips, *s[1:]), d, sharding=split)
    memory = {"frames": S("uint8", capacity, 84 * 84) if flat else S("uint8", capacity, 84, 84), "actions": S("int32", capacity), "rewards": S("float32", capacity), "at": S("int32", 1)}
    env = (S("uint8", envs, 84, 84, 4), S("int32", envs, 2))
    args = (placed(params, whole), placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), memory, env, jax.ShapeDtypeStruct((2,), "uint32", sharding=whole))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt", "[3]": "cache"}.get(path[:3], "input")
    return Program(step, args, classify, (0, 2, 3, 4) if donate else ())


class Res(nn.Module):
    n: int
    dtype: object

    @nn.compact
    def __call__(self, x):
        norm = lambda x: nn.GroupNorm(32, dtype=self.dtype)(x)
        conv = lambda x: nn.Conv(self.n, (3, 3), dtype=self.dtype)(x)
        h = conv(nn.swish(norm(conv(nn.swish(norm(x))))))
        return h + (x if x.shape[-1] == self.n else nn.Conv(self.n, (1, 1), dtype=self.dtype)(x))


class Middle(nn.Module):
    dtype: object
    blocks: int

    @nn.compact
    def __call__(self, x):
        n = x.shape[-1]
        h = nn.GroupNorm(32, dtype=self.dtype)(x).reshape(x.shape[0], -1, n)
        q, k, v = (nn.Dense(n, dtype=self.dtype)(h) for _ in range(3))

        def attend(q):
            s = jnp.einsum("bqd,bkd->bqk", q, k).astype(jnp.float32) * n**-0.5
            return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(s).astype(self.dtype), v)

        if self.blocks == 1:
            o = attend(q)
        else:
            o = jax.lax.map(attend, q.reshape(q.shape[0], self.blocks, -1, n).swapaxes(0, 1)).swapaxes(0, 1).reshape(q.shape)
        return x + nn.Dense(n, dtype=self.dtype)(o).reshape(x.shape)


class Decoder(nn.Module):
    dtype: object
    blocks: int
    widths: tuple = (512, 512, 256, 128)

    @nn.compact
    def __call__(self, z):
        x = nn.Conv(512, (3, 3), dtype=self.dtype)(nn.Conv(4, (1, 1), dtype=self.dtype)(z / 0.18215))
        x = Res(512, self.dtype)(Middle(self.dtype, self.blocks)(Res(512, self.dtype)(x)))
        for i, n in enumerate(self.widths):
            for _ in range(3):
                x = Res(n, self.dtype)(x)
            if i < 3:
                x = jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], n), "nearest")
                x = nn.Conv(n, (3, 3), dtype=self.dtype)(x)
        x = nn.Conv(3, (3, 3), dtype=self.dtype)(nn.swish(nn.GroupNorm(32, dtype=self.dtype)(x)))
        return (jnp.clip(x.astype(jnp.float32) / 2 + 0.5, 0, 1) * 255).astype(jnp.uint8)


def vae_decode(topology, chips, batch, side=128, half=False, blocks=1):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Decoder(HALF if half else jnp.float32, blocks)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, 16, 16, 4), "float32")), whole)

    def decode(params, latents):
        return net.apply(params, latents)

    return Program(decode, (params, jax.ShapeDtypeStruct((batch, side, side, 4), "float32", sharding=split)), lambda path: "weight" if path.startswith("[0]") else "input")


class ServedBlock(nn.Module):
    width: int
    heads: int

    @nn.compact
    def __call__(self, x):
        h = nn.LayerNorm(dtype=HALF)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, param_dtype=HALF, decode=True)(h)
        h = nn.LayerNorm(dtype=HALF)(x)
        return x + nn.Dense(self.width, dtype=HALF, param_dtype=HALF)(nn.gelu(nn.Dense(4 * self.width, dtype=HALF, param_dtype=HALF)(h)))


class Served(nn.Module):
    width: int
    heads: int
    depth: int
    vocabulary: int
    length: int

    @nn.compact
    def __call__(self, tokens, at):
        embed = nn.Embed(self.vocabulary, self.width, dtype=HALF, param_dtype=HALF)
        x = embed(tokens) + nn.Embed(self.length, self.width, dtype=HALF, param_dtype=HALF)(at)
        for i in range(self.depth):
            x = ServedBlock(self.width, self.heads, name=f"h_{i}")(x)
        return embed.attend(nn.LayerNorm(dtype=HALF)(x))


def serve(topology, chips, batch, length, width=1600, heads=25, depth=48, vocabulary=50257, donate=True):
    """GPT-2 XL, one token for every sequence."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Served(width, heads, depth, vocabulary, length)
    made = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((batch, length), "int32"), jax.ShapeDtypeStruct((batch, length), "int32"))
    params, kept = made["params"], made["cache"]
    kept = placed(kept, lambda path, leaf: split if leaf.ndim == 4 else whole)

    def serve_step(params, cache, tokens, at):
        logits, new = net.apply({"params": params, "cache": cache}, tokens, at, mutable=["cache"])
        return jnp.argmax(logits[:, -1], -1).astype(jnp.int32)[:, None], new["cache"]

    I = jax.ShapeDtypeStruct((batch, 1), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(serve_step, (placed(params, whole), kept, I, I), classify, (1,) if donate else (), (split, shardings(kept)))


class ViTBlock(nn.Module):
    width: int
    heads: int

    @nn.compact
    def __call__(self, x):
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF)(nn.LayerNorm(dtype=HALF)(x))
        h = nn.Dense(4 * self.width, dtype=HALF)(nn.LayerNorm(dtype=HALF)(x))
        return x + nn.Dense(self.width, dtype=HALF)(nn.gelu(h))


class ViT(nn.Module):
    remat: int
    width: int = 1024
    heads: int = 16
    depth: int = 24

    @nn.compact
    def __call__(self, images):
        x = nn.Conv(self.width, (16, 16), (16, 16), dtype=HALF)(images)
        x = x.reshape(x.shape[0], -1, self.width)
        x = x + self.param("place", nn.initializers.normal(0.02), (1, x.shape[1], self.width)).astype(HALF)
        for i in range(self.depth):
            kind = nn.remat(ViTBlock) if i < self.remat else ViTBlock
            x = kind(self.width, self.heads, name=f"block_{i}")(x)
        return nn.Dense(1000)(nn.LayerNorm(dtype=HALF)(x).mean(1).astype(jnp.float32))


def vit_sam(topology, chips, batch, remat=0, micro=1, zero=False, donate=True):
    """ViT-L/16 by SAM: the gradient where the loss is worst nearby, so two gradients one after the other."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = ViT(remat)
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, 224, 224, 3), "float32"))["params"], whole)
    transform = optax.adamw(1e-3, weight_decay=0.1)
    state = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def sam(params, images, labels):
        def loss_fn(params):
            return optax.softmax_cross_entropy_with_integer_labels(net.apply({"params": params}, images), labels).mean()

        first = jax.grad(loss_fn)(params)
        scale = 0.2 / (optax.global_norm(first) + 1e-12)
        return jax.value_and_grad(loss_fn)(jax.tree.map(lambda p, g: p + scale * g, params, first))

    def train_step(params, opt_state, images, labels):
        if micro == 1:
            loss, grads = sam(params, images, labels)
        else:
            cut = lambda a: jax.lax.with_sharding_constraint(
                a.reshape(chips, micro, -1, *a.shape[1:]).swapaxes(0, 1).reshape(micro, -1, *a.shape[1:]), NamedSharding(devices, P(None, "data")))
            def one(total, part):
                loss, g = sam(params, *part)
                return jax.tree.map(jnp.add, total, g), loss
            grads, loss = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), (cut(images), cut(labels)))
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss.mean()

    images = jax.ShapeDtypeStruct((batch, 224, 224, 3), "float32", sharding=split)
    labels = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    return Program(train_step, (params, state, images, labels), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
