"""Haiku: AlphaFold 2's evoformer (48 blocks by hk.layer_stack, each in hk.remat; 128 sequences by 256 residues of 256, pairs of 128) learns hidden residues and distances, float32, Adam, one protein of each device."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program, mesh, placed


def norm(x, name):
    return hk.LayerNorm(-1, True, True, name=name)(x)


def evoformer(topology, chips, batch, sequences=128, residues=256, depth=48, compute="float32", rows=0, donate=True):
    if compute != "float32":
        policy = jmp.Policy(compute_dtype=jnp.dtype(compute), param_dtype=jnp.float32, output_dtype=jnp.dtype(compute))
        for module in (hk.Linear, hk.LayerNorm):
            hk.mixed_precision.set_policy(module, policy)
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def attention(x, name, heads, size=32, pair=None):
        """Along the last but one dimension of x [batch, rows, length, channels], gated; biased by pairs [batch, length, length, channels]."""
        with hk.experimental.name_scope(name):
            width = x.shape[-1]
            h = norm(x, "norm")
            q, k, v, g = (hk.Linear(heads * size, with_bias=n == "gate", name=n)(h).reshape(*h.shape[:-1], heads, size) for n in ("query", "key", "value", "gate"))
            bias = None if pair is None else jnp.moveaxis(hk.Linear(heads, with_bias=False, name="bias")(pair), -1, 1)[:, None]

            def part(q, bias):
                s = jnp.einsum("brqhc,brkhc->brhqk", q * size**-0.5, k)
                s = s if bias is None else s + bias
                return jnp.einsum("brhqk,brkhc->brqhc", jax.nn.softmax(s), v)

            if rows:
                n = x.shape[2] // rows
                cut = jnp.moveaxis(q.reshape(*q.shape[:2], n, rows, *q.shape[3:]), 2, 0)
                near = None if bias is None else jnp.moveaxis(bias.reshape(*bias.shape[:3], n, rows, -1), 3, 0)
                o = jax.lax.map(jax.checkpoint(lambda xs: part(*xs)), (cut, near))
                o = jnp.moveaxis(o, 0, 2).reshape(q.shape)
            else:
                o = part(q, bias)
            o = (o * jax.nn.sigmoid(g)).reshape(*h.shape[:-1], -1)
            return hk.Linear(width, name="out")(o)

    def transition(x, name):
        with hk.experimental.name_scope(name):
            return hk.Linear(x.shape[-1], name="down")(jax.nn.relu(hk.Linear(4 * x.shape[-1], name="up")(norm(x, "norm"))))

    def triangle(z, name, sums):
        with hk.experimental.name_scope(name):
            width = z.shape[-1]
            h = norm(z, "norm")
            gated = lambda n: hk.Linear(width, name=n)(h) * jax.nn.sigmoid(hk.Linear(width, name=n + "_gate")(h))
            o = norm(jnp.einsum(sums, gated("left"), gated("right")), "norm_out")
            return hk.Linear(width, name="out")(o) * jax.nn.sigmoid(hk.Linear(width, name="gate")(h))

    def outer(m):
        with hk.experimental.name_scope("outer"):
            h = norm(m, "norm")
            a, b = (hk.Linear(32, name=n)(h) for n in ("left", "right"))
            o = jnp.einsum("bsic,bsjd->bijcd", a, b) / m.shape[1]
            return hk.Linear(128, name="out")(o.reshape(*o.shape[:3], -1))

    def block(m, z):
        m = m + attention(m, "rows", 8, pair=norm(z, "pair_norm"))
        m = m + attention(m.swapaxes(1, 2), "columns", 8).swapaxes(1, 2)
        m = m + transition(m, "msa_mlp")
        z = z + outer(m)
        z = z + triangle(z, "outgoing", "bikc,bjkc->bijc")
        z = z + triangle(z, "incoming", "bkjc,bkic->bijc")
        z = z + attention(z, "starting", 4, pair=z)
        t = z.swapaxes(1, 2)
        z = z + attention(t, "ending", 4, pair=t).swapaxes(1, 2)
        return m, z + transition(z, "pair_mlp")

    def forward(data):
        m = hk.Linear(256, name="msa")(data["msa"].astype(compute)) + hk.Linear(256, name="target_msa")(data["target"].astype(compute))[:, None]
        a, b = (hk.Linear(128, name=n)(data["target"].astype(compute)) for n in ("left", "right"))
        gap = jnp.clip(jnp.arange(residues)[:, None] - jnp.arange(residues), -32, 32) + 32
        z = a[:, :, None] + b[:, None] + hk.Linear(128, name="gap")(jax.nn.one_hot(gap, 65, dtype=compute))[None]

        def one(m, z):
            return hk.remat(block)(m, z)

        m, z = hk.layer_stack(depth, name="trunk")(one)(m, z)
        return hk.Linear(23, name="hidden")(m).astype(jnp.float32), hk.Linear(64, name="distances")(z + z.swapaxes(1, 2)).astype(jnp.float32)

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {
        "msa": S("float32", sequences, residues, 49), "target": S("float32", residues, 22), "true_msa": S("int32", sequences, residues), "hidden": S("float32", sequences, residues),
        "bins": S("int32", residues, residues)}
    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), data), whole)
    transform = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-3))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        said, far = net.apply(params, data)
        wrong = optax.softmax_cross_entropy_with_integer_labels(said, data["true_msa"]) * data["hidden"]
        return wrong.sum() / data["hidden"].sum() * 2.0 + 0.3 * optax.softmax_cross_entropy_with_integer_labels(far, data["bins"]).mean()

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
