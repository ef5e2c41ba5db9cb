"""Flax NNX: a diffusion transformer of video latents (attention in space, then in time, adaptive layer norms), flow matching, AdEMAMix and a moving average."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_nnx, shardings
from recipe import Program, largest_dimension, mesh, placed


class Attention(nnx.Module):
    def __init__(self, width, heads, dtype, rngs):
        self.qkv, self.out = nnx.Linear(width, 3 * width, dtype=dtype, rngs=rngs), nnx.Linear(width, width, dtype=dtype, rngs=rngs)
        self.heads = heads

    def __call__(self, x):
        q, k, v = jnp.split(self.qkv(x).reshape(*x.shape[:-1], 3 * self.heads, -1), 3, -2)
        scores = jnp.einsum("...qhd,...khd->...hqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        return self.out(jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(scores).astype(v.dtype), v).reshape(x.shape))


class Block(nnx.Module):
    def __init__(self, width, heads, dtype, rngs):
        self.space, self.time = Attention(width, heads, dtype, rngs), Attention(width, heads, dtype, rngs)
        self.up, self.down = nnx.Linear(width, 4 * width, dtype=dtype, rngs=rngs), nnx.Linear(4 * width, width, dtype=dtype, rngs=rngs)
        self.ada = nnx.Linear(width, 9 * width, dtype=dtype, rngs=rngs, kernel_init=nnx.initializers.zeros)
        self.norm = nnx.LayerNorm(width, use_bias=False, use_scale=False, dtype=dtype, rngs=rngs)

    def __call__(self, x, c):
        """x: [batch, frames, places, width]"""
        a = jnp.split(self.ada(nnx.silu(c))[:, None, None], 9, -1)
        mod = lambda i: self.norm(x) * (1 + a[i]) + a[i + 1]
        x = x + a[2] * self.space(mod(0))
        x = x + a[5] * self.time(mod(3).swapaxes(1, 2)).swapaxes(1, 2)
        return x + a[8] * self.down(nnx.gelu(self.up(mod(6))))


class VideoDiT(nnx.Module):
    def __init__(self, frames, places, channels, width, heads, depth, dtype, remat, rngs):
        self.inward, self.outward = nnx.Linear(channels, width, dtype=dtype, rngs=rngs), nnx.Linear(width, channels, dtype=dtype, rngs=rngs)
        self.place = nnx.Param(jnp.zeros((1, 1, places, width)))
        self.frame = nnx.Param(jnp.zeros((1, frames, 1, width)))
        self.text, self.when = nnx.Linear(768, width, dtype=dtype, rngs=rngs), nnx.Linear(256, width, dtype=dtype, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, dtype, rngs) for _ in range(depth)])
        self.remat, self.dtype = remat, dtype

    def __call__(self, x, t, text):
        f = jnp.exp(-jnp.arange(128) / 128 * 9.2) * t[:, None] * 1000
        c = self.when(jnp.concatenate([jnp.sin(f), jnp.cos(f)], -1)) + self.text(text)
        x = self.inward(x) + (self.place[...] + self.frame[...]).astype(self.dtype)
        for i, block in enumerate(self.blocks):
            call = lambda block, x, c: block(x, c)
            x = (nnx.remat(call) if i < self.remat else call)(block, x, c)
        return self.outward(x).astype(jnp.float32)


def videodit(topology, chips, batch, frames=16, places=1024, channels=16, width=1152, heads=16, depth=14, half=True, remat=0, fsdp=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: VideoDiT(frames, places, channels, width, heads, depth, jnp.bfloat16 if half else jnp.float32, remat, nnx.Rngs(0)))
    transform = optax.contrib.ademamix(1e-4)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    cut = largest_dimension(devices, "data") if fsdp else whole
    net_state, opt_state = placed(net_state, cut), placed(opt_state, cut)

    def train_step(model, opt_state, average, latents, text, key):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)
        a, b = jax.random.split(key)
        noise = jax.random.normal(a, latents.shape)
        t = jax.nn.sigmoid(jax.random.normal(b, latents.shape[:1]))
        w = t[:, None, None, None]
        noisy = jax.lax.with_sharding_constraint((1 - w) * latents + w * noise, split)
        loss_fn = lambda net: ((net(noisy, t, text) - (noise - latents)) ** 2).mean()
        loss, grads = nnx.value_and_grad(loss_fn)(net)
        opt.update(net, grads)
        new = nnx.state(net)
        average = jax.tree.map(lambda a, b: 0.9999 * a + 0.0001 * b, average, new)
        return new, nnx.state(opt), average, loss

    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=split)
    args = (net_state, opt_state, net_state, F(batch, frames, places, channels), F(batch, 768), jax.ShapeDtypeStruct((2,), "uint32", sharding=whole))
    outs = (shardings(net_state), shardings(opt_state), shardings(net_state), None)

    def classify(path):
        return "opt" if path.startswith("[1]") else "weight" if path.startswith("[2]") else kind_of_nnx(path)

    return Program(train_step, args, classify, (0, 1, 2) if donate else (), outs)
