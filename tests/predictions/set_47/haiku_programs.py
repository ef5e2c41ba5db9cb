"""Haiku: MuZero on Atari (32 pictures of 96 by 96; residual blocks with layer norm before each convolution; five steps of its dynamics, 16 blocks of 6 by 6 of 256, one after another), losses of policy, values and rewards of 601, Adam with decay, data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed


class Block(hk.Module):
    def __init__(self, channels, name=None):
        super().__init__(name=name)
        self.channels = channels

    def __call__(self, x):
        h = x
        for i in range(2):
            h = hk.LayerNorm((-3, -2, -1), True, True, name=f"norm_{i}")(h)
            h = hk.Conv2D(self.channels, 3, with_bias=False, name=f"conv_{i}")(jax.nn.relu(h))
        return x + h


def muzero(topology, chips, batch, side=96, planes=128, actions=18, support=601, depth=16, unroll=5, compute="float32", remat=False, donate=True):
    if compute != "float32":
        policy = jmp.Policy(compute_dtype=jnp.dtype(compute), param_dtype=jnp.float32, output_dtype=jnp.dtype(compute))
        for module in (hk.Conv2D, hk.LayerNorm, hk.Linear):
            hk.mixed_precision.set_policy(module, policy)
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    class Tower(hk.Module):
        def __init__(self, channels, depth, name):
            super().__init__(name=name)
            self.blocks = [Block(channels, name=f"block_{i}") for i in range(depth)]

        def __call__(self, x):
            for block in self.blocks:
                x = hk.remat(block)(x) if remat else block(x)
            return x

    class Representation(hk.Module):
        def __call__(self, x):
            x = hk.Conv2D(128, 3, 2, with_bias=False, name="conv_1")(x)
            x = Tower(128, 2, "tower_1")(x)
            x = hk.Conv2D(256, 3, 2, with_bias=False, name="conv_2")(x)
            x = Tower(256, 3, "tower_2")(x)
            x = hk.avg_pool(x, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
            x = Tower(256, 3, "tower_3")(x)
            return scaled(hk.avg_pool(x, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"))

    def scaled(x):
        low, high = x.min((1, 2, 3), keepdims=True), x.max((1, 2, 3), keepdims=True)
        return (x - low) / (high - low + 1e-5)

    def head(x, size, name):
        x = jax.nn.relu(hk.Conv2D(16, 1, name=f"{name}_conv")(x))
        x = jax.nn.relu(hk.Linear(256, name=f"{name}_hidden")(hk.Flatten()(x)))
        return hk.Linear(size, name=f"{name}_out")(x).astype(jnp.float32)

    class Dynamics(hk.Module):
        def __call__(self, x, action):
            plane = jnp.broadcast_to((action / actions).astype(x.dtype)[:, None, None, None], (*x.shape[:3], 1))
            h = hk.Conv2D(256, 3, with_bias=False, name="conv")(jnp.concatenate([x, plane], -1))
            h = scaled(Tower(256, depth, "tower")(x + h))
            return h, head(h, support, "reward")

    class Prediction(hk.Module):
        def __call__(self, x):
            return head(x, actions, "policy"), head(x, support, "value")

    def forward(images, moves):
        represent, dynamics, predict = Representation(name="representation"), Dynamics(name="dynamics"), Prediction(name="prediction")
        x = represent(images.astype(compute))
        outs = [(*predict(x), None)]
        for k in range(unroll):
            x = x * 0.5 + jax.lax.stop_gradient(x) * 0.5
            x, reward = dynamics(x, moves[:, k])
            outs.append((*predict(x), reward))
        return outs

    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, side, side, planes)), jnp.zeros((1, unroll), "int32"))), whole)
    transform = optax.adamw(optax.cosine_decay_schedule(1e-4, 1000000), weight_decay=1e-4)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, batch):
        total = 0.0
        for k, (policy, value, reward) in enumerate(net.apply(params, batch["images"], batch["moves"])):
            part = optax.softmax_cross_entropy(policy, batch["policies"][:, k]) + 0.25 * optax.softmax_cross_entropy(value, batch["values"][:, k])
            if reward is not None:
                part = part + optax.softmax_cross_entropy(reward, batch["rewards"][:, k - 1])
            total = total + part * (1.0 if k == 0 else 1.0 / unroll)
        return (total * batch["weights"]).mean()

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"images": S("float32", side, side, planes), "moves": S("int32", unroll), "policies": S("float32", unroll + 1, actions),
            "values": S("float32", unroll + 1, support), "rewards": S("float32", unroll, support), "weights": S("float32")}
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, opt, data), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
