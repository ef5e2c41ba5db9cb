"""Haiku: a large Conformer for speech (17 layers of 512, relative positions as Transformer-XL has them, convolutions of 31) with CTC over word pieces, in float32, layers one after another, AdamW; data parallel, whole state on every device."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import following, kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


def norm(name):
    return hk.LayerNorm(-1, True, True, name=name)


class Conformer(hk.Module):
    def __init__(self, heads, kernel, name):
        super().__init__(name=name)
        self.heads, self.kernel = heads, kernel

    def feed(self, x, name):
        h = hk.Linear(4 * x.shape[-1], name=f"{name}_in")(norm(f"{name}_norm")(x))
        return x + 0.5 * hk.Linear(x.shape[-1], name=f"{name}_out")(jax.nn.silu(h))

    def attend(self, x, places, there):
        rows, time, width = x.shape
        size = width // self.heads
        h = norm("attention_norm")(x)
        q, k, v = (hk.Linear(width, name=n)(h).reshape(rows, time, self.heads, size) for n in ("query", "key", "value"))
        r = hk.Linear(width, with_bias=False, name="place")(places).reshape(2 * time - 1, self.heads, size)
        u, w = (hk.get_parameter(n, (self.heads, size), init=jnp.zeros) for n in ("bias_content", "bias_place"))
        content = jnp.einsum("bqhd,bkhd->bhqk", q + u, k)
        moved = jnp.einsum("bqhd,rhd->bhqr", q + w, r)
        moved = jnp.pad(moved, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(rows, self.heads, 2 * time, time)[:, :, 1:].reshape(rows, self.heads, time, 2 * time - 1)[..., :time]
        s = jnp.where(there[:, None, None], (content + moved) * size**-0.5, -1e9)
        return x + hk.Linear(width, name="proj")(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(x.shape))

    def convolve(self, x, there):
        width = x.shape[-1]
        a, b = jnp.split(hk.Linear(2 * width, name="pointwise_in")(norm("conv_norm")(x)), 2, -1)
        h = jnp.where(there[..., None], a * jax.nn.sigmoid(b), 0)
        h = hk.DepthwiseConv1D(1, self.kernel, padding="SAME", name="depthwise")(h)
        return x + hk.Linear(width, name="pointwise_out")(jax.nn.silu(norm("after_norm")(h)))

    def __call__(self, x, places, there):
        x = self.convolve(self.attend(self.feed(x, "feed1"), places, there), there)
        return norm("last_norm")(self.feed(x, "feed2"))


def conformer(topology, chips, batch, frames=1600, bins=80, pieces=1024, labels=100, width=512, heads=8, kernel=31, depth=17, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def encode(data):
        x, there = data["sound"][..., None], data["sound_there"][:, ::4]
        for i in (0, 1):
            x = jax.nn.relu(hk.Conv2D(width // 2, 3, 2, name=f"subsample_{i}")(x))
        x = hk.Linear(width, name="subsample_out")(x.reshape(*x.shape[:2], -1))
        time = x.shape[1]
        angle = jnp.arange(time - 1, -time, -1)[:, None] * jnp.exp(-jnp.arange(width // 2) * jnp.log(10000.0) / (width // 2))
        places = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)
        for i in range(depth):
            layer = Conformer(heads, kernel, name=f"conformer_{i}")
            x = (hk.remat(layer) if remat else layer)(x, places, there)
        return hk.Linear(pieces + 1, name="pieces")(x)

    net = hk.without_apply_rng(hk.transform(encode))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"sound": S("float32", frames, bins), "sound_there": S("bool", frames), "labels": S("int32", labels), "labels_there": S("bool", labels)}
    params = placed(jax.eval_shape(net.init, jax.random.key(0), data), whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, b2=0.98, weight_decay=1e-3))
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, data):
        absent = lambda a: 1.0 - a.astype(jnp.float32)
        return optax.ctc_loss(net.apply(params, data), absent(data["sound_there"][:, ::4]), data["labels"], absent(data["labels_there"]), blank_id=pieces).mean()

    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
