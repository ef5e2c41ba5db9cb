"""Flax NNX: MaskGIT's bidirectional transformer, its layers made by nnx.vmap and run by nnx.scan; RWKV-like layers (gated linear attention in chunks)."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, largest_dimension, mesh, placed


def kind(path):
    return "input" if path[:3] in ("[2]", "[3]") else "opt" if path.startswith("[1]") else "other" if "rng" in path.lower() else "weight"


class Block(nnx.Module):
    def __init__(self, width, heads, hidden, rngs):
        self.norm1, self.norm2 = nnx.LayerNorm(width, dtype=HALF, rngs=rngs), nnx.LayerNorm(width, dtype=HALF, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, dtype=HALF, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(width, hidden, dtype=HALF, rngs=rngs), nnx.Linear(hidden, width, dtype=HALF, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class MaskGIT(nnx.Module):
    def __init__(self, codes, length, depth, width, heads, remat, rngs):
        self.embed = nnx.Embed(codes + 1001, width, dtype=HALF, rngs=rngs)
        self.places = nnx.Param(jnp.zeros((length + 1, width)))
        self.blocks = nnx.vmap(lambda r: Block(width, heads, 4 * width, r), in_axes=0, out_axes=0)(rngs.fork(split=depth))
        self.norm = nnx.LayerNorm(width, dtype=HALF, rngs=rngs)
        self.head = nnx.Linear(width, codes, dtype=HALF, rngs=rngs)
        self.remat, self.codes = remat, codes

    def __call__(self, tokens, label):
        x = self.embed(jnp.concatenate([self.codes + 1 + label[:, None], tokens], 1)) + self.places.value.astype(HALF)
        call = lambda x, block: block(x)
        call = nnx.remat(call) if self.remat else call
        x = nnx.scan(call, in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(x, self.blocks)
        return self.head(self.norm(x))[:, 1:].astype(jnp.float32)


def maskgit(topology, chips, batch, codes=1024, length=1024, depth=24, width=768, heads=12, remat=False, fsdp=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: MaskGIT(codes, length, depth, width, heads, remat, nnx.Rngs(0)))
    transform = optax.adamw(1e-4, b2=0.96, weight_decay=0.045)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    where = largest_dimension(devices, "data") if fsdp else whole
    net_state, opt_state = placed(net_state, where), placed(opt_state, where)

    def train_step(model, opt_state, batch, key):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)

        def loss_fn(net):
            ratio = jnp.cos(jax.random.uniform(key, (batch["codes"].shape[0], 1)) * jnp.pi / 2)
            hidden = jax.random.uniform(jax.random.fold_in(key, 1), batch["codes"].shape) < ratio
            logits = net(jnp.where(hidden, codes, batch["codes"]), batch["label"])
            target = optax.smooth_labels(jax.nn.one_hot(batch["codes"], codes), 0.1)
            return (optax.softmax_cross_entropy(logits, target) * hidden).sum() / hidden.sum()

        loss, grads = nnx.value_and_grad(loss_fn)(net)
        opt.update(net, grads)
        return nnx.state(net), nnx.state(opt), loss

    data = {"codes": jax.ShapeDtypeStruct((batch, length), "int32", sharding=split), "label": jax.ShapeDtypeStruct((batch,), "int32", sharding=split)}
    key = jax.ShapeDtypeStruct((2,), "uint32", sharding=whole)
    return Program(train_step, (net_state, opt_state, data, key), kind, (0, 1) if donate else (), (shardings(net_state), shardings(opt_state), None))


class TimeMix(nnx.Module):
    """Gated linear attention with decays of every channel, in chunks."""

    def __init__(self, width, heads, chunk, rngs):
        lin = lambda n: nnx.Linear(width, n, use_bias=False, dtype=HALF, rngs=rngs)
        self.r, self.k, self.v, self.g, self.o = lin(width), lin(width), lin(width), lin(width), lin(width)
        self.w1, self.w2 = lin(64), nnx.Linear(64, width, dtype=HALF, rngs=rngs)
        self.mix = nnx.Param(jnp.zeros((5, width)))
        self.norm = nnx.GroupNorm(width, num_groups=heads, dtype=HALF, rngs=rngs)
        self.heads, self.chunk = heads, chunk

    def __call__(self, x):
        b, t, width = x.shape
        late = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1] - x
        a = [x + late * m.astype(HALF) for m in self.mix.value]
        cut = lambda a: a.reshape(b, t // self.chunk, self.chunk, self.heads, -1)
        r, k, v, g = cut(self.r(a[0])), cut(self.k(a[1])), cut(self.v(a[2])), jax.nn.silu(self.g(a[3]))
        decay = -jnp.exp(jnp.clip(cut(self.w2(jnp.tanh(self.w1(a[4])))).astype(jnp.float32), -8, 0))
        total = jnp.cumsum(decay, 2)
        last = total[:, :, -1:]
        q = (r.astype(jnp.float32) * jnp.exp(total)).astype(HALF)
        near = (k.astype(jnp.float32) * jnp.exp(jnp.clip(-total, None, 20))).astype(HALF)
        far = (k.astype(jnp.float32) * jnp.exp(last - total)).astype(HALF)
        scores = jnp.einsum("bnihd,bnjhd->bnhij", q, near).astype(jnp.float32)
        scores = jnp.where(jnp.tril(jnp.ones((self.chunk, self.chunk), bool)), scores, 0).astype(HALF)
        inside = jnp.einsum("bnhij,bnjhd->bnihd", scores, v)
        added = jnp.einsum("bnjhd,bnjhe->bnhde", far, v).astype(jnp.float32)

        def one(state, xs):
            fade, new = xs
            return state * jnp.exp(fade)[..., None] + new, state

        start = jnp.zeros((b, self.heads, width // self.heads, width // self.heads))
        _, before = jax.lax.scan(one, start, (last[:, :, 0].swapaxes(0, 1), added.swapaxes(0, 1)))
        across = jnp.einsum("bnihd,nbhde->bnihe", q, before.astype(HALF))
        return self.o(self.norm((inside + across).reshape(b * t, width)).reshape(b, t, width) * g)


class RWKVBlock(nnx.Module):
    def __init__(self, width, heads, hidden, chunk, rngs):
        self.norm1, self.norm2 = nnx.LayerNorm(width, dtype=HALF, rngs=rngs), nnx.LayerNorm(width, dtype=HALF, rngs=rngs)
        self.time = TimeMix(width, heads, chunk, rngs)
        self.key, self.value = nnx.Linear(width, hidden, use_bias=False, dtype=HALF, rngs=rngs), nnx.Linear(hidden, width, use_bias=False, dtype=HALF, rngs=rngs)

    def __call__(self, x):
        x = x + self.time(self.norm1(x))
        return x + self.value(jnp.square(nnx.relu(self.key(self.norm2(x)))))


class RWKV(nnx.Module):
    def __init__(self, vocabulary, depth, width, heads, hidden, chunk, remat, rngs):
        self.embed = nnx.Embed(vocabulary, width, dtype=HALF, rngs=rngs)
        self.blocks = nnx.List([RWKVBlock(width, heads, hidden, chunk, rngs) for _ in range(depth)])
        self.norm, self.head = nnx.LayerNorm(width, dtype=HALF, rngs=rngs), nnx.Linear(width, vocabulary, use_bias=False, dtype=HALF, rngs=rngs)
        self.remat = remat

    def __call__(self, tokens):
        x = self.embed(tokens)
        for i, block in enumerate(self.blocks):
            call = lambda block, x: block(x)
            x = (nnx.remat(call) if i < self.remat else call)(block, x)
        return self.norm(x)


def rwkv(topology, chips, batch, length=4096, vocabulary=65536, depth=24, width=1024, heads=16, hidden=3584, chunk=64, remat=0, chunks=1, fsdp=True, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: RWKV(vocabulary, depth, width, heads, hidden, chunk, remat, nnx.Rngs(0)))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(6e-4, b2=0.99, weight_decay=0.1))
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    where = largest_dimension(devices, "data") if fsdp else whole
    net_state, opt_state = placed(net_state, where), placed(opt_state, where)

    def train_step(model, opt_state, tokens):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)

        def loss_fn(net):
            x = net(jax.lax.with_sharding_constraint(tokens, split))
            labels = jnp.roll(tokens, -1, 1)
            def piece(x, y):
                return optax.softmax_cross_entropy_with_integer_labels((x @ net.head.kernel.value.astype(HALF)).astype(jnp.float32), y).sum()
            if chunks == 1:
                return piece(x, labels) / labels.size
            cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
            return jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, (cut(x), cut(labels)))[0] / labels.size

        loss, grads = nnx.value_and_grad(loss_fn)(net)
        opt.update(net, grads)
        return nnx.state(net), nnx.state(opt), loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (net_state, opt_state, tokens), kind, (0, 1) if donate else (), (shardings(net_state), shardings(opt_state), None))
