"""Equinox: a residual 3D U-Net (four kinds of magnetic resonance in, four tissues out) on patches of 128 by 128 by 128, Dice and cross entropy; data parallel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed


class Residual(eqx.Module):
    conv1: eqx.nn.Conv3d
    conv2: eqx.nn.Conv3d
    skip: eqx.nn.Conv3d
    norm1: eqx.nn.GroupNorm
    norm2: eqx.nn.GroupNorm

    def __init__(self, a, b, stride, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.conv1, self.conv2, self.skip = eqx.nn.Conv3d(a, b, 3, stride, 1, key=k1), eqx.nn.Conv3d(b, b, 3, 1, 1, key=k2), eqx.nn.Conv3d(a, b, 1, stride, key=k3)
        self.norm1, self.norm2 = eqx.nn.GroupNorm(8, b), eqx.nn.GroupNorm(8, b)

    def __call__(self, x):  # [channels, depth, height, width]
        h = jax.nn.leaky_relu(self.norm1(self.conv1(x)))
        return jax.nn.leaky_relu(self.norm2(self.conv2(h)) + self.skip(x))


class UNet(eqx.Module):
    down: list
    up: list
    join: list
    leave: eqx.nn.Conv3d

    def __init__(self, widths, key):
        ks = iter(jax.random.split(key, 40))
        self.down = [Residual(a, b, 1 if i == 0 else 2, next(ks)) for i, (a, b) in enumerate(zip((4, *widths), widths))]
        pairs = list(zip(widths[:0:-1], widths[-2::-1]))
        self.up = [eqx.nn.ConvTranspose3d(a, b, 2, 2, key=next(ks)) for a, b in pairs]
        self.join = [Residual(2 * b, b, 1, next(ks)) for _, b in pairs]
        self.leave = eqx.nn.Conv3d(widths[0], 4, 1, key=next(ks))

    def __call__(self, x, remat):
        run = (lambda f, x: jax.checkpoint(lambda f, x: f(x))(f, x)) if remat else (lambda f, x: f(x))
        kept = []
        for block in self.down:
            x = run(block, x)
            kept.append(x)
        for up, join, other in zip(self.up, self.join, kept[-2::-1]):
            x = run(join, jnp.concatenate([up(x), other]))
        return self.leave(x)


def unet3d(topology, chips, batch, side=128, widths=(32, 64, 128, 256, 320), compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    params, static = eqx.partition(eqx.filter_eval_shape(lambda: UNet(widths, jax.random.key(0))), lambda a: isinstance(a, jax.ShapeDtypeStruct))
    params = placed(params, whole)
    transform = optax.chain(optax.add_decayed_weights(3e-5), optax.sgd(0.01, momentum=0.99, nesterov=True))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            net = eqx.combine(jax.tree.map(lambda a: a.astype(compute), params), static)
            logits = jax.vmap(lambda x: net(x, remat))(batch["scans"].astype(compute)).astype(jnp.float32)
            truth = jax.nn.one_hot(batch["tissues"], 4, axis=1)
            p = jax.nn.softmax(logits, axis=1)
            both, either = (p * truth).sum((2, 3, 4)), (p + truth).sum((2, 3, 4))
            cross = -(truth * jax.nn.log_softmax(logits, axis=1)).sum(1).mean()
            return cross + 1 - (2 * both / (either + 1e-5)).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"scans": S("float32", 4, side, side, side), "tissues": S("int32", side, side, side)}
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, opt, data), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
