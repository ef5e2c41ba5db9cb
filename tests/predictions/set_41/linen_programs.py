"""Linen: a decoder like Qwen 2.5's (152064 words, grouped-query attention, biases for queries, keys and values), its layers in nn.scan, weights named by their dimensions with nn.with_partitioning; 8 ways fully sharded times 2 ways tensor parallel; gradients summed over micro-batches in a lax.scan."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, shardings, training_step, turned
from recipe import Program, mesh, placed


def linear(size, names, name, bias=False):
    return nn.Dense(size, use_bias=bias, dtype=HALF, kernel_init=nn.with_partitioning(nn.initializers.normal(0.02), names), bias_init=nn.with_partitioning(nn.initializers.zeros, names[1:]), name=name)


class Layer(nn.Module):
    heads: int
    kv: int
    size: int
    hidden: int

    @nn.compact
    def __call__(self, x, _):
        rows, time, width = x.shape
        cut = lambda a, *spec: jax.lax.with_sharding_constraint(a, P("fsdp", None, *spec))
        norm = lambda name: nn.RMSNorm(epsilon=1e-6, dtype=HALF, name=name)
        h = norm("norm_attention")(x)
        part = lambda n, name: cut(linear(n * self.size, ("fsdp", "tensor"), name, True)(h).reshape(rows, time, n, self.size), "tensor")
        q, k, v = turned(part(self.heads, "query"), 1e6), turned(part(self.kv, "key"), 1e6), part(self.kv, "value")
        q = q.reshape(rows, time, self.kv, -1, self.size)
        s = jnp.einsum("bqhgd,bkhd->bhgqk", q, k).astype(jnp.float32) * self.size**-0.5
        p = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((time, time), bool)), s, -1e30)).astype(HALF)
        o = jnp.einsum("bhgqk,bkhd->bqhgd", p, v).reshape(rows, time, -1)
        x = cut(x + linear(width, ("tensor", "fsdp"), "out")(o))
        h = norm("norm_mlp")(x)
        gate, up = (cut(linear(self.hidden, ("fsdp", "tensor"), n)(h), "tensor") for n in ("gate", "up"))
        return cut(x + linear(width, ("tensor", "fsdp"), "down")(nn.silu(gate) * up)), None


class Decoder(nn.Module):
    words: int
    width: int
    heads: int
    kv: int
    size: int
    hidden: int
    depth: int
    remat: bool

    @nn.compact
    def __call__(self, tokens):
        table = self.param("embed", nn.with_partitioning(nn.initializers.normal(0.02), ("tensor", "fsdp")), (self.words, self.width))
        head = self.param("head", nn.with_partitioning(nn.initializers.normal(0.02), ("fsdp", "tensor")), (self.width, self.words))
        x = jax.lax.with_sharding_constraint(table.astype(HALF)[tokens], P("fsdp"))
        layer = nn.remat(Layer, prevent_cse=False) if self.remat else Layer
        stack = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth, metadata_params={nn.PARTITION_NAME: None})
        x, _ = stack(self.heads, self.kv, self.size, self.hidden, name="layers")(x, None)
        return nn.RMSNorm(epsilon=1e-6, dtype=HALF, name="norm")(x), head


def qwen(topology, shape, batch, length=1024, words=152064, width=2560, heads=20, kv=4, size=128, hidden=8960, depth=32, chunks=1, micro=1, remat=False, donate=True):
    devices = mesh(topology, shape, ("fsdp", "tensor"))
    jax.set_mesh(devices).__enter__()
    on = lambda *spec: NamedSharding(devices, P(*spec))
    net = Decoder(words, width, heads, kv, size, hidden, depth, remat)
    boxed = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((shape[0], 128), "int32"))["params"])
    specs = nn.get_partition_spec(boxed)
    params = jax.tree.map(lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on(*s)), jax.eval_shape(nn.meta.unbox, boxed), specs)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, on())

    def loss_fn(params, tokens):
        x, head = net.apply({"params": params}, tokens)
        return entropy(x, head, jnp.roll(tokens, -1, 1), chunks)

    def accumulated(params, tokens):
        parts = tokens.reshape(shape[0], micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
        parts = jax.lax.with_sharding_constraint(parts, on(None, "fsdp"))

        def one(total, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, total, grads), loss

        grads, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
        return losses.mean(), grads

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("fsdp"))
    step = training_step(jax.value_and_grad(loss_fn) if micro == 1 else accumulated, transform)
    return Program(step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
