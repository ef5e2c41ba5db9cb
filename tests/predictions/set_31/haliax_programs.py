"""haliax: GPT-2 large as Levanter has it: named axes, hnn.Stacked, its own checkpoints, parameters divided by "embed", batch by "batch"."""

import sys

import equinox as eqx
import jax._src.tree_util

jax._src.tree_util.BuiltInKeyEntry = object  # haliax 1.3 names it, to annotate; this jax has it no longer
import haliax as hax
import haliax.nn as hnn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings
from recipe import Program, mesh, placed


def einsum(subscripts, *operands, precision=None, preferred_element_type=None, _dot_general=None):
    """What haliax 1.3 has of JAX' own einsum, which has moved since."""
    return jnp.einsum(subscripts, *operands, precision=precision, preferred_element_type=preferred_element_type)


for name in ("haliax._src.dot", "haliax._src.einsum"):
    sys.modules[name]._jittable_dg_einsum = einsum


class Attention(eqx.Module):
    c_attn: hnn.Linear
    c_proj: hnn.Linear

    @staticmethod
    def init(Embed, Heads, Size, *, key):
        k1, k2 = jax.random.split(key)
        return Attention(hnn.Linear.init(Embed, (hax.Axis("qkv", 3), Heads, Size), key=k1), hnn.Linear.init((Heads, Size), Embed, key=k2))

    def __call__(self, x, mask):
        q, k, v = self.c_attn(x).rearrange((..., "qkv", "heads", "position", "head_size")).unbind("qkv")
        k, v = k.rename({"position": "key_position"}), v.rename({"position": "key_position"})
        y = hnn.attention.dot_product_attention("key_position", "head_size", q, k, v, mask=mask, attention_dtype=jnp.float32)
        return self.c_proj(y.astype(x.dtype))


class Block(eqx.Module):
    ln_1: hnn.LayerNorm
    attn: Attention
    ln_2: hnn.LayerNorm
    c_fc: hnn.Linear
    c_proj: hnn.Linear

    @staticmethod
    def init(Embed, Heads, Size, Mlp, *, key):
        k1, k2, k3 = jax.random.split(key, 3)
        return Block(hnn.LayerNorm.init(Embed), Attention.init(Embed, Heads, Size, key=k1), hnn.LayerNorm.init(Embed), hnn.Linear.init(Embed, Mlp, key=k2), hnn.Linear.init(Mlp, Embed, key=k3))

    def __call__(self, x, mask):
        x = x + self.attn(self.ln_1(x), mask)
        x = x + self.c_proj(hnn.gelu(self.c_fc(self.ln_2(x))))
        return hax.auto_sharded(x)


class GPT(eqx.Module):
    wte: hnn.Embedding
    wpe: hnn.Embedding
    blocks: hnn.Stacked
    ln_f: hnn.LayerNorm

    @staticmethod
    def init(Vocab, Pos, Embed, Heads, Size, Mlp, Layers, remat, *, key):
        k1, k2, k3 = jax.random.split(key, 3)
        blocks = hnn.Stacked.init(Layers, Block, gradient_checkpointing=remat)(Embed, Heads, Size, Mlp, key=jax.random.split(k1, Layers.size))
        return GPT(hnn.Embedding.init(Vocab, Embed, key=k2), hnn.Embedding.init(Pos, Embed, key=k3), blocks, hnn.LayerNorm.init(Embed))

    def __call__(self, tokens):
        Pos = tokens.resolve_axis("position")
        mask = hnn.attention.causal_mask(Pos, Pos.alias("key_position"))
        x = hax.auto_sharded(self.wte.embed(tokens) + self.wpe.embed(hax.arange(Pos)))
        return self.wte.unembed(self.ln_f(self.blocks.fold(x, mask)))


def gpt2(topology, chips, batch, length=1024, words=50257, width=1600, heads=25, depth=48, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    Batch, Pos, Vocab, Embed = hax.Axis("batch", batch), hax.Axis("position", length), hax.Axis("vocab", words), hax.Axis("embed", width)
    Heads, Size, Mlp, Layers = hax.Axis("heads", heads), hax.Axis("head_size", width // heads), hax.Axis("mlp", 4 * width), hax.Axis("layers", depth)
    compute, store = {"batch": "data"}, {"embed": "data"}
    model = eqx.filter_eval_shape(lambda: GPT.init(Vocab, Pos, Embed, Heads, Size, Mlp, Layers, remat, key=jax.random.key(0)))
    array = lambda a: isinstance(a, jax.ShapeDtypeStruct)
    params, static = eqx.partition(model, array)
    named = lambda a: isinstance(a, hax.NamedArray)
    one = lambda a: hax.NamedArray(jax.ShapeDtypeStruct(a.array.shape, a.array.dtype, sharding=NamedSharding(devices, P(*[store.get(x.name) for x in a.axes]))), a.axes)
    params = jax.tree.map(one, params, is_leaf=named)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))

    def train_step(params, opt_state, batch):
        tokens = hax.named(batch, (Batch, Pos))

        def loss_fn(params):
            net = eqx.combine(jax.tree.map(lambda a: a.astype(HALF), params), static)
            with hax.axis_mapping(compute):
                logits = hax.auto_sharded(net(tokens)).astype(jnp.float32)
                target = hnn.one_hot(hax.roll(tokens, -1, Pos), Vocab, dtype=jnp.float32)
                return hnn.cross_entropy_loss(logits, Vocab, target).mean().scalar()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        with hax.axis_mapping(store):
            grads = hax.auto_sharded(grads)
        updates, opt_state = transform.update(grads, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("data")))
    devices.__enter__()
    hax.partitioning._get_mesh = lambda: devices  # where it looks for it, this jax has none
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
