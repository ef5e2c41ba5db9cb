"""Flax NNX: VQGAN's autoencoder (factor 16, 16384 codes) before its discriminator starts: pictures, codes of 16 by 16, pictures again; Adam, data parallel."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_nnx, shardings
from recipe import Program, mesh, placed


class Residual(nnx.Module):
    def __init__(self, a, b, dtype, rngs):
        conv = lambda a, b, k: nnx.Conv(a, b, (k, k), dtype=dtype, rngs=rngs)
        self.norm1, self.conv1 = nnx.GroupNorm(a, num_groups=32, dtype=dtype, rngs=rngs), conv(a, b, 3)
        self.norm2, self.conv2 = nnx.GroupNorm(b, num_groups=32, dtype=dtype, rngs=rngs), conv(b, b, 3)
        self.short = conv(a, b, 1) if a != b else None

    def __call__(self, x):
        h = self.conv1(nnx.swish(self.norm1(x)))
        h = self.conv2(nnx.swish(self.norm2(h)))
        return (x if self.short is None else self.short(x)) + h


class Attention(nnx.Module):
    def __init__(self, a, dtype, rngs):
        self.norm = nnx.GroupNorm(a, num_groups=32, dtype=dtype, rngs=rngs)
        self.attend = nnx.MultiHeadAttention(1, a, dtype=dtype, decode=False, rngs=rngs)

    def __call__(self, x):
        h = self.norm(x).reshape(x.shape[0], -1, x.shape[-1])
        return x + self.attend(h).reshape(x.shape)


class Down(nnx.Module):
    def __init__(self, a, dtype, rngs):
        self.conv = nnx.Conv(a, a, (3, 3), strides=2, dtype=dtype, rngs=rngs)

    def __call__(self, x):
        return self.conv(x)


class Up(nnx.Module):
    def __init__(self, a, dtype, rngs):
        self.conv = nnx.Conv(a, a, (3, 3), dtype=dtype, rngs=rngs)

    def __call__(self, x):
        b, h, w, c = x.shape
        return self.conv(jax.image.resize(x, (b, 2 * h, 2 * w, c), "nearest"))


class Autoencoder(nnx.Module):
    def __init__(self, base, mults, blocks, codes, size, dtype, remat, rngs):
        self.remat, self.dtype = remat, dtype
        first, last = base * mults[0], base * mults[-1]
        conv = lambda a, b, k=3: nnx.Conv(a, b, (k, k), dtype=dtype, rngs=rngs)
        layers, width = [conv(3, first)], first
        for i, m in enumerate(mults):
            for _ in range(blocks):
                layers.append(Residual(width, base * m, dtype, rngs))
                width = base * m
                if i == len(mults) - 1:
                    layers.append(Attention(width, dtype, rngs))
            if i < len(mults) - 1:
                layers.append(Down(width, dtype, rngs))
        layers += [Residual(last, last, dtype, rngs), Attention(last, dtype, rngs), Residual(last, last, dtype, rngs)]
        self.encoder = nnx.List(layers)
        self.encoder_norm, self.to_codes = nnx.GroupNorm(last, num_groups=32, dtype=dtype, rngs=rngs), conv(last, size)
        self.codebook = nnx.Embed(codes, size, rngs=rngs)
        self.of_codes = conv(size, last)
        layers, width = [Residual(last, last, dtype, rngs), Attention(last, dtype, rngs), Residual(last, last, dtype, rngs)], last
        for i, m in reversed(list(enumerate(mults))):
            for _ in range(blocks + 1):
                layers.append(Residual(width, base * m, dtype, rngs))
                width = base * m
                if i == len(mults) - 1:
                    layers.append(Attention(width, dtype, rngs))
            if i > 0:
                layers.append(Up(width, dtype, rngs))
        self.decoder = nnx.List(layers)
        self.decoder_norm, self.out = nnx.GroupNorm(first, num_groups=32, dtype=dtype, rngs=rngs), conv(first, 3)

    def run(self, layers, x):
        for layer in layers:
            x = nnx.remat(lambda layer, x: layer(x))(layer, x) if self.remat else layer(x)
        return x

    def __call__(self, pictures):
        z = self.to_codes(nnx.swish(self.encoder_norm(self.run(self.encoder, pictures.astype(self.dtype))))).astype(jnp.float32)
        table = self.codebook.embedding[...]
        flat = z.reshape(-1, z.shape[-1])
        far = (flat**2).sum(-1, keepdims=True) - 2 * flat @ table.T + (table**2).sum(-1)
        code = jnp.argmin(far, -1)
        q = self.codebook(code).reshape(z.shape)
        commit = jnp.mean((q - jax.lax.stop_gradient(z)) ** 2) + 0.25 * jnp.mean((jax.lax.stop_gradient(q) - z) ** 2)
        q = z + jax.lax.stop_gradient(q - z)
        x = self.run(self.decoder, self.of_codes(q.astype(self.dtype)))
        return self.out(nnx.swish(self.decoder_norm(x))).astype(jnp.float32), commit


def vqgan(topology, chips, batch, side=256, base=128, mults=(1, 1, 2, 2, 4), blocks=2, codes=16384, size=256, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def build():
        model = Autoencoder(base, mults, blocks, codes, size, jnp.dtype(compute), remat, nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adam(4.5e-6, b1=0.5, b2=0.9), wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(build))
    state = placed(state, whole)

    def train_step(state, pictures):
        model, optimizer = nnx.merge(graph, state)

        def loss_fn(model):
            seen, commit = model(pictures)
            return jnp.abs(seen - pictures).mean() + jnp.square(seen - pictures).mean() + commit

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    data = jax.ShapeDtypeStruct((batch, side, side, 3), "float32", sharding=split)
    return Program(train_step, (state, data), kind_of_nnx, (0,) if donate else (), (shardings(state), None))
