"""NNX: a GPT-NeoX with attention and MLP in parallel, layers in a Python loop; gradients summed over micro-batches in a Python loop, too."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


class Parallel(nnx.Module):
    def __init__(self, width, heads, rngs):
        lin = lambda a, b: nnx.Linear(a, b, dtype=HALF, rngs=rngs)
        self.qkv, self.dense, self.up, self.down = lin(width, 3 * width), lin(width, width), lin(width, 4 * width), lin(4 * width, width)
        self.ln1, self.ln2, self.heads = nnx.LayerNorm(width, dtype=HALF, rngs=rngs), nnx.LayerNorm(width, dtype=HALF, rngs=rngs), heads

    def __call__(self, x):
        q, k, v = jnp.split(self.qkv(self.ln1(x)).reshape(*x.shape[:2], self.heads, -1), 3, -1)
        a = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
        return x + self.dense(a) + self.down(nnx.gelu(self.up(self.ln2(x))))


class NeoX(nnx.Module):
    def __init__(self, words, width, heads, depth, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Parallel(width, heads, rngs) for _ in range(depth)])
        self.norm, self.head = nnx.LayerNorm(width, dtype=HALF, rngs=rngs), nnx.Linear(width, words, use_bias=False, dtype=HALF, rngs=rngs)

    def __call__(self, tokens, remat):
        x = self.embed(tokens)
        for i, layer in enumerate(self.layers):
            x = nnx.remat(lambda layer, x: layer(x))(layer, x) if i < remat else layer(x)
        return self.head(self.norm(x))


def neox(topology, chips, batch, micro=2, length=2048, words=50432, width=2048, heads=16, depth=8, remat=0, zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    graph, params = nnx.split(nnx.eval_shape(lambda: NeoX(words, width, heads, depth, nnx.Rngs(0))), nnx.Param)
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-4, b2=0.95))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data", 1 << 16) if zero else whole)

    def loss_fn(params, tokens):
        logits = nnx.merge(graph, params)(tokens, remat)[:, :-1].astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def train_step(params, opt_state, tokens):
        total, grads = 0.0, None
        for part in jnp.split(tokens, micro):
            part = jax.lax.with_sharding_constraint(part, split)
            loss, new = jax.value_and_grad(loss_fn)(params, part)
            total, grads = total + loss, new if grads is None else jax.tree.map(jnp.add, grads, new)
        grads = jax.tree.map(lambda g: g / micro, grads)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, total / micro

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
