"""Flax NNX: a masked autoencoder (a quarter of the patches seen, a small decoder on all); a U-Net that learns to denoise latents, with a moving average of its weights."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, largest_dimension, mesh, placed


class Block(nnx.Module):
    def __init__(self, width, heads, dtype, rngs):
        self.norm1 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(heads, width, decode=False, dtype=dtype, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.fc1 = nnx.Linear(width, 4 * width, dtype=dtype, rngs=rngs)
        self.fc2 = nnx.Linear(4 * width, width, dtype=dtype, rngs=rngs)

    def __call__(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(nnx.gelu(self.fc1(self.norm2(x))))


class MAE(nnx.Module):
    def __init__(self, size, patch, width, depth, heads, small, small_depth, small_heads, dtype, remat, rngs):
        self.count, self.patch, self.remat, self.dtype = (size // patch) ** 2, patch, remat, dtype
        self.embed = nnx.Linear(patch * patch * 3, width, dtype=dtype, rngs=rngs)
        init = nnx.initializers.normal(0.02)
        self.places = nnx.Param(init(rngs.params(), (1, self.count, width), jnp.float32))
        self.encoder = nnx.List([Block(width, heads, dtype, rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.reduce = nnx.Linear(width, small, dtype=dtype, rngs=rngs)
        self.mask = nnx.Param(jnp.zeros((1, 1, small)))
        self.decoder_places = nnx.Param(init(rngs.params(), (1, self.count, small), jnp.float32))
        self.decoder = nnx.List([Block(small, small_heads, dtype, rngs) for _ in range(small_depth)])
        self.predict = nnx.Linear(small, patch * patch * 3, dtype=dtype, rngs=rngs)

    def __call__(self, patches, order):
        run = lambda layer, x: (nnx.remat(lambda layer, x: layer(x)) if self.remat else (lambda layer, x: layer(x)))(layer, x)
        keep = self.count // 4
        x = self.embed(patches.astype(self.dtype)) + self.places[...].astype(self.dtype)
        x = jnp.take_along_axis(x, order[:, :keep, None], 1)
        for layer in self.encoder:
            x = run(layer, x)
        x = self.reduce(self.norm(x))
        rest = jnp.broadcast_to(self.mask[...].astype(self.dtype), (x.shape[0], self.count - keep, x.shape[2]))
        x = jnp.take_along_axis(jnp.concatenate([x, rest], 1), jnp.argsort(order)[..., None], 1) + self.decoder_places[...].astype(self.dtype)
        for layer in self.decoder:
            x = run(layer, x)
        return self.predict(x).astype(jnp.float32)


def mae(topology, chips, batch, size=224, patch=16, width=1024, depth=24, heads=16, small=512, small_depth=8, small_heads=16, half=False, remat=False, zero=False, donate=True, constrain=False):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: MAE(size, patch, width, depth, heads, small, small_depth, small_heads, jnp.bfloat16 if half else jnp.float32, remat, nnx.Rngs(0)))
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, optax.adamw(1.5e-4), wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = placed(net_state, whole), placed(opt_state, largest_dimension(devices, "data") if zero else whole)

    def train_step(model, opt_state, images, order):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)
        b, n = images.shape[0], size // patch
        patches = images.reshape(b, n, patch, n, patch, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, n * n, -1)
        hidden = jnp.argsort(order) >= n * n // 4
        loss_fn = lambda net: (((net(patches, order) - patches) ** 2).mean(-1) * hidden).sum() / hidden.sum()
        loss, grads = nnx.value_and_grad(loss_fn)(net)
        if constrain:
            where = largest_dimension(devices, "data")
            grads = jax.tree_util.tree_map_with_path(lambda path, g: jax.lax.with_sharding_constraint(g, where(jax.tree_util.keystr(path), g)), grads)
        opt.update(net, grads)
        return nnx.state(net), nnx.state(opt), loss

    images = jax.ShapeDtypeStruct((batch, size, size, 3), "float32", sharding=split)
    order = jax.ShapeDtypeStruct((batch, (size // patch) ** 2), "int32", sharding=split)
    outs = (shardings(net_state), shardings(opt_state), None)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (net_state, opt_state, images, order), classify, (0, 1) if donate else (), outs)


class Res(nnx.Module):
    def __init__(self, i, o, time, dtype, rngs):
        conv = lambda a, b, k: nnx.Conv(a, b, (k, k), dtype=dtype, rngs=rngs)
        self.norm1, self.norm2 = nnx.GroupNorm(i, 32, dtype=dtype, rngs=rngs), nnx.GroupNorm(o, 32, dtype=dtype, rngs=rngs)
        self.conv1, self.conv2 = conv(i, o, 3), conv(o, o, 3)
        self.time = nnx.Linear(time, o, dtype=dtype, rngs=rngs)
        self.skip = conv(i, o, 1) if i != o else None

    def __call__(self, x, t):
        h = self.conv1(nnx.silu(self.norm1(x))) + self.time(nnx.silu(t))[:, None, None]
        h = self.conv2(nnx.silu(self.norm2(h)))
        return h + (self.skip(x) if self.skip else x)


class Attention(nnx.Module):
    def __init__(self, width, dtype, rngs):
        self.norm = nnx.GroupNorm(width, 32, dtype=dtype, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(width // 64, width, decode=False, dtype=dtype, rngs=rngs)

    def __call__(self, x):
        b, h, w, c = x.shape
        return x + self.attn(self.norm(x).reshape(b, h * w, c)).reshape(x.shape)


class UNet(nnx.Module):
    """Widths times 1, 2, 4; two blocks a level; attention on the two lower levels."""

    def __init__(self, channels, width, dtype, remat, rngs):
        self.width, self.dtype, self.remat = width, dtype, remat
        time = 4 * width
        self.time1, self.time2 = nnx.Linear(width, time, dtype=dtype, rngs=rngs), nnx.Linear(time, time, dtype=dtype, rngs=rngs)
        self.enter = nnx.Conv(channels, width, (3, 3), dtype=dtype, rngs=rngs)
        down, up, skips, now = [], [], [width], width
        for level, times in enumerate((1, 2, 4)):
            for _ in range(2):
                down.append(nnx.List([Res(now, width * times, time, dtype, rngs), Attention(width * times, dtype, rngs) if level else None]))
                now = width * times
                skips.append(now)
            if level < 2:
                down.append(nnx.List([nnx.Conv(now, now, (3, 3), (2, 2), dtype=dtype, rngs=rngs)]))
                skips.append(now)
        self.middle = nnx.List([Res(now, now, time, dtype, rngs), Attention(now, dtype, rngs), Res(now, now, time, dtype, rngs)])
        for level, times in reversed(list(enumerate((1, 2, 4)))):
            for _ in range(3):
                up.append(nnx.List([Res(now + skips.pop(), width * times, time, dtype, rngs), Attention(width * times, dtype, rngs) if level else None]))
                now = width * times
            if level:
                up.append(nnx.List([nnx.Conv(now, now, (3, 3), dtype=dtype, rngs=rngs)]))
        self.down, self.up = nnx.List(down), nnx.List(up)
        self.norm, self.leave = nnx.GroupNorm(width, 32, dtype=dtype, rngs=rngs), nnx.Conv(width, channels, (3, 3), dtype=dtype, rngs=rngs)

    def __call__(self, x, t):
        def pair(layers, x, t):
            x = layers[0](x, t)
            return layers[1](x) if layers[1] is not None else x

        run = nnx.remat(pair) if self.remat else pair
        angles = t[:, None] * jnp.exp(-jnp.arange(self.width // 2) / (self.width // 2) * 9.2)
        t = self.time2(nnx.silu(self.time1(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1).astype(self.dtype))))
        x = self.enter(x.astype(self.dtype))
        skips = [x]
        for layers in self.down:
            x = layers[0](x) if len(layers) == 1 else run(layers, x, t)
            skips.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, t)), t)
        for layers in self.up:
            if len(layers) == 1:
                b, h, w, c = x.shape
                x = layers[0](jax.image.resize(x, (b, 2 * h, 2 * w, c), "nearest"))
            else:
                x = run(layers, jnp.concatenate([x, skips.pop()], -1), t)
        return self.leave(nnx.silu(self.norm(x))).astype(jnp.float32)


def unet(topology, chips, batch, size=64, channels=4, width=256, half=False, remat=False, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: UNet(channels, width, jnp.bfloat16 if half else jnp.float32, remat, nnx.Rngs(0)))
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, optax.adam(1e-4), wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    cut = largest_dimension(devices, "data") if zero else whole
    net_state, opt_state, ema = placed(net_state, whole), placed(opt_state, cut), placed(net_state, cut)

    def train_step(model, opt_state, ema, latents, noise, t):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)
        signal = jnp.cos(t / 1000 * jnp.pi / 2)[:, None, None, None]
        noisy = signal * latents + jnp.sqrt(1 - signal**2) * noise
        loss, grads = nnx.value_and_grad(lambda net: ((net(noisy, t) - noise) ** 2).mean())(net)
        opt.update(net, grads)
        state = nnx.state(net)
        return state, nnx.state(opt), jax.tree.map(lambda a, b: 0.9999 * a + 0.0001 * b, ema, state), loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    args = (net_state, opt_state, ema, S(size, size, channels), S(size, size, channels), S())
    outs = (shardings(net_state), shardings(opt_state), shardings(ema), None)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, args, classify, (0, 1, 2) if donate else (), outs)
