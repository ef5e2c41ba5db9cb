"""Haiku: a speech transformer (two convolutions, an encoder of 12 layers over 512 places, a decoder of 6 over 128 words), layers one after another, in float32, AdamW behind clip_by_global_norm; data parallel, whole state on every device."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings, training_step
from recipe import Program, mesh, placed


def linear(x, out, name):
    w = hk.get_parameter(f"{name}_w", (x.shape[-1], out), init=hk.initializers.TruncatedNormal(x.shape[-1] ** -0.5))
    return x @ w.astype(x.dtype) + hk.get_parameter(f"{name}_b", (out,), init=jnp.zeros).astype(x.dtype)


def norm(x, name):
    return hk.LayerNorm(-1, True, True, name=name)(x.astype(jnp.float32)).astype(x.dtype)


class Layer(hk.Module):
    def __init__(self, heads, hidden, name):
        super().__init__(name=name)
        self.heads, self.hidden = heads, hidden

    def attend(self, x, seen, mask, name):
        width = x.shape[-1]
        part = lambda a, n: linear(a, width, f"{name}_{n}").reshape(*a.shape[:2], self.heads, -1)
        q, k, v = part(x, "q"), part(seen, "k"), part(seen, "v")
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
        s = s if mask is None else jnp.where(mask, s, -1e30)
        o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(x.dtype), v)
        return linear(o.reshape(x.shape), width, f"{name}_o")

    def __call__(self, x, mask, memory):
        h = norm(x, "ln_self")
        x = x + self.attend(h, h, mask, "self")
        if memory is not None:
            x = x + self.attend(norm(x, "ln_cross"), memory, None, "cross")
        h = norm(x, "ln_mlp")
        return x + linear(jax.nn.relu(linear(h, self.hidden, "in")), x.shape[-1], "out")


def speech(topology, chips, batch, frames=2048, bands=80, target=128, words=10240, width=512, heads=8, hidden=2048, encoder=12, decoder=6, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def transformer(sound, before):
        def stack(x, name, depth, mask, memory):
            for i in range(depth):
                layer = Layer(heads, hidden, name=f"{name}_layer_{i}")
                x = (hk.remat(layer) if remat else layer)(x, mask, memory)
            return norm(x, f"{name}_norm")

        def position(n):
            return hk.get_parameter(f"position_{n}", (n, width), init=hk.initializers.RandomNormal(0.02)).astype(compute)

        x = sound.astype(compute)
        for i in range(2):
            w = hk.get_parameter(f"conv_{i}_w", (5, x.shape[-1], width), init=hk.initializers.TruncatedNormal(0.02))
            x = jax.lax.conv_general_dilated(x, w.astype(x.dtype), (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
            x = jax.nn.gelu(x)
        memory = stack(x + position(x.shape[1]), "encoder", encoder, None, None)
        table = hk.get_parameter("embed", (words, width), init=hk.initializers.RandomNormal(0.02))
        mask = jnp.tril(jnp.ones((target, target), bool))
        x = stack(table.astype(compute)[before] + position(target), "decoder", decoder, mask, memory)
        return (x @ table.T.astype(x.dtype)).astype(jnp.float32)

    net = hk.without_apply_rng(hk.transform(transformer))
    params = placed(jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, frames, bands)), jnp.zeros((1, target), "int32"))), whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, b2=0.98, weight_decay=0.01))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        before = jnp.pad(data["words"][:, :-1], ((0, 0), (1, 0)))
        logits = net.apply(params, data["sound"], before)
        labels = optax.smooth_labels(jax.nn.one_hot(data["words"], words), 0.1)
        return optax.softmax_cross_entropy(logits, labels).mean()

    data = {"sound": jax.ShapeDtypeStruct((batch, frames, bands), "float32", sharding=split), "words": jax.ShapeDtypeStruct((batch, target), "int32", sharding=split)}
    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
