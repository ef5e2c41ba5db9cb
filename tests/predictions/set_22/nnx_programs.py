"""Flax NNX: EnCodec (SEANet with LSTMs, residual vector quantisation) against a discriminator of spectrograms, both updated in one step."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh, placed


class ResUnit(nnx.Module):
    def __init__(self, width, dilation, dtype, rngs):
        self.a = nnx.Conv(width, width // 2, (3,), kernel_dilation=(dilation,), padding="CAUSAL", dtype=dtype, rngs=rngs)
        self.b = nnx.Conv(width // 2, width, (1,), dtype=dtype, rngs=rngs)
        self.skip = nnx.Conv(width, width, (1,), dtype=dtype, rngs=rngs)

    def __call__(self, x):
        return self.skip(x) + self.b(nnx.elu(self.a(nnx.elu(x))))


class LSTMs(nnx.Module):
    def __init__(self, width, dtype, rngs):
        self.layers = nnx.List([nnx.RNN(nnx.OptimizedLSTMCell(width, width, dtype=dtype, rngs=rngs)) for _ in range(2)])

    def __call__(self, x):
        y = x
        for layer in self.layers:
            y = layer(y)
        return x + y


class Encoder(nnx.Module):
    def __init__(self, base, strides, code, dtype, rngs):
        self.stem = nnx.Conv(1, base, (7,), padding="CAUSAL", dtype=dtype, rngs=rngs)
        self.units, self.downs = nnx.List([]), nnx.List([])
        for i, s in enumerate(strides):
            w = base * 2**i
            self.units.append(ResUnit(w, 1, dtype, rngs))
            self.downs.append(nnx.Conv(w, 2 * w, (2 * s,), strides=(s,), padding="CAUSAL", dtype=dtype, rngs=rngs))
        self.lstm = LSTMs(base * 2 ** len(strides), dtype, rngs)
        self.out = nnx.Conv(base * 2 ** len(strides), code, (7,), padding="CAUSAL", dtype=dtype, rngs=rngs)

    def __call__(self, x, remat):
        x = self.stem(x)
        for unit, down in zip(self.units, self.downs):
            stage = lambda u, d, x: d(nnx.elu(u(x)))
            x = (nnx.remat(stage) if remat else stage)(unit, down, x)
        return self.out(nnx.elu(self.lstm(x)))


class Decoder(nnx.Module):
    def __init__(self, base, strides, code, dtype, rngs):
        top = base * 2 ** len(strides)
        self.stem = nnx.Conv(code, top, (7,), padding="CAUSAL", dtype=dtype, rngs=rngs)
        self.lstm = LSTMs(top, dtype, rngs)
        self.ups, self.units = nnx.List([]), nnx.List([])
        for i, s in enumerate(reversed(strides)):
            w = top // 2**i
            self.ups.append(nnx.ConvTranspose(w, w // 2, (2 * s,), strides=(s,), dtype=dtype, rngs=rngs))
            self.units.append(ResUnit(w // 2, 1, dtype, rngs))
        self.out = nnx.Conv(base, 1, (7,), padding="CAUSAL", dtype=dtype, rngs=rngs)

    def __call__(self, x, remat):
        x = self.lstm(self.stem(x))
        for up, unit in zip(self.ups, self.units):
            stage = lambda p, u, x: u(p(nnx.elu(x)))
            x = (nnx.remat(stage) if remat else stage)(up, unit, x)
        return self.out(nnx.elu(x))


class Quantizer(nnx.Module):
    def __init__(self, books, size, code, rngs):
        self.codebooks = nnx.Param(jax.random.normal(rngs.params(), (books, size, code)))

    def __call__(self, z):
        def one(left, book):
            d = (left**2).sum(-1, keepdims=True) - 2 * left @ book.T + (book**2).sum(-1)
            q = book[d.argmin(-1)]
            return left - jax.lax.stop_gradient(q), (q, left)

        _, (qs, lefts) = jax.lax.scan(one, z.astype(jnp.float32), self.codebooks.value)
        commit = ((lefts - jax.lax.stop_gradient(qs)) ** 2).mean() + ((jax.lax.stop_gradient(lefts) - qs) ** 2).mean()
        q = qs.sum(0)
        return z + jax.lax.stop_gradient(q - z), commit


class Codec(nnx.Module):
    def __init__(self, base, strides, code, dtype, rngs):
        self.encoder = Encoder(base, strides, code, dtype, rngs)
        self.quantizer = Quantizer(8, 1024, code, rngs)
        self.decoder = Decoder(base, strides, code, dtype, rngs)

    def __call__(self, wave, remat):
        z = self.encoder(wave, remat)
        q, commit = self.quantizer(z)
        return self.decoder(q.astype(wave.dtype), remat).astype(jnp.float32), commit


def spectrum(wave, n):
    """Magnitudes and parts of a windowed transform by frames, as one convolution would do it."""
    hop = n // 4
    t = wave.shape[1]
    frames = 1 + (t - n) // hop
    index = jnp.arange(frames)[:, None] * hop + jnp.arange(n)
    cut = wave[:, index, 0] * jnp.hanning(n)
    f = jnp.fft.rfft(cut)
    return jnp.stack([f.real, f.imag], -1)


class SpectrumJudge(nnx.Module):
    def __init__(self, n, width, dtype, rngs):
        self.n = n
        conv = lambda i, o, k, s: nnx.Conv(i, o, k, strides=s, dtype=dtype, rngs=rngs)
        self.convs = nnx.List([conv(2, width, (3, 9), (1, 1)), conv(width, width, (3, 9), (1, 2)), conv(width, width, (3, 9), (1, 2)), conv(width, width, (3, 9), (1, 2)), conv(width, width, (3, 3), (1, 1))])
        self.last = conv(width, 1, (3, 3), (1, 1))
        self.dtype = dtype

    def __call__(self, wave):
        x, kept = spectrum(wave, self.n).astype(self.dtype), []
        for conv in self.convs:
            x = nnx.leaky_relu(conv(x), 0.2)
            kept.append(x)
        return self.last(x).astype(jnp.float32), kept


class Judges(nnx.Module):
    def __init__(self, width, dtype, rngs):
        self.each = nnx.List([SpectrumJudge(n, width, dtype, rngs) for n in (2048, 1024, 512, 256, 128)])

    def __call__(self, wave):
        return [judge(wave) for judge in self.each]


def kind(path):
    return "input" if path[:3] == "[4]" else "opt" if path[:3] in ("[1]", "[3]") else "other" if "rng" in path.lower() else "weight"


def encodec(topology, chips, batch, samples=24000, base=32, strides=(2, 4, 5, 8), code=128, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    dtype = HALF if half else jnp.float32
    gen = nnx.eval_shape(lambda: Codec(base, strides, code, dtype, nnx.Rngs(0)))
    dis = nnx.eval_shape(lambda: Judges(32, dtype, nnx.Rngs(1)))
    adam = optax.adam(3e-4, b1=0.5, b2=0.9)
    gopt = nnx.eval_shape(lambda n: nnx.Optimizer(n, adam, wrt=nnx.Param), gen)
    dopt = nnx.eval_shape(lambda n: nnx.Optimizer(n, adam, wrt=nnx.Param), dis)
    split_all = [nnx.split(m) for m in (gen, gopt, dis, dopt)]
    graphs, states = [g for g, _ in split_all], [placed(s, whole) for _, s in split_all]

    def gan_step(gen, gen_opt, dis, dis_opt, wave):
        gen, gopt, dis, dopt = [nnx.merge(g, s) for g, s in zip(graphs, (gen, gen_opt, dis, dis_opt))]

        def gen_loss(gen, dis):
            fake, commit = gen(wave.astype(dtype), remat)
            fake = fake[:, : wave.shape[1]]
            time_loss = jnp.abs(fake - wave).mean()
            freq = sum(jnp.abs(jnp.log1p(jnp.abs(spectrum(fake, n))) - jnp.log1p(jnp.abs(spectrum(wave, n)))).mean() for n in (64, 256, 1024))
            judged, real = dis(fake), dis(wave)
            adv = sum(nnx.relu(1 - s).mean() for s, _ in judged)
            feat = sum(jnp.abs(a.astype(jnp.float32) - jax.lax.stop_gradient(b).astype(jnp.float32)).mean() for (_, xs), (_, ys) in zip(judged, real) for a, b in zip(xs, ys))
            return time_loss + freq + 3 * adv + 3 * feat + commit, fake

        (loss, fake), grads = nnx.value_and_grad(gen_loss, has_aux=True)(gen, dis)
        gopt.update(gen, grads)

        def dis_loss(dis):
            return sum(nnx.relu(1 - s).mean() for s, _ in dis(wave)) + sum(nnx.relu(1 + s).mean() for s, _ in dis(jax.lax.stop_gradient(fake)))

        dloss, dgrads = nnx.value_and_grad(dis_loss)(dis)
        dopt.update(dis, dgrads)
        return *[nnx.state(m) for m in (gen, gopt, dis, dopt)], loss, dloss

    wave = jax.ShapeDtypeStruct((batch, samples, 1), "float32", sharding=split)
    return Program(gan_step, (*states, wave), kind, (0, 1, 2, 3) if donate else ())
