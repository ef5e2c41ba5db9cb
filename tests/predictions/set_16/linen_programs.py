"""Flax Linen: a language model of its own attention and nn.scan, its batch divided, its state whole or divided, with and without constraints."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class Layer(nn.Module):
    width: int
    heads: int
    keep: callable

    @nn.compact
    def __call__(self, x, mask):
        y = nn.RMSNorm(dtype=jnp.bfloat16)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=jnp.bfloat16, use_bias=False, name="attention")(y, mask=mask)
        y = nn.RMSNorm(dtype=jnp.bfloat16)(x)
        y = nn.gelu(nn.Dense(4 * self.width, dtype=jnp.bfloat16, name="up")(y))
        return self.keep(x + nn.Dense(self.width, dtype=jnp.bfloat16, name="down")(y)), None


class LM(nn.Module):
    depth: int
    width: int
    heads: int
    vocabulary: int
    remat: bool
    keep: callable

    @nn.compact
    def __call__(self, tokens):
        x = self.keep(nn.Embed(self.vocabulary, self.width, dtype=jnp.bfloat16, name="embed")(tokens))
        layer = nn.remat(Layer, prevent_cse=False) if self.remat else Layer
        stack = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=nn.broadcast, length=self.depth)
        x, _ = stack(self.width, self.heads, self.keep, name="layers")(x, nn.make_causal_mask(tokens))
        return nn.Dense(self.vocabulary, dtype=jnp.bfloat16, use_bias=False, name="head")(nn.RMSNorm(dtype=jnp.bfloat16)(x))


def lm(topology, chips, batch, length, depth, width, heads, vocabulary, fsdp=False, zero=False, constrain=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    keep = (lambda x: jax.lax.with_sharding_constraint(x, split)) if constrain else lambda x: x
    net = LM(depth, width, heads, vocabulary, remat, keep)
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((chips, length), "int32"))["params"]
    transform = optax.adamw(3e-4)
    cut = largest_dimension(devices, "data")
    params, state = placed(params, cut if fsdp else whole), placed(jax.eval_shape(transform.init, params), cut if fsdp or zero else whole)

    def loss_fn(params, tokens):
        logits = net.apply({"params": params}, tokens).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
