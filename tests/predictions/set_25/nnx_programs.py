"""NNX: a small Mixtral, experts by capacity, layers in a Python loop, fully sharded over the data axis."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_nnx, shardings
from recipe import Program, largest_dimension, mesh, placed


class Experts(nnx.Module):
    def __init__(self, width, hidden, experts, rngs):
        normal = nnx.initializers.normal(0.02)
        self.router = nnx.Linear(width, experts, use_bias=False, dtype=jnp.float32, rngs=rngs)
        self.w1, self.w3 = (nnx.Param(normal(rngs.params(), (experts, width, hidden))) for _ in range(2))
        self.w2 = nnx.Param(normal(rngs.params(), (experts, hidden, width)))
        self.experts = experts

    def __call__(self, x):
        b, t, d = x.shape
        capacity = 2 * t * 5 // (4 * self.experts)
        gates, chosen = jax.lax.top_k(jax.nn.softmax(self.router(x.astype(jnp.float32))), 2)
        gates = gates / gates.sum(-1, keepdims=True)
        hot = jax.nn.one_hot(chosen, self.experts, dtype=jnp.int32)  # b t 2 e
        place = (jnp.cumsum(hot.reshape(b, 2 * t, self.experts), 1).reshape(hot.shape) - 1)
        slot = jax.nn.one_hot((place * hot).sum(-1), capacity, dtype=HALF)  # b t 2 c
        combine = jnp.einsum("btk,btke,btkc->btec", gates.astype(HALF), hot.astype(HALF), slot)
        rows = jnp.einsum("btec,btd->becd", (combine > 0).astype(HALF), x)
        w1, w2, w3 = (w[...].astype(HALF) for w in (self.w1, self.w2, self.w3))
        h = jax.nn.silu(jnp.einsum("becd,edf->becf", rows, w1)) * jnp.einsum("becd,edf->becf", rows, w3)
        return jnp.einsum("btec,becd->btd", combine, jnp.einsum("becf,efd->becd", h, w2))


class Layer(nnx.Module):
    def __init__(self, width, hidden, heads, kv, experts, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        self.q, self.k, self.v, self.o = lin(width, width), lin(width, width // heads * kv), lin(width, width // heads * kv), lin(width, width)
        self.norm1, self.norm2 = nnx.RMSNorm(width, dtype=HALF, rngs=rngs), nnx.RMSNorm(width, dtype=HALF, rngs=rngs)
        self.moe = Experts(width, hidden, experts, rngs)
        self.size = width // heads

    def __call__(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).reshape(*h.shape[:2], -1, self.size) for f in (self.q, self.k, self.v))
        x = x + self.o(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        return x + self.moe(self.norm2(x))


class Mixtral(nnx.Module):
    def __init__(self, words, width, hidden, depth, heads, kv, experts, remat, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, hidden, heads, kv, experts, rngs) for _ in range(depth)])
        self.norm, self.head = nnx.RMSNorm(width, dtype=HALF, rngs=rngs), nnx.Linear(width, words, use_bias=False, dtype=HALF, rngs=rngs)
        self.remat = remat

    def __call__(self, tokens):
        x = self.embed(tokens)
        for i, layer in enumerate(self.layers):
            x = nnx.remat(lambda layer, x: layer(x))(layer, x) if i < self.remat else layer(x)
        return self.head(self.norm(x))


def mixtral(topology, chips, batch, length=2048, words=32000, width=2048, hidden=4096, depth=16, heads=16, kv=8, experts=8, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.1))

    def build():
        net = Mixtral(words, width, hidden, depth, heads, kv, experts, remat, nnx.Rngs(0))
        return net, nnx.Optimizer(net, transform, wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(build))
    state = placed(state, largest_dimension(devices, "fsdp"))

    def train_step(state, tokens):
        net, optimizer = nnx.merge(graph, state)

        def loss_fn(net):
            logits = net(tokens[:, :-1]).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(net)
        optimizer.update(net, grads)
        return nnx.state((net, optimizer)), loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=split)
    classify = lambda path: "input" if not path.startswith("[0]") else "opt" if path.startswith("[0][1]") else "weight"
    return Program(train_step, (state, tokens), classify, (0,) if donate else (), (shardings(state), None))
