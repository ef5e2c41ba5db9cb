"""NNX: StableLM 2 1.6B (a quarter of each head turned, norms with a shift), layers in a list; fully sharded; gradients summed over micro-batches in a lax.scan; SmolLM2 1.7B, frozen in bfloat16, fine-tuned by nnx.LoRA on all of its matrices, layers in a list, data parallel."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, following, kind_of_step, shardings, turned
from recipe import Program, largest_dimension, mesh, placed


class Block(nnx.Module):
    def __init__(self, width, heads, hidden, rngs):
        lin = lambda a, b, bias=False: nnx.Linear(a, b, use_bias=bias, dtype=HALF, rngs=rngs)
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = lin(width, width, True), lin(width, width, True), lin(width, width, True), lin(width, width)
        self.gate_proj, self.up_proj, self.down_proj = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.norm1, self.norm2 = nnx.LayerNorm(width, dtype=HALF, rngs=rngs), nnx.LayerNorm(width, dtype=HALF, rngs=rngs)

    def turn(self, a):
        part = a.shape[-1] // 4
        return jnp.concatenate([turned(a[..., :part], 10000.0), a[..., part:]], -1)

    def __call__(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).reshape(*h.shape[:2], self.heads, -1) for f in (self.q_proj, self.k_proj, self.v_proj))
        x = x + self.o_proj(causal(self.turn(q), self.turn(k), v).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down_proj(nnx.silu(self.gate_proj(h)) * self.up_proj(h))


class StableLM(nnx.Module):
    def __init__(self, words, width, heads, hidden, depth, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, hidden, rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, dtype=HALF, rngs=rngs)
        self.head = nnx.Linear(width, words, use_bias=False, dtype=HALF, rngs=rngs)

    def __call__(self, tokens, remat, split):
        call = nnx.remat(lambda block, x: block(x)) if remat else lambda block, x: block(x)
        x = jax.lax.with_sharding_constraint(self.embed(tokens), split)
        for block in self.blocks:
            x = jax.lax.with_sharding_constraint(call(block, x), split)
        return self.norm(x)


def stablelm(topology, chips, batch, micro, length=1024, words=100352, width=2048, heads=32, hidden=5632, depth=24, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split = NamedSharding(devices, P("fsdp"))
    graph, params, rest = nnx.split(nnx.eval_shape(lambda: StableLM(words, width, heads, hidden, depth, nnx.Rngs(0))), nnx.Param, ...)
    params = placed(params, largest_dimension(devices, "fsdp", 1 << 16))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    where = shardings(params)

    def train_step(params, opt_state, tokens):
        def loss_fn(params, tokens):
            net = nnx.merge(graph, params, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest))
            return entropy(net(tokens, remat, split), net.head.kernel[...], jnp.roll(tokens, -1, 1), chunks)

        parts = tokens.reshape(chips, micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
        parts = jax.lax.with_sharding_constraint(parts, NamedSharding(devices, P(None, "fsdp")))

        def one(total, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, total, grads), loss

        zeros = jax.tree.map(lambda a, w: jax.lax.with_sharding_constraint(jnp.zeros_like(a), w), params, where)
        grads, losses = jax.lax.scan(one, zeros, parts)
        updates, opt_state = transform.update(jax.tree.map(lambda g: g / micro, grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, losses.mean()

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (where, shardings(opt), None))


class Adapted(nnx.Module):
    """A frozen matrix in bfloat16 and its LoRA."""

    def __init__(self, a, b, rank, rngs):
        self.base = nnx.Linear(a, b, use_bias=False, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.lora = nnx.LoRA(a, rank, b, dtype=HALF, rngs=rngs)

    def __call__(self, x):
        return self.base(x) + 2 * self.lora(x)


class Tuned(nnx.Module):
    def __init__(self, width, heads, hidden, rank, rngs):
        lin = lambda a, b: Adapted(a, b, rank, rngs)
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = lin(width, width), lin(width, width), lin(width, width), lin(width, width)
        self.gate_proj, self.up_proj, self.down_proj = lin(width, hidden), lin(width, hidden), lin(hidden, width)
        self.norm1, self.norm2 = (nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs) for _ in "12")

    def __call__(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).reshape(*h.shape[:2], self.heads, -1) for f in (self.q_proj, self.k_proj, self.v_proj))
        x = x + self.o_proj(causal(turned(q, 130000.0), turned(k, 130000.0), v).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down_proj(nnx.silu(self.gate_proj(h)) * self.up_proj(h))


class SmolLM(nnx.Module):
    def __init__(self, words, width, heads, hidden, depth, rank, rngs):
        self.embed = nnx.Embed(words, width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.layers = nnx.List([Tuned(width, heads, hidden, rank, rngs) for _ in range(depth)])
        self.norm = nnx.RMSNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)

    def __call__(self, tokens, remat):
        call = nnx.remat(lambda layer, x: layer(x)) if remat else lambda layer, x: layer(x)
        x = self.embed(tokens)
        for layer in self.layers:
            x = call(layer, x)
        return self.norm(x)


def smollm(topology, chips, batch, length=1024, words=49152, width=2048, heads=32, hidden=8192, depth=24, rank=16, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = nnx.eval_shape(lambda: SmolLM(words, width, heads, hidden, depth, rank, nnx.Rngs(0)))
    graph, adapters, frozen, rest = nnx.split(net, nnx.LoRAParam, nnx.Param, ...)
    adapters, frozen = placed(adapters, whole), placed(frozen, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-4))
    opt = following(jax.eval_shape(transform.init, adapters), adapters, whole)

    def finetune_step(adapters, opt_state, frozen, batch):
        def loss_fn(adapters):
            here = jax.tree.map(lambda a: a, frozen)  # new variables of this trace, as nnx.remat wants
            net = nnx.merge(graph, adapters, here, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), rest))
            return entropy(net(batch["tokens"], remat), net.embed.embedding[...].T, batch["labels"], chunks)

        loss, grads = jax.value_and_grad(loss_fn)(adapters)
        updates, opt_state = transform.update(grads, opt_state, adapters)
        return optax.apply_updates(adapters, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(finetune_step, (adapters, opt, frozen, {"tokens": S(), "labels": S()}), classify, (0, 1) if donate else (), (shardings(adapters), shardings(opt), None))
