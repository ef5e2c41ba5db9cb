"""Haiku: the Evoformer of AlphaFold, 48 blocks in hk.experimental.layer_stack, each in hk.remat as AlphaFold does; masked residues of the alignment and distances; one crop of a protein or more for each device."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, largest_dimension, mesh, placed

norm = lambda name: hk.LayerNorm(-1, True, True, name=name)
lin = lambda n, name, bias=True: hk.Linear(n, with_bias=bias, name=name)


class Gated(hk.Module):
    """Attention over the last but one dimension, gated, with a bias from the pairs or without."""

    def __init__(self, heads, size, name):
        super().__init__(name=name)
        self.heads, self.size = heads, size

    def __call__(self, x, bias=None):
        x = norm("query_norm")(x)
        q, k, v = (lin(self.heads * self.size, n, False)(x).reshape(*x.shape[:-1], self.heads, self.size) for n in ("query", "key", "value"))
        scores = jnp.einsum("rqhd,rkhd->rhqk", q * self.size**-0.5, k).astype(jnp.float32)
        if bias is not None:
            scores = scores + bias
        seen = jnp.einsum("rhqk,rkhd->rqhd", jax.nn.softmax(scores).astype(x.dtype), v).reshape(*x.shape[:-1], -1)
        return lin(x.shape[-1], "output")(seen * jax.nn.sigmoid(lin(self.heads * self.size, "gating")(x)))


class Triangle(hk.Module):
    def __init__(self, equation, name):
        super().__init__(name=name)
        self.equation = equation

    def __call__(self, z):
        width = z.shape[-1]
        z = norm("layer_norm_input")(z)
        a, b = (lin(width, n + "_projection")(z) * jax.nn.sigmoid(lin(width, n + "_gate")(z)) for n in ("left", "right"))
        out = lin(width, "output_projection")(norm("center_layer_norm")(jnp.einsum(self.equation, a, b)))
        return out * jax.nn.sigmoid(lin(width, "gating_linear")(z))


def wide(x, name):
    return lin(x.shape[-1], name + "_2")(jax.nn.relu(lin(4 * x.shape[-1], name + "_1")(norm(name + "_norm")(x))))


class Block(hk.Module):
    def __call__(self, act):
        m, z = act  # [rows, places, 256], [places, places, 128]
        bias = jnp.einsum("qkh->hqk", lin(8, "feat_2d_weights", False)(norm("feat_2d_norm")(z)))
        m = m + Gated(8, 32, "msa_row_attention")(m, bias)
        m = m + Gated(8, 32, "msa_column_attention")(m.swapaxes(0, 1)).swapaxes(0, 1)
        m = m + wide(m, "msa_transition")
        h = norm("outer_norm")(m)
        left, right = lin(32, "left_projection")(h), lin(32, "right_projection")(h)
        outer = jnp.einsum("sic,sjd->ijcd", left, right).reshape(*z.shape[:2], -1)
        z = z + lin(z.shape[-1], "outer_output")(outer / m.shape[0])
        z = z + Triangle("ikc,jkc->ijc", "triangle_multiplication_outgoing")(z)
        z = z + Triangle("kjc,kic->ijc", "triangle_multiplication_incoming")(z)
        bias = lambda z, name: jnp.einsum("qkh->hqk", lin(4, name, False)(norm(name + "_norm")(z)))
        z = z + Gated(4, 32, "triangle_attention_starting_node")(z, bias(z, "start_bias"))
        t = z.swapaxes(0, 1)
        z = z + Gated(4, 32, "triangle_attention_ending_node")(t, bias(t, "end_bias")).swapaxes(0, 1)
        return m, z + wide(z, "pair_transition")


def evoformer(topology, chips, batch, crop=384, rows=128, depth=48, compute="float32", zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def net(msa, target):  # [rows, crop, 49], [crop, 22]
        m = lin(256, "preprocess_msa")(msa) + lin(256, "preprocess_1d")(target)
        z = lin(128, "left_single")(target)[:, None] + lin(128, "right_single")(target)[None]
        away = jnp.clip(jnp.arange(crop)[:, None] - jnp.arange(crop), -32, 32) + 32
        z = z + hk.Embed(65, 128, name="pair_activations")(away).astype(z.dtype)
        stack = hk.experimental.layer_stack(depth, name="evoformer_iteration")
        m, z = stack(hk.remat(lambda act: Block(name="block")(act)))((m, z))
        return lin(23, "masked_msa_head")(m), lin(64, "distogram_head")(z + z.swapaxes(0, 1))

    model = hk.without_apply_rng(hk.transform(net))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    params = placed(jax.eval_shape(model.init, jax.random.key(0), jax.ShapeDtypeStruct((rows, crop, 49), "float32"), jax.ShapeDtypeStruct((crop, 22), "float32")), whole)
    transform = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-3, eps=1e-6))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def one(params, msa, target, true_msa, distances):
        cast = lambda tree: jax.tree.map(lambda a: a.astype(compute), tree)
        words, far = model.apply(cast(params), cast(msa), cast(target))
        cross = lambda l, y: optax.softmax_cross_entropy_with_integer_labels(l.astype(jnp.float32), y).mean()
        return 2 * cross(words, true_msa) + 0.3 * cross(far, distances)

    def train_step(params, opt_state, batch):
        each = jax.shard_map(lambda p, *b: jax.vmap(one, (None, 0, 0, 0, 0))(p, *b), mesh=devices, in_specs=(P(), *[P("data")] * 4), out_specs=P("data"))
        loss, grads = jax.value_and_grad(lambda p: each(p, *[batch[n] for n in ("msa_feat", "target_feat", "true_msa", "distances")]).mean())(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    data = {"msa_feat": S("float32", rows, crop, 49), "target_feat": S("float32", crop, 22), "true_msa": S("int32", rows, crop), "distances": S("int32", crop, crop)}
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, opt, data), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
