"""Flax Linen: a recurrent listener and speller of speech."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step
from recipe import Program, mesh, placed


class Speller(nn.Module):
    """One letter: a recurrent cell that looks at everything heard."""

    width: int

    @nn.compact
    def __call__(self, carry, letter, heard):
        state, context = carry
        state, out = nn.OptimizedLSTMCell(self.width, name="cell")(state, jnp.concatenate([letter, context], -1))
        keys = nn.Dense(self.width, name="keys")(heard)
        energy = nn.Dense(1, name="energy")(nn.tanh(keys + nn.Dense(self.width, name="query")(out)[:, None]))[..., 0]
        context = jnp.einsum("bt,btc->bc", nn.softmax(energy), heard)
        return (state, context), jnp.concatenate([out, context], -1)


class Listener(nn.Module):
    width: int
    vocabulary: int
    remat: bool

    @nn.compact
    def __call__(self, sound, letters):
        x = sound
        for i in range(4):  # pairs of steps become one, thrice
            way = lambda r, i=i: nn.RNN(nn.OptimizedLSTMCell(self.width), reverse=r, keep_order=True, name=f"listen_{i}_{r}")
            x = jnp.concatenate([way(r)(x) for r in (False, True)], -1)
            if i < 3:
                x = x.reshape(x.shape[0], x.shape[1] // 2, -1)
        y = nn.Embed(self.vocabulary, self.width)(letters)
        cell = nn.remat(Speller, prevent_cse=False) if self.remat else Speller
        scanned = nn.scan(cell, variable_broadcast="params", split_rngs={"params": False}, in_axes=(1, nn.broadcast), out_axes=1)
        speller = scanned(2 * self.width, name="spell")
        zero = jnp.zeros((x.shape[0], 2 * self.width))
        _, out = speller(((zero, zero), jnp.zeros((x.shape[0], x.shape[2]))), y, x)
        return nn.Dense(self.vocabulary)(out)


def listen(topology, chips, batch, sound, letters, width, vocabulary, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net, transform, S = Listener(width, vocabulary, remat), optax.adam(1e-3), jax.ShapeDtypeStruct
    params = jax.eval_shape(net.init, jax.random.key(0), S((2, sound, 80), "float32"), S((2, letters), "int32"))

    def loss_fn(params, sound, letters):
        logits = net.apply(params, sound, letters)
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.roll(letters, -1, 1)).mean()

    def train_step(params, opt_state, sound, letters):
        loss, grads = jax.value_and_grad(loss_fn)(params, sound, letters)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole),
            S((batch, sound, 80), "float32", sharding=split), S((batch, letters), "int32", sharding=split))
    return Program(train_step, args, kind_of_step, (0, 1) if donate else ())
