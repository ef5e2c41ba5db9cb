"""NNX: a latent video diffusion transformer like Latte-B/2: blocks that attend within a picture and blocks that attend across time, in turn, with adaptive norms; a rectified flow's loss; data parallel, whole state on every device."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_nnx
from recipe import Program, mesh, placed


class Block(nnx.Module):
    def __init__(self, width, heads, dtype, rngs):
        lin = lambda a, b: nnx.Linear(a, b, dtype=dtype, rngs=rngs)
        self.heads, self.dtype = heads, dtype
        self.modulate, self.qkv, self.proj = lin(width, 6 * width), lin(width, 3 * width), lin(width, width)
        self.up, self.down = lin(width, 4 * width), lin(4 * width, width)
        self.norm1, self.norm2 = (nnx.LayerNorm(width, use_bias=False, use_scale=False, dtype=dtype, rngs=rngs) for _ in "12")

    def __call__(self, x, cond):
        """x [videos, groups, tokens, width]: every group's tokens see one another."""
        shift1, scale1, gate1, shift2, scale2, gate2 = jnp.split(self.modulate(nnx.silu(cond))[:, None, None], 6, -1)
        h = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = (a.reshape(*x.shape[:3], self.heads, -1) for a in jnp.split(self.qkv(h), 3, -1))
        scores = jnp.einsum("vgqhd,vgkhd->vghqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        seen = jnp.einsum("vghqk,vgkhd->vgqhd", jax.nn.softmax(scores).astype(self.dtype), v).reshape(x.shape)
        x = x + gate1 * self.proj(seen)
        h = self.norm2(x) * (1 + scale2) + shift2
        return x + gate2 * self.down(nnx.gelu(self.up(h)))


class Video(nnx.Module):
    def __init__(self, frames, side, width, heads, depth, classes, dtype, remat, rngs):
        lin = lambda a, b: nnx.Linear(a, b, dtype=dtype, rngs=rngs)
        self.dtype, self.remat, self.side = dtype, remat, side // 2
        self.patch, self.leave = lin(16, width), lin(width, 16)
        self.place = nnx.Param(jax.random.normal(rngs.params(), (1, 1, self.side**2, width)) * 0.02)
        self.moment = nnx.Param(jax.random.normal(rngs.params(), (1, frames, 1, width)) * 0.02)
        self.kind = nnx.Embed(classes, width, dtype=dtype, rngs=rngs)
        self.time1, self.time2 = lin(256, width), lin(width, width)
        self.blocks = nnx.List([Block(width, heads, dtype, rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)

    def __call__(self, latents, times, kinds):
        videos, frames, s = *latents.shape[:2], self.side
        x = latents.astype(self.dtype).reshape(videos, frames, s, 2, s, 2, 4).transpose(0, 1, 2, 4, 3, 5, 6).reshape(videos, frames, s * s, 16)
        x = self.patch(x) + self.place[...].astype(self.dtype) + self.moment[...].astype(self.dtype)
        angle = times[:, None] * 1000 * jnp.exp(-jnp.arange(128) * jnp.log(10000.0) / 128)
        cond = self.time2(nnx.silu(self.time1(jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], -1)))) + self.kind(kinds)
        call = lambda block, x, cond: block(x, cond)
        if self.remat:
            call = nnx.remat(call)
        for i, block in enumerate(self.blocks):
            x = call(block, x if i % 2 == 0 else x.swapaxes(1, 2), cond)
            x = x if i % 2 == 0 else x.swapaxes(1, 2)
        x = self.leave(self.norm(x)).reshape(videos, frames, s, s, 2, 2, 4)
        return x.transpose(0, 1, 2, 4, 3, 5, 6).reshape(latents.shape).astype(jnp.float32)


def video(topology, chips, batch, frames=16, side=32, width=768, heads=12, depth=12, classes=101, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def create():
        model = Video(frames, side, width, heads, depth, classes, compute, remat, nnx.Rngs(0))
        return nnx.split((model, nnx.Optimizer(model, optax.adamw(1e-4, weight_decay=0.0), wrt=nnx.Param)))

    graph, state = nnx.eval_shape(create)
    state = placed(state, whole)

    def train_step(state, latents, noise, times, kinds):
        model, optimizer = nnx.merge(graph, state)

        def loss_fn(model):
            t = times[:, None, None, None, None]
            flow = model((1 - t) * latents + t * noise, times, kinds)
            return jnp.square(flow - (noise - latents)).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    latents = lambda: S("float32", frames, side, side, 4)
    outs = (jax.tree.map(lambda a: a.sharding, state), None)
    return Program(train_step, (state, latents(), latents(), S("float32"), S("int32")), kind_of_nnx_pair, (0,) if donate else (), outs)


def kind_of_nnx_pair(path):
    """Of (model, optimizer), the state of the two."""
    if not path.startswith("[0]"):
        return "input"
    if "rngs" in path or "count" in path:
        return "other"
    return "opt" if path.startswith("[0][1]") or "opt_state" in path or "step" in path else "weight"
