"""Equinox: a VAE with an adversary, two optimizers; Haliax: a decoder with named axes, its layers stacked."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed

ABSTRACT = lambda x: isinstance(x, jax.ShapeDtypeStruct)


class Res(eqx.Module):
    norm: eqx.nn.GroupNorm
    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d

    def __init__(self, width, key):
        a, b = jax.random.split(key)
        self.norm = eqx.nn.GroupNorm(16, width)
        self.first, self.second = eqx.nn.Conv2d(width, width, 3, padding=1, key=a), eqx.nn.Conv2d(width, width, 3, padding=1, key=b)

    def __call__(self, x):
        return x + self.second(jax.nn.silu(self.first(jax.nn.silu(self.norm(x)))))


class Stage(eqx.Module):
    parts: list
    change: eqx.Module
    up: bool = eqx.field(static=True)

    def __init__(self, before, after, up, key):
        a, b, c = jax.random.split(key, 3)
        self.up = up
        self.change = eqx.nn.ConvTranspose2d(before, after, 4, 2, padding=1, key=a) if up else eqx.nn.Conv2d(before, after, 4, 2, padding=1, key=a)
        self.parts = [Res(after, b), Res(after, c)]

    def __call__(self, x):
        x = self.change(x)
        for part in self.parts:
            x = part(x)
        return x


class Chain(eqx.Module):
    stages: list
    last: eqx.nn.Conv2d
    remat: bool = eqx.field(static=True)

    def __init__(self, widths, out, up, key, remat):
        keys = jax.random.split(key, len(widths))
        self.stages = [Stage(a, b, up, k) for a, b, k in zip(widths, widths[1:], keys)]
        self.last = eqx.nn.Conv2d(widths[-1], out, 3, padding=1, key=keys[-1])
        self.remat = remat

    def __call__(self, x):
        for stage in self.stages:
            x = (eqx.filter_checkpoint(stage) if self.remat else stage)(x)
        return self.last(x)


def vaegan(topology, chips, batch, size, base, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def create():
        a, b, c = jax.random.split(jax.random.key(0), 3)
        down, up = [3, base, 2 * base, 4 * base], [64, 4 * base, 2 * base, base]
        return {"encoder": Chain(down, 128, False, a, remat), "decoder": Chain(up, 3, True, b, remat)}, Chain(down, 1, False, c, remat)

    vae, critic = [eqx.partition(m, ABSTRACT) for m in eqx.filter_eval_shape(create)]
    vae_opt, critic_opt = optax.adam(1e-4), optax.adam(2e-4, b1=0.5)
    states = {"vae": jax.eval_shape(vae_opt.init, vae[0]), "critic": jax.eval_shape(critic_opt.init, critic[0])}

    def make_step(vae_arrays, critic_arrays, opt_states, images, noise):
        def forward(arrays):
            model = eqx.combine(arrays, vae[1])
            mean, spread = jnp.split(jax.vmap(model["encoder"])(images), 2, 1)
            code = mean + jnp.exp(spread / 2) * noise
            return jax.vmap(model["decoder"])(code), mean, spread

        judge = lambda arrays, x: jax.vmap(eqx.combine(arrays, critic[1]))(x)

        def vae_loss(arrays):
            made, mean, spread = forward(arrays)
            divergence = (jnp.exp(spread) + mean**2 - 1 - spread).mean()
            return jnp.abs(made - images).mean() + 1e-3 * divergence - 0.1 * judge(critic_arrays, made).mean(), made

        (value, made), gradients = jax.value_and_grad(vae_loss, has_aux=True)(vae_arrays)

        def critic_loss(arrays):
            return jax.nn.relu(1 - judge(arrays, images)).mean() + jax.nn.relu(1 + judge(arrays, jax.lax.stop_gradient(made))).mean()

        other, critic_gradients = jax.value_and_grad(critic_loss)(critic_arrays)
        updates, first = vae_opt.update(gradients, opt_states["vae"])
        critic_updates, second = critic_opt.update(critic_gradients, opt_states["critic"])
        return eqx.apply_updates(vae_arrays, updates), eqx.apply_updates(critic_arrays, critic_updates), {"vae": first, "critic": second}, value + other

    f = lambda *shape: jax.ShapeDtypeStruct((batch, *shape), jnp.float32)
    args = (*[placed(x, whole) for x in (vae[0], critic[0], states)], placed(f(3, size, size), split), placed(f(64, size // 8, size // 8), split))
    rule = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(make_step, args, rule, (0, 1, 2) if donate else ())


def decoder(topology, chips, batch, length, depth, width, heads, vocabulary, remat=False, half=False):
    import typing
    import jax._src.tree_util as tree_util
    if not hasattr(tree_util, "BuiltInKeyEntry"):  # haliax 1.3 imports a type that newer jax no longer names
        tree_util.BuiltInKeyEntry = typing.Any
    import haliax
    import haliax.nn as hnn
    import haliax._src.dot as named_dot

    def einsum(spec, *arrays, precision=None, preferred_element_type=None, **_):  # its own wraps a function newer jax has moved
        return jnp.einsum(spec, *arrays, precision=precision, preferred_element_type=preferred_element_type)

    named_dot._jittable_dg_einsum = einsum
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    Batch, Pos, Embed, Mlp = haliax.Axis("batch", batch), haliax.Axis("position", length), haliax.Axis("embed", width), haliax.Axis("mlp", 4 * width)
    Heads, Size, Vocab, Layers = haliax.Axis("heads", heads), haliax.Axis("head_size", width // heads), haliax.Axis("vocab", vocabulary), haliax.Axis("layers", depth)
    Key = Pos.alias("key_position")

    class Block(eqx.Module):
        ln_1: hnn.LayerNorm
        ln_2: hnn.LayerNorm
        c_attn: hnn.Linear
        c_proj: hnn.Linear
        up: hnn.Linear
        down: hnn.Linear

        @staticmethod
        def init(*, key):
            k = jax.random.split(key, 4)
            return Block(hnn.LayerNorm.init(Embed), hnn.LayerNorm.init(Embed),
                         hnn.Linear.init(In=Embed, Out=(haliax.Axis("qkv", 3), Heads, Size), key=k[0]),
                         hnn.Linear.init(In=(Heads, Size), Out=Embed, key=k[1]),
                         hnn.Linear.init(In=Embed, Out=Mlp, key=k[2]), hnn.Linear.init(In=Mlp, Out=Embed, key=k[3]))

        def __call__(self, x):
            q, k, v = self.c_attn(self.ln_1(x)).unbind("qkv")
            k, v = k.rename({"position": "key_position"}), v.rename({"position": "key_position"})
            scores = haliax.dot(q, k, axis=Size).astype(jnp.float32) * Size.size**-0.5
            scores = haliax.where(haliax.arange(Pos).broadcast_axis(Key) >= haliax.arange(Key), scores, -1e9)
            weights = hnn.softmax(scores, Key).astype(x.dtype)
            x = x + self.c_proj(haliax.dot(weights, v, axis=Key))
            return x + self.down(hnn.gelu(self.up(self.ln_2(x))))

    class Model(eqx.Module):
        embed: haliax.NamedArray
        stack: hnn.Stacked
        last: hnn.LayerNorm

        def __call__(self, tokens):
            x = haliax.named(self.embed.array[tokens], (Batch, Pos, Embed))
            x = self.last(self.stack.fold(x))
            return haliax.dot(x, self.embed, axis=Embed).array

    def create():
        key = jax.random.PRNGKey(0)
        stack = hnn.Stacked.init(Layers, Block, gradient_checkpointing=remat)(key=jax.random.split(key, depth))
        return Model(haliax.random.normal(key, (Vocab, Embed)), stack, hnn.LayerNorm.init(Embed))

    model = eqx.filter_eval_shape(create)
    arrays, static = eqx.partition(model, ABSTRACT)
    transform = optax.novograd(1e-3)
    state = jax.eval_shape(transform.init, arrays)

    def train_step(model, opt_state, tokens, labels):
        def loss(m):
            if half:
                m = jax.tree.map(lambda a: a.astype(jnp.bfloat16), m)
            logits = eqx.combine(m, static)(tokens).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, gradients = jax.value_and_grad(loss)(model)
        updates, opt_state = transform.update(gradients, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, value

    data = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    args = (placed(arrays, whole), placed(state, whole), placed(data, split), placed(data, split))
    return Program(train_step, args, lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input"), (0, 1))
