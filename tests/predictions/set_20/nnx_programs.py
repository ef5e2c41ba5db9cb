"""Flax NNX: SimCLR with a ResNet 50, LARS, the batch's features gathered from all devices."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed


class Bottleneck(nnx.Module):
    def __init__(self, inward, n, stride, dtype, rngs):
        conv = lambda i, o, k, s=1: nnx.Conv(i, o, (k, k), strides=s, use_bias=False, dtype=dtype, rngs=rngs)
        norm = lambda n: nnx.BatchNorm(n, dtype=dtype, rngs=rngs)
        self.c1, self.c2, self.c3 = conv(inward, n, 1), conv(n, n, 3, stride), conv(n, 4 * n, 1)
        self.n1, self.n2, self.n3 = norm(n), norm(n), norm(4 * n)
        self.short = nnx.Sequential(conv(inward, 4 * n, 1, stride), norm(4 * n)) if inward != 4 * n or stride > 1 else None

    def __call__(self, x):
        y = nnx.relu(self.n1(self.c1(x)))
        y = nnx.relu(self.n2(self.c2(y)))
        return nnx.relu(self.n3(self.c3(y)) + (x if self.short is None else self.short(x)))


class SimCLR(nnx.Module):
    def __init__(self, dtype, remat, rngs):
        self.stem = nnx.Conv(3, 64, (7, 7), strides=2, use_bias=False, dtype=dtype, rngs=rngs)
        self.norm = nnx.BatchNorm(64, dtype=dtype, rngs=rngs)
        blocks, inward = [], 64
        for n, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                blocks.append(Bottleneck(inward, n, stride if i == 0 else 1, dtype, rngs))
                inward = 4 * n
        self.blocks = nnx.List(blocks)
        self.head1, self.head2 = nnx.Linear(2048, 2048, rngs=rngs), nnx.Linear(2048, 128, rngs=rngs)
        self.remat = remat

    def __call__(self, x):
        x = nnx.relu(self.norm(self.stem(x)))
        x = nnx.max_pool(x, (3, 3), (2, 2), "SAME")
        for i, block in enumerate(self.blocks):
            call = lambda block, x: block(x)
            x = (nnx.remat(call) if i < self.remat else call)(block, x)
        return self.head2(nnx.relu(self.head1(x.mean((1, 2)).astype(jnp.float32))))


def simclr(topology, chips, batch, half=False, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: SimCLR(jnp.bfloat16 if half else jnp.float32, remat, nnx.Rngs(0)))
    transform = optax.lars(0.3, weight_decay=1e-6)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = placed(net_state, whole), placed(opt_state, whole)

    def train_step(model, opt_state, first, second):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)

        def loss_fn(net):
            views = jax.lax.with_sharding_constraint(jnp.stack([first, second], 1).reshape(-1, *first.shape[1:]), split)
            z = net(views)
            z = z / jnp.linalg.norm(z, axis=-1, keepdims=True)
            every = jax.lax.with_sharding_constraint(z, whole)
            scores = z @ every.T / 0.1
            count = scores.shape[0]
            scores = jnp.where(jnp.eye(count, dtype=bool), -1e9, scores)
            other = jnp.arange(count) ^ 1
            return optax.softmax_cross_entropy_with_integer_labels(scores, other).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(net)
        opt.update(net, grads)
        return nnx.state(net), nnx.state(opt), loss

    view = jax.ShapeDtypeStruct((batch, 224, 224, 3), "float32", sharding=split)

    def classify(path):
        return "input" if path[:3] in ("[2]", "[3]") else "opt" if path.startswith("[1]") else "weight"

    return Program(train_step, (net_state, opt_state, view, view), classify, (0, 1) if donate else (), (shardings(net_state), shardings(opt_state), None))
