"""dm-haiku: dilated convolutions over sound, stacked LSTMs over time."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed

HALF = jnp.bfloat16


def training(network, transform, loss, data, devices, donate=True):
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = hk.without_apply_rng(hk.transform(network))
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, *data[0].shape[1:]), data[0].dtype)))
    state = jax.eval_shape(transform.init, params)

    def update(params, opt_state, x, y):
        value, gradients = jax.value_and_grad(lambda p: loss(net.apply(p, x), y))(params)
        updates, opt_state = transform.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    args = (placed(params, whole), placed(state, whole), *[placed(x, split) for x in data])
    rule = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(update, args, rule, (0, 1) if donate else ())


def mean_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean()


class Dilated(hk.Module):
    def __init__(self, width, rate, name):
        super().__init__(name)
        self.width, self.rate = width, rate

    def __call__(self, x):
        conv = lambda n: hk.Conv1D(self.width, 2, rate=self.rate, padding=hk.pad.causal, name=n)(x)
        y = jnp.tanh(conv("filter")) * jax.nn.sigmoid(conv("gate"))
        skip = hk.Linear(self.width, name="skip")(y)
        return x + hk.Linear(self.width, name="residual")(y), skip


def wavenet(topology, chips, batch, samples, depth, width, remat=False):
    devices = mesh(topology, (chips,), ("data",))

    def network(codes):
        x = hk.Embed(256, width, name="codes")(codes).astype(jnp.float32)
        total = 0.0
        for number in range(depth):
            block = Dilated(width, 2 ** (number % 8), name=f"dilated_{number}")
            x, skip = (hk.remat(block) if remat else block)(x)
            total = total + skip
        return hk.Linear(256, name="logits")(jax.nn.relu(hk.Linear(width, name="mix")(jax.nn.relu(total))))

    data = [jax.ShapeDtypeStruct((batch, samples), jnp.int32)] * 2
    return training(network, optax.adam(1e-3), mean_entropy, data, devices)


def lstm(topology, chips, batch, steps, depth, width, vocabulary, remat=False):
    devices = mesh(topology, (chips,), ("data",))

    def network(tokens):
        x = hk.Embed(vocabulary, width, name="words")(tokens).swapaxes(0, 1)
        for number in range(depth):
            core = hk.LSTM(width, name=f"lstm_{number}")
            first = core.initial_state(x.shape[1])
            run = hk.remat(core) if remat else core
            x, _ = hk.dynamic_unroll(run, x, first)
        return hk.Linear(vocabulary, name="predict")(x.swapaxes(0, 1))

    data = [jax.ShapeDtypeStruct((batch, steps), jnp.int32)] * 2
    return training(network, optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(1.0, momentum=0.9)), mean_entropy, data, devices)
