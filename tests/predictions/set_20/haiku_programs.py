"""Haiku: AlphaFold's Evoformer trunk, its 48 blocks stacked by hk.layer_stack (a scan), trained on masked MSAs and distances."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def evoformer(topology, chips, batch, rows=128, residues=256, blocks=48, cm=256, cz=128, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("i",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("i"))
    dtype = jnp.bfloat16 if half else jnp.float32
    norm = lambda x, name: hk.LayerNorm(-1, True, True, name=name)(x.astype(jnp.float32)).astype(dtype)
    lin = lambda x, n, name: hk.Linear(n, name=name)(x)

    def attention(x, heads, size, name, bias=None):
        """x: [batch, rows, length, channels], along the length."""
        part = lambda n: lin(x, heads * size, f"{name}_{n}").reshape(*x.shape[:-1], heads, size)
        q, k, v, g = part("q") * size**-0.5, part("k"), part("v"), jax.nn.sigmoid(part("g"))
        s = jnp.einsum("brqhd,brkhd->brhqk", q, k).astype(jnp.float32)
        s = s if bias is None else s + bias.astype(jnp.float32)[:, None]
        o = jnp.einsum("brhqk,brkhd->brqhd", jax.nn.softmax(s).astype(dtype), v) * g
        return lin(o.reshape(*x.shape[:-1], -1), x.shape[-1], f"{name}_o")

    def transition(x, name):
        return lin(jax.nn.relu(lin(norm(x, f"{name}_n"), 4 * x.shape[-1], f"{name}_1")), x.shape[-1], f"{name}_2")

    def triangle(z, name, outgoing):
        h = norm(z, f"{name}_n")
        gated = lambda n: lin(h, cz, f"{name}_{n}") * jax.nn.sigmoid(lin(h, cz, f"{name}_{n}g"))
        a, b = gated("a"), gated("b")
        o = jnp.einsum("bikc,bjkc->bijc" if outgoing else "bkic,bkjc->bijc", a, b)
        return lin(norm(o, f"{name}_m"), cz, f"{name}_o") * jax.nn.sigmoid(lin(h, cz, f"{name}_g"))

    def block(m, z):
        bias = lin(norm(z, "pair_n"), 8, "pair_bias").transpose(0, 3, 1, 2)
        m = m + attention(norm(m, "row_n"), 8, 32, "row", bias)
        m = m + attention(norm(m, "column_n").swapaxes(1, 2), 8, 32, "column").swapaxes(1, 2)
        m = m + transition(m, "msa")
        h = norm(m, "outer_n")
        a, b = lin(h, 32, "outer_a"), lin(h, 32, "outer_b")
        outer = jnp.einsum("bric,brjd->bijcd", a, b) / rows
        z = z + lin(outer.reshape(*outer.shape[:3], -1), cz, "outer_o")
        z = z + triangle(z, "out", True)
        z = z + triangle(z, "in", False)
        for name, turn in (("start", lambda a: a), ("end", lambda a: a.swapaxes(1, 2))):
            h = turn(norm(z, f"{name}_n"))
            z = z + turn(attention(h, 4, 32, name, lin(h, 4, f"{name}_bias").transpose(0, 3, 1, 2)))
        return m, z + transition(z, "pair")

    def forward(msa, pair):
        m, z = lin(msa.astype(dtype), cm, "msa_in"), lin(pair.astype(dtype), cz, "pair_in")
        body = hk.remat(block) if remat else block
        m, z = hk.experimental.layer_stack(blocks)(body)(m, z)
        return lin(m, 23, "msa_out").astype(jnp.float32), lin(z + z.swapaxes(1, 2), 64, "distances").astype(jnp.float32)

    if half:
        import jmp

        hk.mixed_precision.set_policy(hk.Linear, jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16"))
    net = hk.without_apply_rng(hk.transform(forward))
    small = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    params = jax.eval_shape(net.init, jax.random.key(0), small(1, rows, 8, 49), small(1, 8, 8, 65))
    transform = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-3))

    def update(params, opt_state, msa, pair, true_msa, true_bins):
        def loss_fn(params):
            m, d = net.apply(params, msa, pair)
            entropy = optax.softmax_cross_entropy_with_integer_labels
            return 2 * entropy(m, true_msa).mean() + 0.3 * entropy(d, true_bins).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), S("float32", rows, residues, 49), S("float32", residues, residues, 65),
            S("int32", rows, residues), S("int32", residues, residues))
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(update, args, classify, (0, 1) if donate else ())
