"""Flax Linen: the ResNet of its ImageNet example (examples/imagenet/models.py), with its own mixed precision and momentum."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


class BottleneckResNetBlock(nn.Module):
    filters: int
    conv: callable
    norm: callable
    act: callable
    strides: tuple = (1, 1)

    @nn.compact
    def __call__(self, x):
        residual = x
        y = self.conv(self.filters, (1, 1))(x)
        y = self.act(self.norm()(y))
        y = self.conv(self.filters, (3, 3), self.strides)(y)
        y = self.act(self.norm()(y))
        y = self.norm(scale_init=nn.initializers.zeros_init())(self.conv(self.filters * 4, (1, 1))(y))
        if residual.shape != y.shape:
            residual = self.norm(name="norm_proj")(self.conv(self.filters * 4, (1, 1), self.strides, name="conv_proj")(residual))
        return self.act(residual + y)


class ResNet(nn.Module):
    stages: tuple
    dtype: object
    remat: bool
    filters: int = 64

    @nn.compact
    def __call__(self, x):
        conv = functools.partial(nn.Conv, use_bias=False, dtype=self.dtype)
        norm = functools.partial(nn.BatchNorm, use_running_average=False, momentum=0.9, epsilon=1e-5, dtype=self.dtype)
        x = conv(self.filters, (7, 7), (2, 2), padding=[(3, 3), (3, 3)], name="conv_init")(x)
        x = nn.max_pool(nn.relu(norm(name="bn_init")(x)), (3, 3), strides=(2, 2), padding="SAME")
        block = nn.remat(BottleneckResNetBlock) if self.remat else BottleneckResNetBlock
        for i, size in enumerate(self.stages):
            for j in range(size):
                x = block(self.filters * 2**i, conv, norm, nn.relu, (2, 2) if i > 0 and j == 0 else (1, 1))(x)
        return nn.Dense(1000, dtype=self.dtype)(jnp.mean(x, (1, 2))).astype(jnp.float32)


def resnet(topology, chips, batch, stages=(3, 8, 36, 3), size=224, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = ResNet(stages, jnp.bfloat16 if half else jnp.float32, remat)
    variables = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, size, size, 3), "float32"))
    transform = optax.sgd(0.1, momentum=0.9, nesterov=True)
    params, stats = variables["params"], variables["batch_stats"]

    def train_step(params, opt_state, stats, images, labels):
        def loss_fn(params):
            logits, new = net.apply({"params": params, "batch_stats": stats}, images, mutable=["batch_stats"])
            decay = 0.5 * 1e-4 * sum(jnp.sum(x**2) for x in jax.tree.leaves(params) if x.ndim > 1)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean() + decay, (new["batch_stats"], logits)

        (loss, (stats, logits)), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, stats, loss, (logits.argmax(-1) == labels).mean()

    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=split)
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), placed(stats, whole), S("float32", batch, size, size, 3), S("int32", batch))
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, args, classify, (0, 1, 2) if donate else ())
