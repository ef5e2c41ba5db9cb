"""Linen: an RNN transducer (LSTM encoder and prediction network, joint of all pairs of frames and words), its loss by dynamic programming."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh, placed


class Encoder(nn.Module):
    width: int
    depth: int
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        for i in range(self.depth):
            x = nn.LayerNorm(dtype=self.dtype)(x)
            x = nn.RNN(nn.OptimizedLSTMCell(self.width, dtype=self.dtype), name=f"lstm_{i}")(x)
            if i == 1:
                x = x.reshape(x.shape[0], x.shape[1] // 2, -1)
        return x


class Joint(nn.Module):
    width: int
    words: int
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, frames, labels):
        """[b, t, d], [b, u, d] to the log of the chances of blank and of the next word, each [b, t, u]."""
        f = nn.Dense(self.width, dtype=self.dtype, name="frames")(frames)
        g = nn.Dense(self.width, dtype=self.dtype, name="labels")(labels)
        return nn.Dense(self.words, dtype=self.dtype, name="out")(nn.tanh(f[:, :, None] + g[:, None]))


class Transducer(nn.Module):
    words: int = 1024
    width: int = 1024
    depth: int = 6
    joint: int = 640
    dtype: jnp.dtype = jnp.float32
    remat: bool = False
    pieces: int = 1

    @nn.compact
    def __call__(self, features, labels):
        x = Encoder(self.width, self.depth, self.dtype, name="encoder")(features)
        y = nn.Embed(self.words, 512, dtype=self.dtype, name="embed")(jnp.pad(labels, ((0, 0), (1, 0))))
        y = nn.RNN(nn.OptimizedLSTMCell(640, dtype=self.dtype), name="predict")(y)
        joint = Joint(self.joint, self.words, self.dtype, name="joint")

        def score(joint, x, y):
            logits = joint(x, y).astype(jnp.float32)
            logp = jax.nn.log_softmax(logits)
            word = jnp.take_along_axis(logp[:, :, :-1], labels[:, None, :, None], -1)[..., 0]
            return logp[..., 0], word

        if self.remat:
            score = nn.remat(score)
        if self.pieces == 1:
            return score(joint, x, y)
        outs = [score(joint, part, y) for part in jnp.split(x, self.pieces, 1)]
        return jnp.concatenate([o[0] for o in outs], 1), jnp.concatenate([o[1] for o in outs], 1)


def transducer_loss(blank, word):
    """blank [b, t, u+1], word [b, t, u]; forward variable, frame after frame, word after word."""
    def frame(alpha, xs):
        blank_before, word_here = xs
        stay = alpha + blank_before

        def move(left, x):
            s, w = x
            now = jnp.logaddexp(s, left + w)
            return now, now

        first = stay[:, 0]
        _, rest = jax.lax.scan(move, first, (stay[:, 1:].T, word_here.T))
        return jnp.concatenate([first[:, None], rest.T], 1), None

    first = jnp.concatenate([jnp.zeros_like(blank[:, 0, :1]), jnp.cumsum(word[:, 0], -1)], 1)
    alpha, _ = jax.lax.scan(frame, first, (blank[:, :-1].swapaxes(0, 1), word[:, 1:].swapaxes(0, 1)))
    return -(alpha[:, -1] + blank[:, -1, -1]).mean()


def rnnt(topology, chips, batch, frames=800, words=80, features=80, half=False, remat=False, pieces=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Transducer(dtype=HALF if half else jnp.float32, remat=remat, pieces=pieces)
    transform = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(2e-4))

    def make(key):
        params = net.init(key, jnp.zeros((1, frames, features)), jnp.zeros((1, words), jnp.int32))["params"]
        return train_state.TrainState.create(apply_fn=net.apply, params=params, tx=transform)

    state = placed(jax.eval_shape(make, jax.random.key(0)), whole)

    def train_step(state, batch):
        def loss_fn(params):
            return transducer_loss(*state.apply_fn({"params": params}, batch["features"], batch["labels"]))

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    data = {"features": S("float32", frames, features), "labels": S("int32", words)}
    classify = lambda path: "input" if path.startswith("[1]") else "opt" if "opt_state" in path or path.endswith(".step") else "weight"
    return Program(train_step, (state, data), classify, (0,) if donate else (), (shardings(state), None))
