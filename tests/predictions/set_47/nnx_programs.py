"""Flax NNX: Swin-B (windows of 12, pictures of 384) is fine-tuned on ImageNet, weights in float32, computing in bfloat16, AdamW of the weights, label smoothing, data parallel; 2, 2, 18 and 2 blocks one after another."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings
from recipe import Program, mesh, placed


def index(window):
    """Where the bias of every pair of places of a window is in its table."""
    at = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij")).reshape(2, -1)
    apart = at[:, :, None] - at[:, None] + window - 1
    return apart[0] * (2 * window - 1) + apart[1]


def hidden(side, window, shift):
    """What a place of a shifted window must not see: windows, places, places."""
    part = np.zeros((side, side), int)
    cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for i, a in enumerate(cuts):
        for j, b in enumerate(cuts):
            part[a, b] = 3 * i + j
    part = part.reshape(side // window, window, side // window, window).transpose(0, 2, 1, 3).reshape(-1, window * window)
    return np.where(part[:, :, None] != part[:, None], -100.0, 0.0).astype("float32")


class Block(nnx.Module):
    def __init__(self, width, heads, window, shift, rngs):
        dense = lambda a, b: nnx.Linear(a, b, dtype=HALF, rngs=rngs)
        self.norm1, self.norm2 = (nnx.LayerNorm(width, epsilon=1e-5, dtype=HALF, rngs=rngs) for _ in range(2))
        self.qkv, self.out = dense(width, 3 * width), dense(width, width)
        self.up, self.down = dense(width, 4 * width), dense(4 * width, width)
        self.table = nnx.Param(jnp.zeros(((2 * window - 1) ** 2, heads)))
        self.heads, self.window, self.shift = heads, window, shift

    def __call__(self, x):
        batch, side, _, width = x.shape
        w = self.window
        shift = self.shift if side > w else 0
        h = self.norm1(x)
        h = jnp.roll(h, (-shift, -shift), (1, 2)) if shift else h
        n = side // w
        h = h.reshape(batch, n, w, n, w, width).transpose(0, 1, 3, 2, 4, 5).reshape(batch, n * n, w * w, width)
        q, k, v = jnp.moveaxis(self.qkv(h).reshape(batch, n * n, w * w, 3, self.heads, -1), 3, 0)
        s = jnp.einsum("bnqhd,bnkhd->bnhqk", q * q.shape[-1] ** -0.5, k).astype(jnp.float32)
        s = s + self.table[...][index(w)].transpose(2, 0, 1)
        if shift:
            s = s + hidden(side, w, shift)[None, :, None]
        h = jnp.einsum("bnhqk,bnkhd->bnqhd", jax.nn.softmax(s).astype(HALF), v).reshape(batch, n * n, w * w, width)
        h = self.out(h).reshape(batch, n, n, w, w, width).transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
        x = x + (jnp.roll(h, (shift, shift), (1, 2)) if shift else h)
        return x + self.down(nnx.gelu(self.up(self.norm2(x)), approximate=False))


class Merging(nnx.Module):
    def __init__(self, width, rngs):
        self.norm = nnx.LayerNorm(4 * width, epsilon=1e-5, dtype=HALF, rngs=rngs)
        self.linear = nnx.Linear(4 * width, 2 * width, use_bias=False, dtype=HALF, rngs=rngs)

    def __call__(self, x):
        b, side, _, width = x.shape
        x = x.reshape(b, side // 2, 2, side // 2, 2, width).transpose(0, 1, 3, 4, 2, 5).reshape(b, side // 2, side // 2, 4 * width)
        return self.linear(self.norm(x))


class Swin(nnx.Module):
    def __init__(self, width, depths, heads, window, classes, rngs):
        self.patches = nnx.Conv(3, width, (4, 4), (4, 4), dtype=HALF, rngs=rngs)
        self.norm0 = nnx.LayerNorm(width, epsilon=1e-5, dtype=HALF, rngs=rngs)
        self.stages, self.mergings = nnx.List([]), nnx.List([])
        for i, (depth, count) in enumerate(zip(depths, heads)):
            self.stages.append(nnx.List([Block(width << i, count, window, window // 2 * (j % 2), rngs) for j in range(depth)]))
            if i + 1 < len(depths):
                self.mergings.append(Merging(width << i, rngs))
        last = width << (len(depths) - 1)
        self.norm = nnx.LayerNorm(last, epsilon=1e-5, dtype=HALF, rngs=rngs)
        self.head = nnx.Linear(last, classes, rngs=rngs)

    def __call__(self, x, remat):
        x = self.norm0(self.patches(x.astype(HALF)))
        for i, stage in enumerate(self.stages):
            for block in stage:
                x = nnx.remat(lambda block, x: block(x))(block, x) if remat else block(x)
            if i < len(self.mergings):
                x = self.mergings[i](x)
        return self.head(self.norm(x).mean((1, 2)).astype(jnp.float32))


def swin(topology, chips, batch, side=384, classes=1000, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: Swin(128, (2, 2, 18, 2), (4, 8, 16, 32), 12, classes, nnx.Rngs(0)))
    graph, params = nnx.split(model)
    params = placed(nnx.to_pure_dict(params), whole)
    transform = optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(2e-5, weight_decay=1e-8))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, batch):
        state = nnx.state(model)
        nnx.replace_by_pure_dict(state, params)
        logits = nnx.merge(graph, state)(batch["images"], remat)
        labels = optax.smooth_labels(jax.nn.one_hot(batch["labels"], classes), 0.1)
        return optax.softmax_cross_entropy(logits, labels).mean()

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"images": S("float32", side, side, 3), "labels": S("int32")}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
