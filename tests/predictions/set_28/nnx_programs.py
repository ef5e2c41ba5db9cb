"""NNX: a multimodal diffusion transformer (two streams, as of Stable Diffusion 3) by rectified flow, Adafactor, an EMA of the weights; fully sharded; blocks in a Python loop."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, flash, shardings
from recipe import Program, largest_dimension, mesh, placed


class Stream(nnx.Module):
    def __init__(self, width, rngs):
        lin = lambda a, b: nnx.Linear(a, b, dtype=HALF, rngs=rngs)
        self.modulation, self.qkv, self.out, self.wide, self.narrow = lin(width, 6 * width), lin(width, 3 * width), lin(width, width), lin(width, 4 * width), lin(4 * width, width)
        self.norm1, self.norm2 = (nnx.LayerNorm(width, use_bias=False, use_scale=False, dtype=HALF, rngs=rngs) for _ in range(2))


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        self.image, self.text, self.heads = Stream(width, rngs), Stream(width, rngs), heads

    def __call__(self, x, y, c, devices, kernel):
        parts, qkv = [], []
        for stream, z in ((self.image, x), (self.text, y)):
            m = [a[:, None] for a in jnp.split(stream.modulation(nnx.silu(c)), 6, -1)]
            parts.append(m)
            qkv.append(stream.qkv(stream.norm1(z) * (1 + m[1]) + m[0]))
        q, k, v = (a.reshape(*a.shape[:2], self.heads, -1) for a in jnp.split(jnp.concatenate(qkv, 1), 3, -1))
        if kernel:
            a = jax.shard_map(lambda q, k, v: flash(q, k, v, False), mesh=devices, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False)(q, k, v)
        else:
            a = jax.nn.dot_product_attention(q, k, v)
        a = a.reshape(*a.shape[:2], -1)
        outs = []
        for stream, z, m, a in ((self.image, x, parts[0], a[:, : x.shape[1]]), (self.text, y, parts[1], a[:, x.shape[1] :])):
            z = z + m[2] * stream.out(a)
            outs.append(z + m[5] * stream.narrow(nnx.gelu(stream.wide(stream.norm2(z) * (1 + m[4]) + m[3]))))
        return outs


class MMDiT(nnx.Module):
    def __init__(self, channels, text, width, depth, heads, places, rngs):
        self.enter, self.enter_text = nnx.Linear(channels, width, dtype=HALF, rngs=rngs), nnx.Linear(text, width, dtype=HALF, rngs=rngs)
        self.time, self.place = nnx.Linear(256, width, dtype=HALF, rngs=rngs), nnx.Param(jnp.zeros((places, width)))
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(depth)])
        self.leave = nnx.Linear(width, channels, dtype=HALF, rngs=rngs)

    def __call__(self, x, y, t, devices, kernel, remat):
        x, y = self.enter(x) + self.place[...].astype(HALF), self.enter_text(y)
        angle = t[:, None] * jnp.exp(-jnp.arange(128) / 14.0)
        c = self.time(jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1))
        for i, block in enumerate(self.blocks):
            call = lambda block, x, y, c: block(x, y, c, devices, kernel)
            x, y = nnx.remat(call)(block, x, y, c) if i < remat else call(block, x, y, c)
        return self.leave(x)


def mmdit(topology, chips, batch, places=1024, words=256, width=1536, depth=24, heads=24, kernel=False, remat=0, donate=True):
    """places: 32 by 32 patches of 2 by 2 latents of 16 channels; words: of 4096 numbers. The kernel takes lengths of 128's multiples."""
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    transform = optax.adafactor(1e-4, multiply_by_parameter_scale=False, momentum=None)

    def build():
        net = MMDiT(64, 4096, width, depth, heads, places, nnx.Rngs(0))
        return net, nnx.Optimizer(net, transform, wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(build))
    where = largest_dimension(devices, "fsdp", 1 << 16)
    state = placed(state, where)
    ema = placed(nnx.state(nnx.eval_shape(lambda: build()[0]), nnx.Param), where)

    def train_step(state, ema, batch, key):
        net, optimizer = nnx.merge(graph, state)
        a, b = jax.random.split(key)
        t = jax.nn.sigmoid(jax.random.normal(a, batch["latents"].shape[:1]))
        noise = jax.random.normal(b, batch["latents"].shape)

        def loss_fn(net):
            now = (1 - t)[:, None, None] * batch["latents"] + t[:, None, None] * noise
            out = net(now.astype(HALF), batch["text"], t, devices, kernel, remat)
            return jnp.mean((out.astype(jnp.float32) - (noise - batch["latents"])) ** 2)

        loss, grads = nnx.value_and_grad(loss_fn)(net)
        optimizer.update(net, grads)
        ema = jax.tree.map(lambda e, p: 0.9999 * e + 0.0001 * p, ema, nnx.state(net, nnx.Param))
        return nnx.state((net, optimizer)), ema, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    key = jax.ShapeDtypeStruct((2,), "uint32", sharding=NamedSharding(devices, P()))
    classify = lambda path: "weight" if path.startswith("[1]") else "input" if not path.startswith("[0]") else "opt" if path.startswith("[0][1]") else "weight"
    return Program(train_step, (state, ema, {"latents": S("float32", places, 64), "text": S("bfloat16", words, 4096)}, key), classify, (0, 1) if donate else (), (shardings(state), shardings(ema), None))
