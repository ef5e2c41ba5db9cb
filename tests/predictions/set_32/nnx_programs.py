"""NNX: Llama 3.2 1B, layers in a list, each with its number; fully sharded; gradients summed over micro-batches in a lax.scan, no checkpoints."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, following, kind_of_step, shardings, turned
from recipe import Program, largest_dimension, mesh, placed


class Attention(nnx.Module):
    def __init__(self, width, heads, kv, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        self.size, self.group = width // heads, heads // kv
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = lin(width, width), lin(width, kv * self.size), lin(width, kv * self.size), lin(width, width)

    def __call__(self, x):
        q, k, v = (f(x).reshape(*x.shape[:2], -1, self.size) for f in (self.q_proj, self.k_proj, self.v_proj))
        k, v = jnp.repeat(turned(k, 500000.0), self.group, 2), jnp.repeat(v, self.group, 2)
        return self.o_proj(causal(turned(q, 500000.0), k, v).reshape(x.shape))


class Mlp(nnx.Module):
    def __init__(self, width, hidden, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        self.gate_proj, self.up_proj, self.down_proj = lin(width, hidden), lin(width, hidden), lin(hidden, width)

    def __call__(self, x):
        return self.down_proj(nnx.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nnx.Module):
    def __init__(self, width, heads, kv, hidden, rngs):
        self.attn, self.mlp = Attention(width, heads, kv, rngs), Mlp(width, hidden, rngs)
        self.norm1, self.norm2 = nnx.RMSNorm(width, dtype=HALF, rngs=rngs), nnx.RMSNorm(width, dtype=HALF, rngs=rngs)

    def __call__(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Llama(nnx.Module):
    def __init__(self, words, width, heads, kv, hidden, depth, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, heads, kv, hidden, rngs) for _ in range(depth)])
        self.norm = nnx.RMSNorm(width, dtype=HALF, rngs=rngs)

    def __call__(self, tokens, remat, split):
        x = self.embed(tokens)
        for number, layer in enumerate(self.layers):
            run = nnx.remat(lambda layer, x: layer(x)) if number < remat else lambda layer, x: layer(x)
            x = jax.lax.with_sharding_constraint(run(layer, x), split)
        return self.norm(x)


def llama(topology, chips, batch, micro, length=1024, words=128256, width=2048, heads=32, kv=8, hidden=8192, depth=16, remat=0, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: Llama(words, width, heads, kv, hidden, depth, nnx.Rngs(0))), nnx.Param, ...)
    params = placed(params, largest_dimension(devices, "fsdp", 1 << 16))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.95))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def train_step(params, opt_state, tokens):
        def loss_fn(params, tokens):
            net = nnx.merge(graph, params, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest))
            return entropy(net(tokens, remat, split), net.embed.embedding[...].T, jnp.roll(tokens, -1, 1), chunks)

        parts = tokens.reshape(chips, micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
        parts = jax.lax.with_sharding_constraint(parts, NamedSharding(devices, P(None, "fsdp")))

        def one(total, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, total, grads), loss

        zeros = jax.tree.map(lambda a, w: jax.lax.with_sharding_constraint(jnp.zeros_like(a), w), params, where)
        grads, losses = jax.lax.scan(one, zeros, parts)
        updates, opt_state = transform.update(jax.tree.map(lambda g: g / micro, grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, losses.mean()

    where = shardings(params)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (where, shardings(opt), None))
