"""Linen: T5 1.1 base (encoder and decoder of 12 layers, relative positions in buckets, gated GELU), trained on spans left out, layers one after another, Adafactor with momentum left out as T5 has it; data parallel, whole state on every device."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


def buckets(queries, keys, both, count=32, farthest=128):
    far = jnp.arange(keys)[None] - jnp.arange(queries)[:, None]
    start = 0
    if both:
        count //= 2
        start = jnp.where(far > 0, count, 0)
        far = jnp.abs(far)
    else:
        far = jnp.maximum(-far, 0)
    exact = count // 2
    late = exact + (jnp.log(jnp.maximum(far, 1) / exact) / jnp.log(farthest / exact) * (count - exact)).astype("int32")
    return start + jnp.where(far < exact, far, jnp.minimum(late, count - 1))


def norm(name):
    return nn.RMSNorm(epsilon=1e-6, dtype=HALF, name=name)


class Attention(nn.Module):
    heads: int
    size: int

    @nn.compact
    def __call__(self, x, seen, bias):
        lin = lambda n, name: nn.Dense(n, use_bias=False, dtype=HALF, name=name)
        part = lambda a: a.reshape(*a.shape[:2], self.heads, self.size)
        q, k, v = (part(lin(self.heads * self.size, n)(a)) for n, a in (("q", x), ("k", seen), ("v", seen)))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32)
        s = s if bias is None else s + bias
        o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(HALF), v)
        return lin(x.shape[-1], "o")(o.reshape(*x.shape[:2], -1))


class Layer(nn.Module):
    heads: int
    size: int
    hidden: int
    decoder: bool

    @nn.compact
    def __call__(self, x, bias, memory):
        lin = lambda n, name: nn.Dense(n, use_bias=False, dtype=HALF, name=name)
        h = norm("self_norm")(x)
        x = x + Attention(self.heads, self.size, name="self_attention")(h, h, bias)
        if self.decoder:
            x = x + Attention(self.heads, self.size, name="cross_attention")(norm("cross_norm")(x), memory, None)
        h = norm("mlp_norm")(x)
        return x + lin(x.shape[-1], "wo")(nn.gelu(lin(self.hidden, "wi_0")(h)) * lin(self.hidden, "wi_1")(h))


class T5(nn.Module):
    words: int
    width: int
    heads: int
    size: int
    hidden: int
    depth: int
    remat: bool

    @nn.compact
    def __call__(self, source, target):
        layer = nn.remat(Layer) if self.remat else Layer
        embed = nn.Embed(self.words, self.width, dtype=HALF, name="embed")

        def stack(x, name, memory):
            decoder, time = memory is not None, x.shape[1]
            table = self.param(f"{name}_bias", nn.initializers.normal(0.02), (32, self.heads))
            bias = table[buckets(time, time, not decoder)].transpose(2, 0, 1)[None]
            if decoder:
                bias = jnp.where(jnp.tril(jnp.ones((time, time), bool)), bias, -1e9)
            for i in range(self.depth):
                x = layer(self.heads, self.size, self.hidden, decoder, name=f"{name}_layer_{i}")(x, bias, memory)
            return norm(f"{name}_norm")(x)

        memory = stack(embed(source), "encoder", None)
        x = stack(embed(target), "decoder", memory)
        return nn.Dense(self.words, use_bias=False, dtype=HALF, name="head")(x).astype(jnp.float32)


def t5(topology, chips, batch, source=512, target=128, words=32128, width=768, heads=12, size=64, hidden=2048, depth=12, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = T5(words, width, heads, size, hidden, depth, remat)
    params = placed(jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, source), "int32"), jnp.zeros((1, target), "int32"))["params"]), whole)
    transform = optax.adafactor(1e-2)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        before = jnp.pad(data["target"][:, :-1], ((0, 0), (1, 0)))
        logits = net.apply({"params": params}, data["source"], before)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, data["target"])
        return (losses + 1e-4 * jax.nn.logsumexp(logits, -1) ** 2).mean()

    S = lambda n: jax.ShapeDtypeStruct((batch, n), "int32", sharding=split)
    data = {"source": S(source), "target": S(target)}
    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
