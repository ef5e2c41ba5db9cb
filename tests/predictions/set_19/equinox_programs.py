"""Equinox: a potential of atoms (SchNet), trained on energies and on forces, which are its gradient: derivatives of second order."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step
from recipe import Program, mesh, placed


class Interaction(eqx.Module):
    filters: eqx.nn.MLP
    inward: eqx.nn.Linear
    out1: eqx.nn.Linear
    out2: eqx.nn.Linear

    def __init__(self, width, gaussians, key):
        a, b, c, d = jax.random.split(key, 4)
        self.filters = eqx.nn.MLP(gaussians, width, width, 1, jax.nn.softplus, key=a)
        self.inward = eqx.nn.Linear(width, width, use_bias=False, key=b)
        self.out1, self.out2 = eqx.nn.Linear(width, width, key=c), eqx.nn.Linear(width, width, key=d)

    def __call__(self, x, basis, cutoff):
        w = jax.vmap(jax.vmap(self.filters))(basis) * cutoff[..., None]
        h = jax.vmap(self.inward)(x)
        y = (w * h[None]).sum(1)
        return x + jax.vmap(self.out2)(jax.nn.softplus(jax.vmap(self.out1)(y)))


class SchNet(eqx.Module):
    embed: jax.Array
    blocks: list
    read1: eqx.nn.Linear
    read2: eqx.nn.Linear

    def __init__(self, width, gaussians, depth, key):
        a, b, *keys = jax.random.split(key, 2 + depth)
        self.embed = jax.random.normal(a, (100, width))
        self.blocks = [Interaction(width, gaussians, k) for k in keys]
        c, d = jax.random.split(b)
        self.read1, self.read2 = eqx.nn.Linear(width, width // 2, key=c), eqx.nn.Linear(width // 2, 1, key=d)

    def __call__(self, places, kinds, remat, radius=5.0):
        gaussians = self.blocks[0].filters.in_size
        apart = places[:, None] - places[None]
        eye = jnp.eye(len(places), dtype=bool)
        r = jnp.sqrt(jnp.where(eye, 1.0, (apart**2).sum(-1)))
        centres = jnp.linspace(0, radius, gaussians)
        basis = jnp.exp(-((r[..., None] - centres) ** 2) * (gaussians / radius) ** 2 / 2)
        cutoff = jnp.where((r < radius) & ~eye, 0.5 * (jnp.cos(jnp.pi * r / radius) + 1), 0)
        x = self.embed[kinds]
        for i, block in enumerate(self.blocks):
            x = (eqx.filter_checkpoint(block) if i < remat else block)(x, basis, cutoff)
        return jax.vmap(self.read2)(jax.nn.softplus(jax.vmap(self.read1)(x))).sum()


def forces(topology, chips, molecules, atoms, width=128, gaussians=50, depth=6, remat=0, micro=1, donate=True):
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    net = eqx.filter_eval_shape(SchNet, width, gaussians, depth, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    transform = optax.contrib.schedule_free_adamw(1e-3)

    def loss_fn(params, places, kinds, energies, pulls):
        model = eqx.combine(params, static)
        energy, slope = jax.vmap(jax.value_and_grad(lambda p, k: model(p, k, remat)))(places, kinds)
        return 0.01 * ((energy - energies) ** 2).mean() + 0.99 * ((slope + pulls) ** 2).mean()

    def gradients(params, *data):
        if micro == 1:
            return jax.value_and_grad(loss_fn)(params, *data)
        cut = lambda a: jax.lax.with_sharding_constraint(
            a.reshape(chips, micro, -1, *a.shape[1:]).swapaxes(0, 1).reshape(micro, -1, *a.shape[1:]), NamedSharding(devices, P(None, "batch")))
        def one(total, part):
            loss, g = jax.value_and_grad(loss_fn)(params, *part)
            return jax.tree.map(jnp.add, total, g), loss
        g, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), jax.tree.map(cut, data))
        return losses.mean(), g

    def make_step(model, opt_state, places, kinds, energies, pulls):
        loss, grads = gradients(model, places, kinds, energies, pulls)
        updates, opt_state = transform.update(grads, opt_state, model)
        return eqx.apply_updates(model, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=split)
    args = (placed(arrays, whole), placed(jax.eval_shape(transform.init, arrays), whole),
            S("float32", molecules, atoms, 3), S("int32", molecules, atoms), S("float32", molecules), S("float32", molecules, atoms, 3))
    return Program(make_step, args, kind_of_step, (0, 1) if donate else ())
