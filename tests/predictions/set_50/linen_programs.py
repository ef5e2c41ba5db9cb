"""Linen: a speech recogniser as Conformer-Transducer large (17 layers of 512 after two convolutions of stride 2, an LSTM of 640 reads the words, a joint of 640 over 1024 word pieces) on utterances of 20 s with 80 words, RNN-T's loss by its forward algorithm, weights in float32, computing in bfloat16, AdamW, data parallel; layers one after another."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


def norm():
    return nn.LayerNorm(epsilon=1e-5, dtype=HALF)


class Half(nn.Module):
    @nn.compact
    def __call__(self, x):
        width = x.shape[-1]
        return 0.5 * nn.Dense(width, dtype=HALF)(nn.silu(nn.Dense(4 * width, dtype=HALF)(norm()(x))))


class Conformer(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x):
        width = x.shape[-1]
        x = x + Half(name="first")(x)
        y = norm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True)(y, y)
        y = nn.glu(nn.Dense(2 * width, dtype=HALF)(norm()(x)))
        y = nn.Conv(width, (31,), feature_group_count=width, dtype=HALF)(y)
        x = x + nn.Dense(width, dtype=HALF)(nn.silu(norm()(y)))
        x = x + Half(name="second")(x)
        return norm()(x)


def sinusoids(length, width):
    at = np.arange(length)[:, None] / 10000.0 ** (2 * (np.arange(width) // 2) / width)
    return np.where(np.arange(width) % 2, np.cos(at), np.sin(at)).astype("float32")


class Encoder(nn.Module):
    width: int
    depth: int
    heads: int
    remat: bool

    @nn.compact
    def __call__(self, x):
        layer = nn.remat(Conformer) if self.remat else Conformer
        x = x.astype(HALF)[..., None]
        for _ in range(2):
            x = nn.relu(nn.Conv(self.width, (3, 3), (2, 2), dtype=HALF)(x))
        x = nn.Dense(self.width, dtype=HALF)(x.reshape(*x.shape[:2], -1))
        x = x + jnp.asarray(sinusoids(x.shape[1], self.width), HALF)
        for i in range(self.depth):
            x = layer(self.heads, name=f"layer_{i}")(x)
        return nn.Dense(640, dtype=HALF, name="to_joint")(x)


class Reader(nn.Module):
    words: int

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.words, 640, dtype=HALF)(tokens)
        x = nn.RNN(nn.OptimizedLSTMCell(640, dtype=HALF))(x)
        return nn.Dense(640, dtype=HALF, name="to_joint")(x)


class Joint(nn.Module):
    words: int

    @nn.compact
    def __call__(self, heard, read):
        return nn.Dense(self.words, dtype=HALF)(jnp.tanh(heard[:, :, None] + read[:, None])).astype(jnp.float32)


def transducer(logits, labels):
    """The sum over all ways through frames and words."""
    logits = jax.nn.log_softmax(logits)
    blank = logits[..., 0]
    said = jnp.take_along_axis(logits[:, :, :-1], labels[:, None, :, None], -1)[..., 0]
    reach = jnp.pad(jnp.cumsum(said, 2), ((0, 0), (0, 0), (1, 0)))

    def step(alpha, xs):
        blank, reach = xs
        alpha = reach + jax.lax.cumlogsumexp(alpha - reach, 1)
        return alpha + blank, None

    start = jnp.full(blank[:, 0].shape, -1e30).at[:, 0].set(0.0)
    alpha, _ = jax.lax.scan(step, start, (blank.swapaxes(0, 1), reach.swapaxes(0, 1)))
    return -alpha[:, -1].sum()


def rnnt(topology, chips, batch, frames=2000, bands=80, said=80, words=1024, depth=17, chunks=1, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    nets = {"encoder": Encoder(512, depth, 8, remat), "reader": Reader(words), "joint": Joint(words)}
    zeros = lambda d, *s: jnp.zeros((1, *s), d)
    given = {"encoder": (zeros("float32", frames, bands),), "reader": (zeros("int32", said + 1),), "joint": (zeros(HALF, 4, 640), zeros(HALF, 5, 640))}
    params = {name: jax.eval_shape(lambda name=name: nets[name].init(jax.random.key(0), *given[name]))["params"] for name in nets}
    params = placed(params, whole)
    transform = optax.adamw(1e-3, b2=0.98, weight_decay=1e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        call = lambda name, *args: nets[name].apply({"params": params[name]}, *args)
        heard = call("encoder", data["sound"])
        read = call("reader", jnp.pad(data["labels"], ((0, 0), (1, 0))))
        piece = lambda heard, read, labels: transducer(call("joint", heard, read), labels)
        if chunks == 1:
            return piece(heard, read, data["labels"]) / batch

        def parts(a):  # of each device's utterances
            a = a.reshape(chips, chunks, -1, *a.shape[1:]).swapaxes(0, 1)
            a = a.reshape(chunks, -1, *a.shape[3:])
            return jax.lax.with_sharding_constraint(a, NamedSharding(devices, P(None, "data")))

        step = jax.checkpoint(lambda total, xs: (total + piece(*xs), None))
        return jax.lax.scan(step, 0.0, (parts(heard), parts(read), parts(data["labels"])))[0] / batch

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"sound": S("float32", frames, bands), "labels": S("int32", said)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
