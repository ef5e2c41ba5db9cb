"""Haiku: Enformer, gene expression from 196608 base pairs: a tower of convolutions, then a transformer with relative places."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def enformer(topology, chips, batch, length=196608, channels=1536, layers=11, heads=8, tracks=5313, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("i",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("i"))
    dtype = jnp.bfloat16 if half else jnp.float32
    gelu = lambda x: jax.nn.sigmoid(1.702 * x) * x

    def conv_block(x, out, size, name, training):
        x = hk.BatchNorm(True, True, 0.9, name=f"{name}_bn")(x.astype(jnp.float32), training).astype(dtype)
        return hk.Conv1D(out, size, name=f"{name}_conv")(gelu(x))

    def pool(x, name):
        """Softmax pooling of pairs, a weight for every channel."""
        x = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2])
        w = hk.Linear(x.shape[-1], with_bias=False, w_init=hk.initializers.Identity(2.0), name=f"{name}_pool")(x)
        return (x * jax.nn.softmax(w, -2)).sum(-2)

    def stage(x, out, name, training):
        x = conv_block(x, out, 5, f"{name}_a", training)
        x = x + conv_block(x, out, 1, f"{name}_b", training)
        return pool(x, name)

    def attention(x, name, size=64):
        n, value = x.shape[1], channels // heads
        part = lambda s, k: hk.Linear(heads * s, with_bias=False, name=f"{name}_{k}")(x).reshape(*x.shape[:2], heads, s)
        q, k, v = part(size, "q") * size**-0.5, part(size, "k"), part(value, "v")
        d = jnp.arange(-n + 1, n, dtype=jnp.float32)
        widths = 2.0 ** jnp.linspace(3, jnp.log2(n), value // 6)
        decay = jnp.exp(-jnp.log(2.0) * jnp.abs(d)[:, None] / widths)
        mask = (jnp.abs(d)[:, None] < widths).astype(jnp.float32)
        bell = jnp.exp(-0.5 * ((jnp.abs(d)[:, None] - widths) / (widths / 2)) ** 2)
        basis = jnp.concatenate([decay, mask, bell], -1)
        basis = jnp.concatenate([basis, jnp.sign(d)[:, None] * basis], -1).astype(dtype)
        r = hk.Linear(heads * size, with_bias=False, name=f"{name}_r")(basis).reshape(-1, heads, size)
        u, w = [hk.get_parameter(f"{name}_{k}", [heads, size], init=hk.initializers.RandomNormal(0.02)).astype(dtype) for k in "uw"]
        content = jnp.einsum("bqhd,bkhd->bhqk", q + u, k)
        relative = jnp.einsum("bqhd,khd->bhqk", q + w, r)
        relative = jnp.pad(relative, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(*relative.shape[:2], 2 * n, n)[:, :, 1:]
        relative = relative.reshape(*content.shape[:3], 2 * n - 1)[..., :n]
        p = jax.nn.softmax((content + relative).astype(jnp.float32)).astype(dtype)
        p = hk.dropout(hk.next_rng_key(), 0.05, p)
        o = jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(*x.shape[:2], -1)
        return hk.Linear(channels, name=f"{name}_o")(o)

    norm = lambda x, name: hk.LayerNorm(-1, True, True, name=name)(x.astype(jnp.float32)).astype(dtype)

    def transformer(x, name):
        x = x + hk.dropout(hk.next_rng_key(), 0.4, attention(norm(x, f"{name}_n1"), name))
        h = jax.nn.relu(hk.Linear(2 * channels, name=f"{name}_up")(norm(x, f"{name}_n2")))
        h = hk.Linear(channels, name=f"{name}_down")(hk.dropout(hk.next_rng_key(), 0.4, h))
        return x + hk.dropout(hk.next_rng_key(), 0.4, h)

    def forward(sequence):
        keep = (lambda f: hk.remat(f, static_argnums=())) if remat else (lambda f: f)
        x = hk.Conv1D(channels // 2, 15, name="stem")(sequence.astype(dtype))
        x = keep(lambda x: pool(x + conv_block(x, channels // 2, 1, "stem_b", True), "stem"))(x)
        sizes = [int(round(channels / 2 * 2 ** (i / 5) / 128) * 128) for i in range(6)]
        for i, out in enumerate(sizes):
            x = keep(lambda x, i=i, out=out: stage(x, out, f"tower{i}", True))(x)
        for i in range(layers):
            x = keep(lambda x, i=i: transformer(x, f"layer{i}"))(x)
        x = x[:, 320:-320]
        x = gelu(hk.dropout(hk.next_rng_key(), 0.05, conv_block(x, 2 * channels, 1, "last", True)))
        return jax.nn.softplus(hk.Linear(tracks, name="human")(x).astype(jnp.float32))

    if half:
        import jmp

        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        for kind in (hk.Linear, hk.Conv1D):
            hk.mixed_precision.set_policy(kind, policy)
    net = hk.transform_with_state(forward)
    params, kept = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, length, 4), "float32"))
    transform = optax.chain(optax.clip_by_global_norm(0.2), optax.adam(5e-4))

    def update(params, state, opt_state, rng, sequence, target):
        def loss_fn(params):
            out, new = net.apply(params, state, rng, sequence)
            return (out - target * jnp.log(out + 1e-6)).mean(), new

        (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), state, opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    args = (placed(params, whole), placed(kept, whole), placed(jax.eval_shape(transform.init, params), whole),
            jax.ShapeDtypeStruct((2,), "uint32", sharding=whole), S(length, 4), S(length // 128 - 640, tracks))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(update, args, classify, (0, 1, 2) if donate else ())
