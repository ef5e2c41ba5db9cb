"""Flax NNX: ConvNeXt-L on ImageNet (depths 3, 3, 27, 3; pictures of 224), weights in float32, computing in float32, AdamW, data parallel; blocks one after another."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings
from recipe import Program, mesh, placed


class ConvNeXtBlock(nnx.Module):
    def __init__(self, width, dtype, rngs):
        self.dwconv = nnx.Conv(width, width, (7, 7), feature_group_count=width, padding="SAME", dtype=dtype, rngs=rngs)
        self.norm = nnx.LayerNorm(width, epsilon=1e-6, dtype=dtype, rngs=rngs)
        self.pwconv1 = nnx.Linear(width, 4 * width, dtype=dtype, rngs=rngs)
        self.pwconv2 = nnx.Linear(4 * width, width, dtype=dtype, rngs=rngs)
        self.gamma = nnx.Param(jnp.full((width,), 1e-6))

    def __call__(self, x):
        h = self.norm(self.dwconv(x))
        h = self.pwconv2(nnx.gelu(self.pwconv1(h), approximate=False))
        return x + h * self.gamma[...].astype(h.dtype)


class Downsample(nnx.Module):
    def __init__(self, a, b, dtype, rngs):
        self.norm = nnx.LayerNorm(a, epsilon=1e-6, dtype=dtype, rngs=rngs)
        self.conv = nnx.Conv(a, b, (2, 2), (2, 2), dtype=dtype, rngs=rngs)

    def __call__(self, x):
        return self.conv(self.norm(x))


class ConvNeXt(nnx.Module):
    def __init__(self, depths, widths, classes, dtype, remat, rngs):
        self.stem = nnx.Conv(3, widths[0], (4, 4), (4, 4), dtype=dtype, rngs=rngs)
        self.stem_norm = nnx.LayerNorm(widths[0], epsilon=1e-6, dtype=dtype, rngs=rngs)
        self.downs = nnx.List([Downsample(a, b, dtype, rngs) for a, b in zip(widths, widths[1:])])
        self.stages = nnx.List([nnx.List([ConvNeXtBlock(w, dtype, rngs) for _ in range(d)]) for d, w in zip(depths, widths)])
        self.norm = nnx.LayerNorm(widths[-1], epsilon=1e-6, dtype=dtype, rngs=rngs)
        self.head = nnx.Linear(widths[-1], classes, dtype=dtype, rngs=rngs)
        self.remat = remat

    def __call__(self, x):
        call = nnx.remat(lambda block, x: block(x)) if self.remat else lambda block, x: block(x)
        x = self.stem_norm(self.stem(x))
        for i, stage in enumerate(self.stages):
            if i:
                x = self.downs[i - 1](x)
            for block in stage:
                x = call(block, x)
        return self.head(self.norm(x.mean((1, 2))))


def convnext(topology, chips, batch, side=224, classes=1000, depths=(3, 3, 27, 3), widths=(192, 384, 768, 1536), compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: ConvNeXt(depths, widths, classes, jnp.dtype(compute), remat, nnx.Rngs(0)))
    graph, params = nnx.split(model)
    params = placed(nnx.to_pure_dict(params), whole)
    transform = optax.adamw(4e-3, weight_decay=0.05)
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, batch):
        state = nnx.state(model)
        nnx.replace_by_pure_dict(state, params)
        logits = nnx.merge(graph, state)(batch["images"].astype(compute)).astype(jnp.float32)
        labels = optax.smooth_labels(jax.nn.one_hot(batch["labels"], classes), 0.1)
        return optax.softmax_cross_entropy(logits, labels).mean()

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"images": S("float32", side, side, 3), "labels": S("int32")}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
