"""Haiku: a language model of three LSTMs of 2048 (hk.DeepRNN by hk.dynamic_unroll over 256 words, as its examples/rnn grown), 50257 words, float32, AdamW, data parallel, the state whole on each."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def lstm(topology, chips, batch, length=256, words=50257, width=2048, depth=3, chunks=1, shard=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def loss_of(tokens, labels):
        """Words are [time, batch], as dynamic_unroll takes them."""
        core = hk.DeepRNN([hk.LSTM(width, name=f"lstm_{i}") for i in range(depth)])
        x = hk.Embed(words, width, name="embed")(tokens)
        start = core.initial_state(tokens.shape[1])
        x, _ = hk.dynamic_unroll(hk.remat(core) if remat else core, x, start)
        head = hk.Linear(words, name="head")

        def piece(x, labels):
            return optax.softmax_cross_entropy_with_integer_labels(head(x), labels).sum()

        if chunks == 1 or hk.running_init():
            return piece(x, labels) / labels.size
        parts = lambda a: a.reshape(chunks, -1, *a.shape[1:])
        one = hk.remat(piece)
        total, _ = hk.scan(lambda total, xs: (total + one(*xs), None), jnp.zeros(()), (parts(x), parts(labels)))
        return total / labels.size

    net = hk.without_apply_rng(hk.transform(loss_of))
    small = jnp.zeros((2, 1), "int32")
    params = placed(jax.eval_shape(net.init, jax.random.key(0), small, small), whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, weight_decay=1e-4))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if shard else whole)

    def update(params, opt_state, batch):
        turned = lambda a: a.T
        loss, grads = jax.value_and_grad(net.apply)(params, turned(batch["input"]), turned(batch["target"]))
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    data = {"input": S(), "target": S()}
    return Program(update, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
