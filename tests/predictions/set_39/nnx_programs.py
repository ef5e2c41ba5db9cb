"""NNX: a decoder like Granite 3 2B (grouped-query attention, one table for both ends), 32 layers made by nnx.vmap and scanned, trained by Lion; fully sharded over 8 devices; gradients summed over micro-batches in a lax.scan."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, gradients, kind_of_step, shardings, training_step, turned
from recipe import Program, largest_dimension, mesh, placed


class Block(nnx.Module):
    def __init__(self, width, heads, kv, hidden, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        self.size = width // heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = lin(width, width), lin(width, kv * self.size), lin(width, kv * self.size), lin(width, width)
        self.gate_proj, self.up_proj, self.down_proj = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.norm1, self.norm2 = (nnx.RMSNorm(width, dtype=HALF, rngs=rngs) for _ in "12")

    def __call__(self, x):
        rows, time, width = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).reshape(rows, time, -1, self.size) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k = turned(q, 1e4), turned(k, 1e4)
        q = q.reshape(rows, time, k.shape[2], -1, self.size)
        s = jnp.einsum("bqhgd,bkhd->bhgqk", q, k).astype(jnp.float32) * self.size**-0.5
        p = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((time, time), bool)), s, -1e30)).astype(HALF)
        x = x + 0.22 * self.o_proj(jnp.einsum("bhgqk,bkhd->bqhgd", p, v).reshape(x.shape))
        h = self.norm2(x)
        return x + 0.22 * self.down_proj(nnx.silu(self.gate_proj(h)) * self.up_proj(h))


class Granite(nnx.Module):
    def __init__(self, words, width, heads, kv, hidden, depth, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)
        make = nnx.vmap(lambda rngs: Block(width, heads, kv, hidden, rngs), in_axes=0, out_axes=0)
        self.layers = make(rngs.fork(split=depth))
        self.norm = nnx.RMSNorm(width, dtype=HALF, rngs=rngs)

    def __call__(self, tokens, remat, split):
        x = jax.lax.with_sharding_constraint(12 * self.embed(tokens), split)
        graph, layers = nnx.split(self.layers)

        def layer(x, w):
            return jax.lax.with_sharding_constraint(nnx.merge(graph, w)(x), split), None

        x, _ = jax.lax.scan(jax.checkpoint(layer, prevent_cse=False) if remat else layer, x, layers)
        return self.norm(x) / 8


def granite(topology, chips, batch, micro=1, length=512, words=49152, width=2048, heads=32, kv=8, hidden=8192, depth=32, kept="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: Granite(words, width, heads, kv, hidden, depth, nnx.Rngs(0))), nnx.Param, ...)
    params = placed(params, largest_dimension(devices, "fsdp", 1 << 16))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.lion(3e-5, b2=0.95, weight_decay=1.0, mu_dtype=kept))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def loss_fn(params, tokens):
        net = nnx.merge(graph, params, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest))
        return entropy(net(tokens, remat, split), net.embed.embedding[...].T, jnp.roll(tokens, -1, 1), 1)

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    step = training_step(gradients(loss_fn, devices, micro), transform)
    return Program(step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
