"""Linen: two towers that learn which items a user buys (tables of users, items and queries, residual MLPs one after another, all of a batch's items against each other), AdamW, not clipped; an MLP mixer over the items that a user has clicked (as MLP4Rec), sampled softmax, Lion, clipped; data parallel, whole state on every device."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings, training_step
from recipe import Program, largest_dimension, mesh, placed


class Residual(nn.Module):
    hidden: int

    @nn.compact
    def __call__(self, x):
        h = nn.LayerNorm(dtype=HALF, name="norm")(x)
        return x + nn.Dense(x.shape[-1], dtype=HALF, name="down")(nn.relu(nn.Dense(self.hidden, dtype=HALF, name="up")(h)))


class Tower(nn.Module):
    width: int
    hidden: int
    depth: int
    out: int

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.width, dtype=HALF, name="enter")(x)
        for i in range(self.depth):
            x = Residual(self.hidden, name=f"layer_{i}")(x)
        x = nn.Dense(self.out, dtype=HALF, name="leave")(x).astype(jnp.float32)
        return x * jax.lax.rsqrt(jnp.square(x).sum(-1, keepdims=True) + 1e-6)


class Towers(nn.Module):
    users: int
    items: int
    queries: int
    size: int
    width: int
    hidden: int
    depth: int

    @nn.compact
    def __call__(self, data):
        table = lambda n, name: nn.Embed(n, self.size, dtype=HALF, name=name)
        user = jnp.concatenate([table(self.users, "users")(data["user"]), table(self.queries, "queries")(data["query"]).mean(1)], -1)
        item = jnp.concatenate([table(self.items, "items")(data["item"]), data["about"].astype(HALF)], -1)
        tower = lambda name: Tower(self.width, self.hidden, self.depth, 256, name=name)
        return tower("user_tower")(user), tower("item_tower")(item)


def towers(topology, chips, batch, users=2_400_000, items=2_000_000, queries=1_000_000, size=128, width=1024, hidden=4096, depth=8, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Towers(users, items, queries, size, width, hidden, depth)
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"user": S("int32"), "query": S("int32", 8), "item": S("int32"), "about": S("float32", 64), "often": S("float32")}
    params = placed(jax.eval_shape(net.init, jax.random.key(0), data)["params"], whole)
    transform = optax.adamw(1e-3, weight_decay=1e-5)
    opt = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, data):
        user, item = net.apply({"params": params}, data)
        logits = user @ item.T / 0.05 - jnp.log(data["often"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.arange(batch)).mean()

    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


class Mix(nn.Module):
    hidden: int
    between: int

    @nn.compact
    def __call__(self, x):
        lin = lambda n, name: nn.Dense(n, dtype=HALF, name=name)
        h = nn.LayerNorm(dtype=HALF, name="norm_places")(x).swapaxes(1, 2)
        x = x + lin(x.shape[1], "places_out")(nn.gelu(lin(self.between, "places_in")(h))).swapaxes(1, 2)
        h = nn.LayerNorm(dtype=HALF, name="norm_channels")(x)
        return x + lin(x.shape[2], "channels_out")(nn.gelu(lin(self.hidden, "channels_in")(h)))


class Mixer(nn.Module):
    items: int
    kinds: int
    size: int
    width: int
    hidden: int
    between: int
    depth: int
    remat: bool

    @nn.compact
    def __call__(self, data):
        mix = nn.remat(Mix) if self.remat else Mix
        items = nn.Embed(self.items, self.size, dtype=HALF, name="items")
        kinds = nn.Embed(self.kinds, self.size, dtype=HALF, name="kinds")
        x = jnp.concatenate([items(data["clicked"]), kinds(data["kind"])], -1)
        x = nn.Dense(self.width, dtype=HALF, name="enter")(x)
        for i in range(self.depth):
            x = mix(self.hidden, self.between, name=f"mix_{i}")(x)
        x = nn.LayerNorm(dtype=HALF, name="norm")(x).mean(1)
        x = nn.Dense(self.size, dtype=HALF, name="leave")(x)
        right = (x * items(data["next"])).sum(-1, keepdims=True)
        return jnp.concatenate([right, x @ items(data["others"]).T], -1).astype(jnp.float32)


def mixer(topology, chips, batch, items=6_000_000, kinds=500_000, size=128, history=64, width=1024, hidden=4096, between=256, depth=12, sampled=16384, zero=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = Mixer(items, kinds, size, width, hidden, between, depth, remat)
    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "int32", sharding=split)
    data = {"clicked": S(history), "kind": S(history), "next": S(), "others": jax.ShapeDtypeStruct((sampled,), "int32", sharding=whole)}
    params = placed(jax.eval_shape(net.init, jax.random.key(0), data)["params"], whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-4, weight_decay=1e-3))
    opt = following(jax.eval_shape(transform.init, params), params, whole)
    if zero:
        opt = placed(opt, largest_dimension(devices, "data", 1 << 16))

    def loss_fn(params, data):
        return -jax.nn.log_softmax(net.apply({"params": params}, data))[:, 0].mean()

    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
