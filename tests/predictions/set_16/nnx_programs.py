"""Flax NNX: a GPT of its own MultiHeadAttention and Optimizer, its batch divided and constrained, its state whole or divided."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import flash, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class Block(nnx.Module):
    def __init__(self, width, heads, attend, rngs):
        self.norm1, self.norm2 = nnx.LayerNorm(width, rngs=rngs), nnx.LayerNorm(width, rngs=rngs)
        more = {"attention_fn": attend} if attend else {}
        self.attention = nnx.MultiHeadAttention(heads, width, dtype=jnp.bfloat16, decode=False, rngs=rngs, **more)
        self.up = nnx.Linear(width, 4 * width, dtype=jnp.bfloat16, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, dtype=jnp.bfloat16, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.norm1(x).astype(jnp.bfloat16), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norm2(x).astype(jnp.bfloat16))))


class GPT(nnx.Module):
    def __init__(self, depth, width, heads, length, vocabulary, attend, remat, keep, rngs):
        self.tokens = nnx.Embed(vocabulary, width, dtype=jnp.bfloat16, rngs=rngs)
        self.places = nnx.Embed(length, width, dtype=jnp.bfloat16, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, attend, rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, vocabulary, use_bias=False, dtype=jnp.bfloat16, rngs=rngs)
        self.remat, self.keep, self.kernel = remat, keep, attend is not None

    def __call__(self, tokens):
        x = self.keep(self.tokens(tokens) + self.places(jnp.arange(tokens.shape[1])))
        mask = None if self.kernel else nnx.make_causal_mask(tokens)
        for block in self.blocks:
            call = nnx.remat(lambda block, x, mask: block(x, mask)) if self.remat else (lambda block, x, mask: block(x, mask))
            x = self.keep(call(block, x, mask))
        return self.head(self.norm(x).astype(jnp.bfloat16)).astype(jnp.float32)


def gpt(topology, chips, batch, length, depth, width, heads, vocabulary, fsdp=False, zero=False, kernel=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    keep = lambda x: jax.lax.with_sharding_constraint(x, split)

    def attend(query, key, value, *args, **rest):
        part = jax.shard_map(flash, mesh=devices, in_specs=(P("data"),) * 3, out_specs=P("data"), check_vma=False)
        return part(query, key, value)

    build = lambda: GPT(depth, width, heads, length, vocabulary, attend if kernel else None, remat, keep, nnx.Rngs(0))
    model = nnx.eval_shape(build)
    transform = optax.adamw(3e-4)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    cut = largest_dimension(devices, "data")
    net_state, opt_state = placed(net_state, cut if fsdp else whole), placed(opt_state, cut if fsdp or zero else whole)

    def train_step(model, opt_state, tokens):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)
        loss_fn = lambda net: optax.softmax_cross_entropy_with_integer_labels(net(tokens)[:, :-1], tokens[:, 1:]).mean()
        loss, grads = nnx.value_and_grad(loss_fn)(net)
        opt.update(net, grads)
        return nnx.state(net), nnx.state(opt), loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    outs = (shardings(net_state), shardings(opt_state), None)
    return Program(train_step, (net_state, opt_state, tokens), kind_of_step, (0, 1) if donate else (), outs)
