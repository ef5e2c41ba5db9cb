"""NNX: a model like Cohere's Command (attention and MLP side by side, 256000 words, one table for both ends), tensor parallel in one axis and data parallel in the other; layers in a list."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, following, kind_of_step, shardings, turned
from recipe import Program, mesh, placed


class Layer(nnx.Module):
    def __init__(self, width, heads, hidden, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = lin(width, width), lin(width, width), lin(width, width), lin(width, width)
        self.gate_proj, self.up_proj, self.down_proj = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.norm, self.heads = nnx.LayerNorm(width, use_bias=False, dtype=HALF, rngs=rngs), heads

    def __call__(self, x, by_heads):
        h = self.norm(x)
        q, k, v = (jax.lax.with_sharding_constraint(f(h).reshape(*h.shape[:2], self.heads, -1), by_heads) for f in (self.q_proj, self.k_proj, self.v_proj))
        seen = self.o_proj(causal(turned(q, 5e4), turned(k, 5e4), v).reshape(x.shape))
        return x + seen + self.down_proj(nnx.silu(self.gate_proj(h)) * self.up_proj(h))


class Command(nnx.Module):
    def __init__(self, words, width, heads, hidden, depth, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Layer(width, heads, hidden, rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, use_bias=False, dtype=HALF, rngs=rngs)

    def __call__(self, tokens, remat, split, by_heads):
        x = jax.lax.with_sharding_constraint(self.embed(tokens), split)
        for number, layer in enumerate(self.layers):
            call = lambda layer, x: layer(x, by_heads)
            x = jax.lax.with_sharding_constraint((nnx.remat(call) if number < remat else call)(layer, x), split)
        return self.norm(x)


def command(topology, shape, batch, length=1024, words=256000, width=2560, heads=20, hidden=10240, depth=24, remat=0, chunks=1, zero=False, donate=True):
    devices = mesh(topology, shape, ("data", "tensor"))
    where = lambda *spec: NamedSharding(devices, P(*spec))
    split, by_heads = where("data"), where("data", None, "tensor")
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: Command(words, width, heads, hidden, depth, nnx.Rngs(0))), nnx.Param, ...)

    def spec(path, over):
        if "norm" in path:
            return ()
        rows = any(n in path for n in ("embed", "o_proj", "down_proj"))
        return ("tensor", over) if rows else (over, "tensor")

    params = placed(params, lambda path, leaf: where(*spec(path, None)))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.95))
    opt = following(jax.eval_shape(transform.init, params), params, where())
    if zero:
        opt = placed(opt, lambda path, leaf: where(*spec(path, "data")) if leaf.ndim == 2 else where())

    def train_step(params, opt_state, tokens):
        def loss_fn(params):
            net = nnx.merge(graph, params, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest))
            return entropy(net(tokens, remat, split, by_heads), net.embed.embedding[...].T, jnp.roll(tokens, -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
