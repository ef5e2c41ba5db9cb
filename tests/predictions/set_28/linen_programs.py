"""Linen: a BigGAN-like pair with two optimizers and an EMA of the generator; a Llama with three heads that each predict a further word (multi-token prediction)."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, largest_dimension, mesh, placed


def resize(x):
    return jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "nearest")


class Up(nn.Module):
    channels: int
    dtype: str

    @nn.compact
    def __call__(self, x, c):
        conv = lambda n, k, name: nn.Conv(n, (k, k), dtype=self.dtype, name=name)

        def norm(x, name):
            y = nn.GroupNorm(32, use_bias=False, use_scale=False, dtype=self.dtype, name=name)(x)
            a, b = jnp.split(nn.Dense(2 * x.shape[-1], dtype=self.dtype, name=name + "_film")(c), 2, -1)
            return nn.relu(y * (1 + a[:, None, None]) + b[:, None, None])

        h = conv(self.channels, 3, "conv1")(resize(norm(x, "norm1")))
        h = conv(self.channels, 3, "conv2")(norm(h, "norm2"))
        return h + conv(self.channels, 1, "skip")(resize(x))


class Down(nn.Module):
    channels: int
    dtype: str

    @nn.compact
    def __call__(self, x):
        conv = lambda n, k, name: nn.Conv(n, (k, k), dtype=self.dtype, name=name)
        h = conv(self.channels, 3, "conv1")(nn.relu(x))
        h = conv(self.channels, 3, "conv2")(nn.relu(h))
        pool = lambda a: nn.avg_pool(a, (2, 2), (2, 2))
        return pool(h) + pool(conv(self.channels, 1, "skip")(x))


class Generator(nn.Module):
    base: int
    dtype: str
    remat: bool

    @nn.compact
    def __call__(self, z):
        block = nn.remat(Up) if self.remat else Up
        x = nn.Dense(16 * 16 * self.base, dtype=self.dtype, name="enter")(z).reshape(-1, 4, 4, 16 * self.base)
        for i, n in enumerate((16, 8, 8, 4, 2, 1)):
            x = block(n * self.base, self.dtype, name=f"up_{i}")(x, z.astype(self.dtype))
        return jnp.tanh(nn.Conv(3, (3, 3), dtype="float32", name="leave")(nn.relu(x)))


class Discriminator(nn.Module):
    base: int
    dtype: str
    remat: bool

    @nn.compact
    def __call__(self, x):
        block = nn.remat(Down) if self.remat else Down
        for i, n in enumerate((1, 2, 4, 8, 8, 16)):
            x = block(n * self.base, self.dtype, name=f"down_{i}")(x)
        return nn.Dense(1, name="leave")(nn.relu(x).sum((1, 2)).astype(jnp.float32))


def gan(topology, chips, batch, base=96, dtype="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    G, D = Generator(base, dtype, remat), Discriminator(base, dtype, remat)

    def make():
        key = jax.random.key(0)
        g = train_state.TrainState.create(apply_fn=G.apply, params=G.init(key, jnp.zeros((1, 128)))["params"], tx=optax.adam(5e-5, b1=0.0, b2=0.999))
        d = train_state.TrainState.create(apply_fn=D.apply, params=D.init(key, jnp.zeros((1, 256, 256, 3)))["params"], tx=optax.adam(2e-4, b1=0.0, b2=0.999))
        return {"generator": g, "discriminator": d, "ema": g.params}

    state = placed(jax.eval_shape(make), whole)

    def train_step(state, images, noise):
        g, d = state["generator"], state["discriminator"]

        def d_loss(params):
            fake = jax.lax.stop_gradient(G.apply({"params": g.params}, noise))
            return nn.relu(1 - D.apply({"params": params}, images)).mean() + nn.relu(1 + D.apply({"params": params}, fake)).mean()

        loss_d, grads = jax.value_and_grad(d_loss)(d.params)
        d = d.apply_gradients(grads=grads)
        loss_g, grads = jax.value_and_grad(lambda p: -D.apply({"params": d.params}, G.apply({"params": p}, noise)).mean())(g.params)
        g = g.apply_gradients(grads=grads)
        ema = jax.tree.map(lambda e, p: 0.999 * e + 0.001 * p, state["ema"], g.params)
        return {"generator": g, "discriminator": d, "ema": ema}, (loss_g, loss_d)

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    classify = lambda path: "input" if not path.startswith("[0]") else "opt" if "opt_state" in path or path.endswith(".step") else "weight"
    return Program(train_step, (state, S(256, 256, 3), S(128)), classify, (0,) if donate else (), (shardings(state), None))


class Layer(nn.Module):
    heads: int
    kv: int
    hidden: int

    @nn.compact
    def __call__(self, x, _=None):
        lin = lambda n, name: nn.Dense(n, use_bias=False, dtype=HALF, name=name)
        h, size = nn.RMSNorm(dtype=HALF, name="input_norm")(x), x.shape[-1] // self.heads
        q, k, v = (lin(n * size, name)(h).reshape(*h.shape[:2], n, size) for n, name in ((self.heads, "q_proj"), (self.kv, "k_proj"), (self.kv, "v_proj")))
        x = x + lin(x.shape[-1], "o_proj")(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        h = nn.RMSNorm(dtype=HALF, name="post_norm")(x)
        return x + lin(x.shape[-1], "down_proj")(nn.silu(lin(self.hidden, "gate_proj")(h)) * lin(self.hidden, "up_proj")(h)), None


class MTP(nn.Module):
    words: int
    width: int
    hidden: int
    heads: int
    kv: int
    depth: int
    further: int

    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(self.words, self.width, dtype=HALF, name="embed")
        x = embed(tokens)
        layer = nn.remat(Layer, prevent_cse=False)
        scanned = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = scanned(self.heads, self.kv, self.hidden, name="layers")(x, None)
        outs = [x]
        for i in range(self.further):
            h = jnp.concatenate([nn.RMSNorm(dtype=HALF, name=f"mtp_norm_{i}")(outs[-1]), embed(jnp.roll(tokens, -1 - i, 1))], -1)
            h = nn.Dense(self.width, use_bias=False, dtype=HALF, name=f"mtp_proj_{i}")(h)
            outs.append(layer(self.heads, self.kv, self.hidden, name=f"mtp_layer_{i}")(h)[0])
        norm = nn.RMSNorm(dtype=HALF, name="norm")
        return [norm(x) for x in outs], self.param("lm_head", nn.initializers.normal(0.02), (self.width, self.words))


def mtp(topology, chips, batch, length=4096, words=128256, width=2048, hidden=8192, heads=32, kv=8, depth=16, further=2, chunks=1, donate=True):
    """The heads' losses are summed; `chunks` takes each in pieces of the sequence."""
    from pieces import entropy

    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    net = MTP(words, width, hidden, heads, kv, depth, further)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-4, weight_decay=0.1))
    make = lambda: train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.zeros((1, length), "int32"))["params"], tx=transform)
    state = placed(jax.eval_shape(make), largest_dimension(devices, "fsdp"))

    def train_step(state, batch):
        def loss_fn(params):
            outs, head = state.apply_fn({"params": params}, batch["tokens"])
            losses = [entropy(jax.lax.with_sharding_constraint(x, split), head, jnp.roll(batch["tokens"], -1 - i, 1), chunks) for i, x in enumerate(outs)]
            return losses[0] + 0.3 * sum(losses[1:]) / max(further, 1)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    data = {"tokens": jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)}
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, data), classify, (0,) if donate else (), (shardings(state), None))
