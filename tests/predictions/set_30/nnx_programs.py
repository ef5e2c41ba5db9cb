"""NNX: a decoder of grouped experts without dropping (tokens sorted by expert, jax.lax.ragged_dot in a shard_map), layers under nnx.scan; fully sharded."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def grouped(x, router, gate, up, down, top):
    """The experts of a device's tokens [n, width]; their weights whole."""
    p = jax.nn.softmax((x @ router).astype(jnp.float32))
    share, ids = jax.lax.top_k(p, top)
    flat = ids.reshape(-1)
    order = jnp.argsort(flat)
    rows, sizes = x[order // top], jnp.bincount(flat, length=router.shape[1]).astype(jnp.int32)
    h = jax.nn.silu(jax.lax.ragged_dot(rows, gate, sizes)) * jax.lax.ragged_dot(rows, up, sizes)
    y = jax.lax.ragged_dot(h, down, sizes)[jnp.argsort(order)].reshape(*ids.shape, -1)
    return (y * (share / share.sum(-1, keepdims=True)).astype(HALF)[..., None]).sum(1)


class Layer(nnx.Module):
    def __init__(self, width, heads, experts, hidden, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        self.qkv, self.out, self.heads = lin(width, 3 * width), lin(width, width), heads
        self.norm1, self.norm2 = nnx.RMSNorm(width, dtype=HALF, rngs=rngs), nnx.RMSNorm(width, dtype=HALF, rngs=rngs)
        W = lambda *s: nnx.Param(jax.random.normal(rngs.params(), s) * 0.02)
        self.router, self.gate, self.up, self.down = W(width, experts), W(experts, width, hidden), W(experts, width, hidden), W(experts, hidden, width)

    def __call__(self, x, devices, top):
        q, k, v = (a.reshape(*a.shape[:2], self.heads, -1) for a in jnp.split(self.qkv(self.norm1(x)), 3, -1))
        x = x + self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        weights = [w[...].astype(HALF) for w in (self.router, self.gate, self.up, self.down)]
        local = lambda h, *w: grouped(h.reshape(-1, h.shape[-1]), *w, top).reshape(h.shape)
        return x + jax.shard_map(local, mesh=devices, in_specs=(P("fsdp"), P(), P(), P(), P()), out_specs=P("fsdp"), check_vma=False)(self.norm2(x), *weights)


class Decoder(nnx.Module):
    def __init__(self, words, width, heads, experts, hidden, depth, rngs):
        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def make(rngs):
            return Layer(width, heads, experts, hidden, rngs)

        self.embed, self.layers = nnx.Embed(words, width, dtype=HALF, rngs=rngs), make(rngs)
        self.norm, self.head = nnx.RMSNorm(width, dtype=HALF, rngs=rngs), nnx.Param(jax.random.normal(rngs.params(), (width, words)))

    def __call__(self, tokens, devices, top, remat):
        call = lambda layer, x: layer(x, devices, top)
        body = nnx.remat(call, prevent_cse=False) if remat else call
        run = nnx.scan(body, in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        x = jax.lax.with_sharding_constraint(self.embed(tokens), NamedSharding(devices, P("fsdp")))
        return self.norm(run(self.layers, x))


def experts(topology, chips, batch, length=2048, words=50304, width=1024, heads=16, experts=32, top=4, hidden=1536, depth=12, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: Decoder(words, width, heads, experts, hidden, depth, nnx.Rngs(0))), nnx.Param, ...)
    params = placed(params, largest_dimension(devices, "fsdp", 1 << 17))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def train_step(params, opt_state, tokens):
        def loss_fn(params):
            net = nnx.merge(graph, params, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest))
            return entropy(net(tokens, devices, top, remat), net.head[...], jnp.roll(tokens, -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
