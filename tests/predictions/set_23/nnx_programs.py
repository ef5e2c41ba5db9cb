"""NNX: a transformer for flow matching of images (SiT-XL) with adaptive norms, scanned with a checkpoint policy; a sequence-to-value network of games (decision transformer) not scanned."""

import functools

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_nnx, shardings
from recipe import Program, largest_dimension, mesh, placed

POLICIES = {"dots": jax.checkpoint_policies.dots_saveable, "nobatch": jax.checkpoint_policies.dots_with_no_batch_dims_saveable, "nothing": jax.checkpoint_policies.nothing_saveable}


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        lin = functools.partial(nnx.Linear, dtype=HALF, rngs=rngs)
        self.heads = heads
        self.ada = lin(width, 6 * width)
        self.qkv, self.out = lin(width, 3 * width), lin(width, width)
        self.up, self.down = lin(width, 4 * width), lin(4 * width, width)
        self.n1 = nnx.LayerNorm(width, use_bias=False, use_scale=False, dtype=jnp.float32, rngs=rngs)
        self.n2 = nnx.LayerNorm(width, use_bias=False, use_scale=False, dtype=jnp.float32, rngs=rngs)

    def __call__(self, x, c):
        s1, g1, b1, s2, g2, b2 = jnp.split(self.ada(nnx.silu(c))[:, None], 6, -1)
        h = (self.n1(x) * (1 + s1) + b1).astype(HALF)
        q, k, v = jnp.split(self.qkv(h).reshape(*x.shape[:2], 3 * self.heads, -1), 3, 2)
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        o = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s.astype(jnp.float32)).astype(HALF), v).reshape(x.shape)
        x = x + g1 * self.out(o)
        h = (self.n2(x) * (1 + s2) + b2).astype(HALF)
        return x + g2 * self.down(nnx.gelu(self.up(h)))


class SiT(nnx.Module):
    def __init__(self, depth, width, heads, patch, side, rngs, policy):
        self.patch, self.side, self.policy = patch, side, policy
        n = (side // patch) ** 2
        self.embed = nnx.Linear(4 * patch * patch, width, dtype=HALF, rngs=rngs)
        self.place = nnx.Param(jnp.zeros((1, n, width)))
        self.time1, self.time2 = nnx.Linear(256, width, rngs=rngs), nnx.Linear(width, width, rngs=rngs)
        self.classes = nnx.Embed(1001, width, rngs=rngs)
        make = nnx.split_rngs(splits=depth)(nnx.vmap(lambda rngs: Block(width, heads, rngs), in_axes=0, out_axes=0))
        self.blocks = make(rngs)
        self.ada = nnx.Linear(width, 2 * width, dtype=HALF, rngs=rngs)
        self.norm = nnx.LayerNorm(width, use_bias=False, use_scale=False, rngs=rngs)
        self.last = nnx.Linear(width, 4 * patch * patch, rngs=rngs)

    def __call__(self, x, t, y):
        b, p, m = x.shape[0], self.patch, self.side // self.patch
        x = x.reshape(b, m, p, m, p, 4).transpose(0, 1, 3, 2, 4, 5).reshape(b, m * m, -1)
        x = self.embed(x) + self.place.value.astype(HALF)
        f = t[:, None] * 1000.0 * jnp.exp(-jnp.log(10000.0) * jnp.arange(128) / 128)
        c = self.time2(nnx.silu(self.time1(jnp.concatenate([jnp.cos(f), jnp.sin(f)], -1)))) + self.classes(y)
        c = c.astype(HALF)

        def body(x, block):
            return block(x, c)

        if self.policy:
            body = nnx.remat(body, policy=POLICIES[self.policy])
        x = nnx.scan(body, in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(x, self.blocks)
        scale, shift = jnp.split(self.ada(nnx.silu(c))[:, None], 2, -1)
        x = self.last(self.norm(x) * (1 + scale) + shift)
        return x.reshape(b, m, m, p, p, 4).transpose(0, 1, 3, 2, 4, 5).reshape(b, self.side, self.side, 4)


def sit(topology, chips, batch, side=32, patch=2, depth=28, width=1152, heads=16, policy="dots", donate=True, zero=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    build = lambda: SiT(depth, width, heads, patch, side, nnx.Rngs(0), policy)
    model = nnx.eval_shape(build)
    transform = optax.adamw(1e-4)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state = placed(net_state, whole)
    ema = net_state
    opt_state = placed(opt_state, largest_dimension(devices, "data") if zero else whole)

    def train_step(model, opt_state, ema, batch):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)

        def loss_fn(net):
            t = batch["time"][:, None, None, None]
            x = (1 - t) * batch["latents"] + t * batch["noise"]
            return ((net(x, batch["time"], batch["label"]) - (batch["noise"] - batch["latents"])) ** 2).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(net)
        opt.update(net, grads)
        model = nnx.state(net)
        ema = jax.tree.map(lambda a, b: 0.9999 * a + 0.0001 * b if jnp.issubdtype(a.dtype, jnp.floating) else b, ema, model)
        return model, nnx.state(opt), ema, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    data = {"latents": S("float32", side, side, 4), "noise": S("float32", side, side, 4), "time": S("float32"), "label": S("int32")}

    def classify(path):
        if "rngs" in path or "count" in path:
            return "other"
        return {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")

    return Program(train_step, (net_state, opt_state, ema, data), classify, (0, 1, 2) if donate else (), (shardings(net_state), shardings(opt_state), shardings(ema), None))
