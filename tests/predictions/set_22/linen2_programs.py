"""Flax Linen: PaLM's layers (attention and MLP side by side, one key-value head) by nn.scan, on a mesh of data and model."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings
from recipe import Program, mesh, placed


class ParallelLayer(nn.Module):
    heads: int
    size: int
    hidden: int
    blocks: int

    @nn.compact
    def __call__(self, x, _):
        b, t, width = x.shape
        h = nn.LayerNorm(use_bias=False, dtype=HALF, name="ln")(x)
        dense = lambda n, name: nn.DenseGeneral(n, use_bias=False, dtype=HALF, name=name)
        q, kv = dense((self.heads, self.size), "q")(h), dense((2, self.size), "kv")(h)
        k, v = kv[:, :, 0], kv[:, :, 1]

        def attend(q, start):
            s = jnp.einsum("bqhd,bkd->bhqk", q, k).astype(jnp.float32) * self.size**-0.5
            s = jnp.where(start + jnp.arange(q.shape[1])[:, None] >= jnp.arange(t), s, -1e30)
            return jnp.einsum("bhqk,bkd->bqhd", jax.nn.softmax(s).astype(HALF), v)

        if self.blocks == 1:
            o = attend(q, 0)
        else:
            n = t // self.blocks
            parts = q.reshape(b, self.blocks, n, self.heads, self.size).swapaxes(0, 1)
            o = jax.lax.map(jax.checkpoint(lambda a: attend(*a)), (parts, jnp.arange(self.blocks) * n)).swapaxes(0, 1).reshape(q.shape)
        gate = dense((2, self.hidden), "wi")(h)
        y = nn.silu(gate[:, :, 0]) * gate[:, :, 1]
        return x + nn.DenseGeneral(width, (-2, -1), use_bias=False, dtype=HALF, name="o")(o) + dense(width, "wo")(y), None


class PaLM(nn.Module):
    depth: int
    width: int
    heads: int
    size: int
    hidden: int
    vocabulary: int
    remat: bool
    blocks: int

    @nn.compact
    def __call__(self, tokens):
        table = self.param("embedding", nn.initializers.normal(1.0), (self.vocabulary, self.width))
        x = table.astype(HALF)[tokens]
        layer = nn.remat(ParallelLayer, prevent_cse=False) if self.remat else ParallelLayer
        x, _ = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)(self.heads, self.size, self.hidden, self.blocks, name="layers")(x, None)
        x = nn.LayerNorm(use_bias=False, dtype=HALF, name="final")(x)
        return (x @ table.T.astype(HALF)).astype(jnp.float32)


def palm(topology, shape, batch, length=2048, depth=16, width=4096, heads=16, size=256, hidden=16384, vocabulary=256000, remat=False, blocks=1, micro=1, donate=True):
    devices = mesh(topology, shape, ("data", "model"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    net = PaLM(depth, width, heads, size, hidden, vocabulary, remat, blocks)
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, length), "int32"))["params"]
    specs = {"['embedding']": ("model", "data"), "['q']": (None, "data", "model"), "['kv']": (None, "data"), "['wi']": (None, "data", None, "model"), "['o']": (None, "model", None, "data"), "['wo']": (None, "model", "data")}
    params = placed(params, lambda path, leaf: on(*next((s for n, s in specs.items() if n in path), ())))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adafactor(1e-2, momentum=0.9, min_dim_size_to_factor=128))
    opt = following(jax.eval_shape(transform.init, params), params, on())

    def loss_fn(params, tokens):
        logits = jax.lax.with_sharding_constraint(net.apply({"params": params}, tokens), on("data", None, "model"))
        lse = jax.nn.logsumexp(logits, -1)
        labels = jnp.roll(tokens, -1, 1)
        picked = (logits * jax.nn.one_hot(labels, vocabulary)).sum(-1)
        return (lse - picked + 1e-4 * lse**2).mean()

    def pretrain_step(params, opt_state, tokens):
        if micro == 1:
            loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        else:
            parts = tokens.reshape(shape[0], micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
            parts = jax.lax.with_sharding_constraint(parts, on(None, "data"))

            def one(total, part):
                loss, g = jax.value_and_grad(loss_fn)(params, part)
                return jax.tree.map(jnp.add, total, g), loss

            grads, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
            grads, loss = jax.tree.map(lambda g: g / micro, grads), losses.mean()
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    return Program(pretrain_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
