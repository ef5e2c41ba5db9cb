"""Equinox: the MLP-Mixer of its examples, as a diffusion model of images."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step
from recipe import Program, mesh, placed


class MixerBlock(eqx.Module):
    patch_mixer: eqx.nn.MLP
    hidden_mixer: eqx.nn.MLP
    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm

    def __init__(self, patches, hidden, mix_patch, mix_hidden, key):
        a, b = jax.random.split(key)
        self.patch_mixer = eqx.nn.MLP(patches, patches, mix_patch, depth=1, activation=jax.nn.gelu, key=a)
        self.hidden_mixer = eqx.nn.MLP(hidden, hidden, mix_hidden, depth=1, activation=jax.nn.gelu, key=b)
        self.norm1, self.norm2 = eqx.nn.LayerNorm((hidden, patches)), eqx.nn.LayerNorm((patches, hidden))

    def __call__(self, y):
        y = (y + jax.vmap(self.patch_mixer)(self.norm1(y))).T
        return (y + jax.vmap(self.hidden_mixer)(self.norm2(y))).T


class Mixer2d(eqx.Module):
    conv_in: eqx.nn.Conv2d
    conv_out: eqx.nn.ConvTranspose2d
    blocks: list
    norm: eqx.nn.LayerNorm

    def __init__(self, size, patch, hidden, mix_patch, mix_hidden, depth, key):
        a, b, *keys = jax.random.split(key, 2 + depth)
        patches = (size // patch) ** 2
        self.conv_in = eqx.nn.Conv2d(4, hidden, patch, stride=patch, key=a)
        self.conv_out = eqx.nn.ConvTranspose2d(hidden, 3, patch, stride=patch, key=b)
        self.blocks = [MixerBlock(patches, hidden, mix_patch, mix_hidden, k) for k in keys]
        self.norm = eqx.nn.LayerNorm((hidden, patches))

    def __call__(self, y, t, remat):
        y = self.conv_in(jnp.concatenate([y, jnp.broadcast_to(t, (1, *y.shape[1:])).astype(y.dtype)]))
        hidden, height, width = y.shape
        y = y.reshape(hidden, -1)
        for i, block in enumerate(self.blocks):
            y = (eqx.filter_checkpoint(block) if i < remat else block)(y)
        return self.conv_out(self.norm(y).reshape(hidden, height, width))


def mixer(topology, chips, batch, size, patch, hidden, mix_patch, mix_hidden, depth, remat=0, half=False, donate=False):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = eqx.filter_eval_shape(Mixer2d, size, patch, hidden, mix_patch, mix_hidden, depth, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.adabelief(3e-4)

    def loss_fn(model, data, key):
        a, b = jax.random.split(key)
        t, noise = jax.random.uniform(a, (data.shape[0],)), jax.random.normal(b, data.shape)
        mixed = data * jnp.exp(-t)[:, None, None, None] + noise
        if half:
            model, mixed = jax.tree.map(lambda x: x.astype(jnp.bfloat16), (model, mixed))
        out = jax.vmap(lambda y, t: eqx.combine(model, static)(y, t, remat))(mixed, t)
        return jnp.mean((out.astype(jnp.float32) + noise) ** 2)

    def make_step(model, opt_state, data, key):
        loss, grads = jax.value_and_grad(loss_fn)(model, data, key)
        updates, opt_state = transform.update(grads, opt_state, model)
        return loss, eqx.apply_updates(model, updates), opt_state

    key = jax.eval_shape(lambda: jax.random.key(0))
    args = (placed(arrays, whole), placed(jax.eval_shape(transform.init, arrays), whole),
            jax.ShapeDtypeStruct((batch, 3, size, size), "float32", sharding=split), jax.ShapeDtypeStruct((), key.dtype, sharding=whole))
    return Program(make_step, args, kind_of_step, (0, 1) if donate else ())
