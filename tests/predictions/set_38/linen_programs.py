"""Linen: U-ViT-L/2 (latents of 32 by 32, classes), a diffusion transformer whose late blocks take what early blocks gave, blocks one after another; predicts the noise, AdamW; data parallel, whole state on every device."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


class Block(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, skip=None):
        width = x.shape[-1]
        lin = lambda n, name, bias=True: nn.Dense(n, use_bias=bias, dtype=HALF, name=name)
        if skip is not None:
            x = lin(width, "skip")(jnp.concatenate([x, skip], -1))
        h = nn.LayerNorm(dtype=HALF, name="norm1")(x)
        q, k, v = (a.reshape(*x.shape[:2], self.heads, -1) for a in jnp.split(lin(3 * width, "qkv", False)(h), 3, -1))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        x = x + lin(width, "proj")(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v).reshape(x.shape))
        return x + lin(width, "down")(nn.gelu(lin(4 * width, "up")(nn.LayerNorm(dtype=HALF, name="norm2")(x))))


class UViT(nn.Module):
    side: int
    width: int
    heads: int
    depth: int
    classes: int
    remat: bool

    @nn.compact
    def __call__(self, latents, times, kinds):
        rows, s = latents.shape[0], self.side // 2
        block = nn.remat(Block) if self.remat else Block
        x = latents.astype(HALF).reshape(rows, s, 2, s, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(rows, s * s, 16)
        x = nn.Dense(self.width, dtype=HALF, name="patch")(x)
        angle = times[:, None] * jnp.exp(-jnp.arange(self.width // 2) * jnp.log(10000.0) / (self.width // 2))
        time = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1).astype(HALF)
        kind = nn.Embed(self.classes + 1, self.width, dtype=HALF, name="label")(kinds)
        x = jnp.concatenate([time[:, None], kind[:, None], x], 1)
        x = x + self.param("place", nn.initializers.normal(0.02), (1, s * s + 2, self.width)).astype(HALF)
        kept = []
        for i in range(self.depth // 2):
            x = block(self.heads, name=f"in_block_{i}")(x)
            kept.append(x)
        x = block(self.heads, name="mid_block")(x)
        for i in range(self.depth // 2):
            x = block(self.heads, name=f"out_block_{i}")(x, kept.pop())
        x = nn.Dense(16, dtype=HALF, name="leave")(nn.LayerNorm(dtype=HALF, name="norm")(x))[:, 2:]
        x = x.reshape(rows, s, s, 2, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(latents.shape)
        return nn.Conv(4, (3, 3), dtype=HALF, name="final")(x).astype(jnp.float32)


def uvit(topology, chips, batch, side=32, width=1024, heads=16, depth=20, classes=1000, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = UViT(side, width, heads, depth, classes, remat)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, side, side, 4)), jnp.zeros(1), jnp.zeros(1, "int32"))["params"])
    params = placed(params, whole)
    transform = optax.adamw(2e-4, b1=0.99, b2=0.99, weight_decay=0.03)
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, data):
        level = jnp.cumprod(1 - jnp.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2)[data["times"]][:, None, None, None]
        noisy = jnp.sqrt(level) * data["latents"] + jnp.sqrt(1 - level) * data["noise"]
        return jnp.square(net.apply({"params": params}, noisy, data["times"].astype(jnp.float32), data["kinds"]) - data["noise"]).mean()

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"latents": S("float32", side, side, 4), "noise": S("float32", side, side, 4), "times": S("int32"), "kinds": S("int32")}
    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
