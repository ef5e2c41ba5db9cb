"""Equinox: Graphormer in three dimensions (catalysts and molecules): the batch is the last axis, layers are scanned four times over."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


class Layer(eqx.Module):
    ln1: eqx.nn.LayerNorm
    ln2: eqx.nn.LayerNorm
    qkv: eqx.nn.Linear
    proj: eqx.nn.Linear
    fc1: eqx.nn.Linear
    fc2: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(self, width, heads, hidden, key):
        a, b, c, d = jax.random.split(key, 4)
        self.ln1, self.ln2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.qkv, self.proj = eqx.nn.Linear(width, 3 * width, key=a), eqx.nn.Linear(width, width, key=b)
        self.fc1, self.fc2 = eqx.nn.Linear(width, hidden, key=c), eqx.nn.Linear(hidden, width, key=d)
        self.heads = heads

    def __call__(self, x, bias):  # [atoms, width], [heads, atoms, atoms]
        n = x.shape[0]
        q, k, v = jnp.moveaxis(jax.vmap(self.qkv)(jax.vmap(self.ln1)(x)).reshape(n, 3, self.heads, -1), 1, 0)
        s = jnp.einsum("ihd,jhd->hij", q, k) * q.shape[-1] ** -0.5 + bias
        o = jnp.einsum("hij,jhd->ihd", jax.nn.softmax(s), v).reshape(n, -1)
        x = x + jax.vmap(self.proj)(o)
        return x + jax.vmap(self.fc2)(jax.nn.gelu(jax.vmap(self.fc1)(jax.vmap(self.ln2)(x))))


class Graphormer3D(eqx.Module):
    atom: jax.Array
    means: jax.Array
    stds: jax.Array
    edge_scale: jax.Array
    bias1: eqx.nn.Linear
    bias2: eqx.nn.Linear
    edge_in: eqx.nn.Linear
    layers: Layer
    norm: eqx.nn.LayerNorm
    energy: eqx.nn.MLP
    force: eqx.nn.Linear
    heads: int = eqx.field(static=True)
    repeats: int = eqx.field(static=True)

    def __init__(self, width, heads, hidden, depth, repeats, kernels, key):
        k = jax.random.split(key, 8)
        self.atom = jax.random.normal(k[0], (64, width)) * 0.02
        self.means, self.stds = jnp.zeros(kernels), jnp.ones(kernels)
        self.edge_scale = jnp.ones((64 * 64, 2))
        self.bias1, self.bias2 = eqx.nn.Linear(kernels, kernels, key=k[1]), eqx.nn.Linear(kernels, heads, key=k[2])
        self.edge_in = eqx.nn.Linear(kernels, width, key=k[3])
        self.layers = eqx.filter_vmap(lambda key: Layer(width, heads, hidden, key))(jax.random.split(k[4], depth))
        self.norm = eqx.nn.LayerNorm(width)
        self.energy = eqx.nn.MLP(width, 1, width, 1, jax.nn.gelu, key=k[5])
        self.force = eqx.nn.Linear(width, 3, key=k[6])
        self.heads, self.repeats = heads, repeats

    def __call__(self, kinds, places, remat):  # [atoms], [atoms, 3]
        delta = places[:, None] - places[None]
        dist = jnp.sqrt((delta**2).sum(-1) + 1e-6)
        scale = self.edge_scale[kinds[:, None] * 64 + kinds[None]]
        z = dist * scale[..., 0] + scale[..., 1]
        gauss = jnp.exp(-0.5 * ((z[..., None] - self.means) / (jnp.abs(self.stds) + 1e-2)) ** 2)
        each = lambda lin, a: a @ lin.weight.T + lin.bias
        bias = jnp.moveaxis(each(self.bias2, jax.nn.gelu(each(self.bias1, gauss))), -1, 0)
        x = self.atom[kinds] + each(self.edge_in, gauss.sum(1))
        arrays, static = eqx.partition(self.layers, eqx.is_array)

        def one(x, layer):
            return eqx.combine(layer, static)(x, bias), None

        def again(x, _):
            return jax.lax.scan(jax.checkpoint(one) if remat else one, x, arrays)[0], None

        x, _ = jax.lax.scan(again, x, None, length=self.repeats)
        x = jax.vmap(self.norm)(x)
        pull = jax.nn.softmax(bias.mean(0))[..., None] * (delta / dist[..., None])
        force = (pull * each(self.force, x)[None]).sum(1)
        return self.energy(x.mean(0))[0], force


def graphormer(topology, chips, batch, atoms=128, width=768, heads=48, hidden=768, depth=12, repeats=4, kernels=128, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("mol",))
    whole = NamedSharding(devices, P())
    net = eqx.filter_eval_shape(Graphormer3D, width, heads, hidden, depth, repeats, kernels, jax.random.key(0))
    arrays, static = eqx.partition(net, lambda a: isinstance(a, jax.ShapeDtypeStruct))
    arrays = placed(arrays, whole)
    transform = optax.adamw(3e-4, b2=0.98)
    opt = placed(jax.eval_shape(transform.init, arrays), whole)
    dtype = HALF if half else jnp.float32

    def make_step(model, ema, opt_state, kinds, places, energy, forces):
        def loss_fn(params):
            low = jax.tree.map(lambda a: a.astype(dtype), params)
            full = eqx.combine(low, static)
            e, f = jax.vmap(lambda k, p: full(k, p, remat), in_axes=-1, out_axes=-1)(kinds, places.astype(dtype))
            return jnp.abs(e.astype(jnp.float32) - energy).mean() + 5 * jnp.abs(f.astype(jnp.float32) - forces).mean()

        loss, grads = jax.value_and_grad(loss_fn)(model)
        updates, opt_state = transform.update(grads, opt_state, model)
        model = eqx.apply_updates(model, updates)
        return model, optax.incremental_update(model, ema, 1e-3), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((*s, batch), d, sharding=NamedSharding(devices, P(*[None] * len(s), "mol")))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    args = (arrays, arrays, opt, S("int32", atoms), S("float32", atoms, 3), S("float32"), S("float32", atoms, 3))
    return Program(make_step, args, classify, (0, 1, 2) if donate else (), (shardings(arrays), shardings(arrays), shardings(opt), None))
