"""NNX: two decoders of one kind (queries and keys normed, grouped-query attention, one table for both ends), layers one after another, fully sharded: Gemma 3 4B pruned to 10 layers (five local ones for each that sees all, norms before and after, GeGLU, 262144 words), healed by full fine-tuning; and Qwen3 1.7B pruned to 12 layers (SwiGLU, 151936 words), trained by GRPO with its reference model in the same step."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, shardings, turned
from recipe import Program, largest_dimension, mesh, placed


class Layer(nnx.Module):
    def __init__(self, width, heads, kv, size, hidden, base, window, gemma, rngs):
        lin = lambda a, b: nnx.Linear(a, b, use_bias=False, dtype=HALF, rngs=rngs)
        norm = lambda n: nnx.RMSNorm(n, dtype=HALF, rngs=rngs)
        self.q, self.k, self.v, self.o = lin(width, heads * size), lin(width, kv * size), lin(width, kv * size), lin(heads * size, width)
        self.gate, self.up, self.down = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.before_attention, self.before_mlp, self.q_norm, self.k_norm = norm(width), norm(width), norm(size), norm(size)
        if gemma:
            self.after_attention, self.after_mlp = norm(width), norm(width)
        self.kv, self.size, self.base, self.window, self.gemma = kv, size, base, window, gemma

    def __call__(self, x):
        rows, time, _ = x.shape
        h = self.before_attention(x)
        q, k, v = (f(h).reshape(rows, time, -1, self.size) for f in (self.q, self.k, self.v))
        q, k = turned(self.q_norm(q), self.base), turned(self.k_norm(k), self.base)
        q = q.reshape(rows, time, self.kv, -1, self.size)
        s = jnp.einsum("bqhgd,bkhd->bhgqk", q, k).astype(jnp.float32) * self.size**-0.5
        far = jnp.arange(time)[:, None] - jnp.arange(time)[None]
        s = jnp.where((far >= 0) & (far < self.window), s, -1e30)
        o = self.o(jnp.einsum("bhgqk,bkhd->bqhgd", jax.nn.softmax(s).astype(HALF), v).reshape(rows, time, -1))
        x = x + (self.after_attention(o) if self.gemma else o)
        h = self.before_mlp(x)
        h = self.down((nnx.gelu if self.gemma else nnx.silu)(self.gate(h)) * self.up(h))
        return x + (self.after_mlp(h) if self.gemma else h)


class Decoder(nnx.Module):
    def __init__(self, words, width, heads, kv, size, hidden, depth, gemma, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)
        near = lambda i: gemma and i % 6 != 5
        self.layers = nnx.List([Layer(width, heads, kv, size, hidden, 10000.0 if near(i) else 1e6, 512 if near(i) else 1 << 20, gemma, rngs) for i in range(depth)])
        self.norm = nnx.RMSNorm(width, dtype=HALF, rngs=rngs)
        self.gemma = gemma

    def __call__(self, tokens, remat):
        x = self.embed(tokens) * (self.embed.features**0.5 if self.gemma else 1)
        for layer in self.layers:
            x = (nnx.remat(Layer.__call__) if remat else Layer.__call__)(layer, x)
        return self.norm(x)


def made(topology, chips, **sizes):
    devices = mesh(topology, (chips,), ("fsdp",))
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: Decoder(**sizes, rngs=nnx.Rngs(0))), nnx.Param, ...)
    rest = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest)
    return devices, graph, rest, placed(params, largest_dimension(devices, "fsdp"))


def gemma(topology, chips, batch, length=1024, depth=10, chunks=1, remat=False):
    devices, graph, rest, params = made(topology, chips, words=262144, width=2560, heads=8, kv=4, size=256, hidden=10240, depth=depth, gemma=True)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            net = nnx.merge(graph, params, rest)
            return entropy(net(batch["tokens"], remat), net.embed.embedding[...].T, batch["labels"], chunks)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return Program(train_step, (params, opt, {"tokens": S(), "labels": S()}), kind_of_step, (0, 1), (shardings(params), shardings(opt), None))


def grpo(topology, chips, batch, length=1024, depth=12, chunks=1, remat=False):
    devices, graph, rest, params = made(topology, chips, words=151936, width=2048, heads=16, kv=8, size=128, hidden=6144, depth=depth, gemma=False)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-6, weight_decay=0.01))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    reference = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, HALF, sharding=a.sharding), params)

    def likelihoods(params, batch):
        """Of every token of the answers, [rows, time]."""
        net = nnx.merge(graph, params, rest)
        x, head = net(batch["tokens"], remat), net.embed.embedding[...].T.astype(HALF)

        def piece(x, labels):
            return -optax.softmax_cross_entropy_with_integer_labels((x @ head).astype(jnp.float32), labels)

        if chunks == 1:
            return piece(x, batch["labels"])
        parts = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
        _, out = jax.lax.scan(jax.checkpoint(lambda _, xs: (None, piece(*xs))), None, (parts(x), parts(batch["labels"])))
        return out.swapaxes(0, 1).reshape(batch["labels"].shape)

    def grpo_step(params, opt_state, reference, batch):
        kept = jax.lax.stop_gradient(likelihoods(reference, batch))

        def loss_fn(params):
            new = likelihoods(params, batch)
            ratio, gain = jnp.exp(new - batch["old_logps"]), batch["advantages"][:, None]
            policy = -jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain)
            kl = jnp.exp(kept - new) - (kept - new) - 1
            return ((policy + 0.04 * kl) * batch["mask"]).sum() / batch["mask"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=NamedSharding(devices, P("fsdp")))
    data = {"tokens": S("int32", length), "labels": S("int32", length), "mask": S("float32", length), "old_logps": S("float32", length), "advantages": S("float32")}
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(grpo_step, (params, opt, reference, data), classify, (0, 1), (shardings(params), shardings(opt), None))
