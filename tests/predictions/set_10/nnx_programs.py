"""Flax NNX: an MLP-Mixer, an encoder-decoder, a decoding step with a cache."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_nnx
from recipe import Program, largest_dimension, mesh, placed


def training(create, transform, loss, data, devices, donate, sharded=False):
    """A training step of an NNX model, as its guide writes it: state in, state out."""
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def both():
        model = create()
        return nnx.Dict(model=model, optimizer=nnx.Optimizer(model, transform, wrt=nnx.Param))

    graph, state = nnx.split(nnx.eval_shape(both))

    def train_step(state, *batch):
        parts = nnx.merge(graph, state)
        value, gradients = nnx.value_and_grad(loss)(parts.model, *batch)
        parts.optimizer.update(parts.model, gradients)
        return nnx.state(parts), value

    where = largest_dimension(devices, "data") if sharded else whole
    args = (placed(state, where), *[placed(x, split) for x in data])
    return Program(train_step, args, kind_of_nnx, (0,) if donate else ())


class MixerBlock(nnx.Module):
    def __init__(self, tokens, width, rngs):
        self.norm1 = nnx.LayerNorm(width, rngs=rngs, dtype=jnp.bfloat16)
        self.norm2 = nnx.LayerNorm(width, rngs=rngs, dtype=jnp.bfloat16)
        self.token_in = nnx.Linear(tokens, 2 * tokens, rngs=rngs, dtype=jnp.bfloat16)
        self.token_out = nnx.Linear(2 * tokens, tokens, rngs=rngs, dtype=jnp.bfloat16)
        self.channel_in = nnx.Linear(width, 4 * width, rngs=rngs, dtype=jnp.bfloat16)
        self.channel_out = nnx.Linear(4 * width, width, rngs=rngs, dtype=jnp.bfloat16)

    def __call__(self, x):
        y = self.norm1(x).swapaxes(1, 2)
        x = x + self.token_out(nnx.gelu(self.token_in(y))).swapaxes(1, 2)
        return x + self.channel_out(nnx.gelu(self.channel_in(self.norm2(x))))


class Mixer(nnx.Module):
    def __init__(self, depth, width, rngs, remat):
        self.patch = nnx.Conv(3, width, (16, 16), (16, 16), rngs=rngs, dtype=jnp.bfloat16)
        self.blocks = nnx.List([MixerBlock(256, width, rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 1000, rngs=rngs)
        self.remat = remat

    def __call__(self, images):
        x = self.patch(images.astype(jnp.bfloat16))
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        for block in self.blocks:
            x = nnx.remat(MixerBlock.__call__)(block, x) if self.remat else block(x)
        return self.head(self.norm(x).mean(1))


def mixer(topology, chips, batch, depth, width, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))

    def loss(model, images, labels):
        return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

    data = [jax.ShapeDtypeStruct((batch, 256, 256, 3), jnp.float32), jax.ShapeDtypeStruct((batch,), jnp.int32)]
    create = lambda: Mixer(depth, width, nnx.Rngs(0), remat)
    return training(create, optax.lion(1e-4), loss, data, devices, donate)


class Feed(nnx.Module):
    def __init__(self, width, rngs):
        self.up = nnx.Linear(width, 4 * width, rngs=rngs, dtype=jnp.bfloat16)
        self.down = nnx.Linear(4 * width, width, rngs=rngs, dtype=jnp.bfloat16)

    def __call__(self, x):
        return self.down(nnx.relu(self.up(x)))


def attention(heads, width, rngs):
    return nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs, dtype=jnp.bfloat16)


class EncoderLayer(nnx.Module):
    def __init__(self, heads, width, rngs):
        self.attention = attention(heads, width, rngs)
        self.feed = Feed(width, rngs)
        self.norm1 = nnx.RMSNorm(width, rngs=rngs, dtype=jnp.bfloat16)
        self.norm2 = nnx.RMSNorm(width, rngs=rngs, dtype=jnp.bfloat16)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class DecoderLayer(nnx.Module):
    def __init__(self, heads, width, rngs):
        self.attention = attention(heads, width, rngs)
        self.cross = attention(heads, width, rngs)
        self.feed = Feed(width, rngs)
        self.norm1 = nnx.RMSNorm(width, rngs=rngs, dtype=jnp.bfloat16)
        self.norm2 = nnx.RMSNorm(width, rngs=rngs, dtype=jnp.bfloat16)
        self.norm3 = nnx.RMSNorm(width, rngs=rngs, dtype=jnp.bfloat16)

    def __call__(self, x, memory):
        mask = nnx.make_causal_mask(x[..., 0])
        x = x + self.attention(self.norm1(x), mask=mask)
        x = x + self.cross(self.norm2(x), memory)
        return x + self.feed(self.norm3(x))


class Translator(nnx.Module):
    def __init__(self, depth, heads, width, vocabulary, rngs, remat):
        self.embed = nnx.Embed(vocabulary, width, rngs=rngs, dtype=jnp.bfloat16)
        self.encoder = nnx.List([EncoderLayer(heads, width, rngs) for _ in range(depth)])
        self.decoder = nnx.List([DecoderLayer(heads, width, rngs) for _ in range(depth)])
        self.norm = nnx.RMSNorm(width, rngs=rngs, dtype=jnp.bfloat16)
        self.remat = remat

    def hidden(self, source, target):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = nnx.remat(EncoderLayer.__call__)(layer, memory) if self.remat == "all" else layer(memory)
        x = self.embed(target)
        for layer in self.decoder:
            x = nnx.remat(DecoderLayer.__call__)(layer, x, memory) if self.remat else layer(x, memory)
        return self.norm(x)


def translator(topology, chips, batch, length, depth, heads, width, vocabulary, remat=None, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))

    def piece(model, x, labels):
        logits = model.embed.attend(x).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).sum()

    def loss(model, source, target, labels):
        x = model.hidden(source, target)
        if chunks == 1:
            return piece(model, x, labels) / labels.size
        table = model.embed.embedding[...].astype(jnp.bfloat16)

        @jax.checkpoint
        def part(total, xs):
            x, labels = xs
            logits = (x @ table.T).astype(jnp.float32)
            return total + optax.softmax_cross_entropy_with_integer_labels(logits, labels).sum(), None

        parts = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
        return jax.lax.scan(part, 0.0, (parts(x), parts(labels)))[0] / labels.size

    data = [jax.ShapeDtypeStruct((batch, length), jnp.int32)] * 3
    create = lambda: Translator(depth, heads, width, vocabulary, nnx.Rngs(0), remat)
    return training(create, optax.adamw(1e-4), loss, data, devices, donate)


class CachedLayer(nnx.Module):
    def __init__(self, heads, kv_heads, size, width, rngs):
        make = lambda n, m: nnx.Linear(n, m, use_bias=False, rngs=rngs, dtype=jnp.bfloat16, param_dtype=jnp.bfloat16)
        self.q, self.k, self.v = make(width, heads * size), make(width, kv_heads * size), make(width, kv_heads * size)
        self.o, self.up, self.down = make(heads * size, width), make(width, 4 * width), make(4 * width, width)
        self.norm = nnx.RMSNorm(width, rngs=rngs, param_dtype=jnp.bfloat16)
        self.shape = heads, kv_heads, size

    def __call__(self, x, past, at):
        heads, kv_heads, size = self.shape
        keys, values = past
        h = self.norm(x)
        new = lambda layer: layer(h).reshape(x.shape[0], 1, kv_heads, size)
        keys = jax.lax.dynamic_update_slice_in_dim(keys, new(self.k).astype(keys.dtype), at, 1)
        values = jax.lax.dynamic_update_slice_in_dim(values, new(self.v).astype(values.dtype), at, 1)
        q = self.q(h).reshape(x.shape[0], kv_heads, heads // kv_heads, size)
        scores = jnp.einsum("bkgd,btkd->bkgt", q, keys.astype(jnp.bfloat16)).astype(jnp.float32) * size**-0.5
        scores = jnp.where(jnp.arange(keys.shape[1]) <= at, scores, -1e30)
        weights = jax.nn.softmax(scores).astype(jnp.bfloat16)
        y = jnp.einsum("bkgt,btkd->bkgd", weights, values.astype(jnp.bfloat16)).reshape(x.shape[0], -1)
        x = x + self.o(y)
        return x + self.down(nnx.silu(self.up(x))), (keys, values)


class Decoder(nnx.Module):
    def __init__(self, depth, heads, kv_heads, size, width, vocabulary, rngs):
        self.embed = nnx.Embed(vocabulary, width, rngs=rngs, dtype=jnp.bfloat16, param_dtype=jnp.bfloat16)
        self.layers = nnx.List([CachedLayer(heads, kv_heads, size, width, rngs) for _ in range(depth)])

    def __call__(self, token, past, at):
        x, now = self.embed(token), []
        for layer, one in zip(self.layers, past):
            x, one = layer(x, one, at)
            now.append(one)
        return jnp.argmax(self.embed.attend(x), -1), now


def decoding(topology, chips, batch, length, depth, heads, kv_heads, size, width, vocabulary, cache="float32",
             split_cache=False, donate=False):
    devices = mesh(topology, (chips,), ("model",))
    whole, heads_split = NamedSharding(devices, P()), NamedSharding(devices, P(None, None, "model"))
    graph, state = nnx.split(nnx.eval_shape(lambda: Decoder(depth, heads, kv_heads, size, width, vocabulary, nnx.Rngs(0))))
    past = [(jax.ShapeDtypeStruct((batch, length, kv_heads, size), cache),) * 2 for _ in range(depth)]

    def decode_step(state, past, token, position):
        return nnx.merge(graph, state)(token, past, position)

    split = heads_split if split_cache else whole
    token = jax.ShapeDtypeStruct((batch,), jnp.int32)
    position = jax.ShapeDtypeStruct((), jnp.int32)
    args = (placed(state, whole), placed(past, split), placed(token, whole), placed(position, whole))
    rule = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = (whole, jax.tree.map(lambda _: split, past))
    return Program(decode_step, args, rule, (1,) if donate else (), outs)
