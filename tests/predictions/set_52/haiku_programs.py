"""Haiku: Enformer (a stem and six stages of convolutions on 196608 bases, 11 layers of 1536 on 1536 places of 128 bases) learns the 5313 human tracks, float32, batch norm, dropout, Poisson's loss, Adam, data parallel; layers one after another."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed

STAGES = (768, 896, 1024, 1152, 1280, 1536)


def gelu(x):
    return jax.nn.sigmoid(1.702 * x) * x


def conv(x, channels, size, name):
    h = hk.BatchNorm(True, True, 0.9, name=f"{name}_norm")(x, is_training=True)
    return hk.Conv1D(channels, size, name=name)(gelu(h))


def pooled(x, name):
    """Softmax over each two places, weighted by each channel."""
    h = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2])
    logits = hk.Linear(x.shape[2], with_bias=False, w_init=hk.initializers.Constant(0.0), name=name)(h)
    return (h * jax.nn.softmax(logits, axis=2)).sum(2)


def dropped(x, rate):
    return hk.dropout(hk.next_rng_key(), rate, x)


def basis(length, count):
    """Of how far and where: exponential, within, gamma; and the same with its sign."""
    far = jnp.arange(-length + 1, length, dtype=jnp.float32)
    n, a = count // 6, jnp.abs(far)[:, None]
    half_life = 2.0 ** jnp.linspace(3.0, jnp.log2(length), n)
    first = jnp.exp(-jnp.log(2.0) / half_life * a)
    second = (2.0 ** jnp.arange(1, n + 1) - 1 > a).astype(jnp.float32)
    mean = jnp.linspace(length / n, length, n)
    shape, rate = (mean / (length / 2 / n)) ** 2, mean / (length / 2 / n) ** 2
    gamma = jnp.exp(jax.scipy.stats.gamma.logpdf(a, shape, scale=1 / rate)) + 1e-8
    both = jnp.concatenate([first, second, gamma / gamma.max()], -1)
    return jnp.concatenate([both, jnp.sign(far)[:, None] * both], -1)


def attention(x, heads=8, key=64):
    b, length, width = x.shape
    q, k, v = (hk.Linear(heads * size, with_bias=False, name=n)(x).reshape(b, length, heads, size) for n, size in (("query", key), ("key", key), ("value", width // heads)))
    q = q * key**-0.5
    near = dropped(basis(length, width // heads).astype(x.dtype), 0.01)
    r = hk.Linear(heads * key, with_bias=False, name="relative")(near).reshape(2 * length - 1, heads, key)
    bias = lambda n: hk.get_parameter(n, (heads, key), init=hk.initializers.RandomNormal(0.02)).astype(x.dtype)
    content = jnp.einsum("bqhc,bkhc->bhqk", q + bias("word_bias"), k)
    place = jnp.einsum("bqhc,khc->bhqk", q + bias("place_bias"), r)
    place = jnp.pad(place, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(b, heads, 2 * length, length)[:, :, 1:].reshape(b, heads, length, 2 * length - 1)[..., :length]
    o = jnp.einsum("bhqk,bkhc->bqhc", dropped(jax.nn.softmax(content + place), 0.05), v)
    return hk.Linear(width, name="out")(o.reshape(x.shape))


def stage(x, i):
    x = conv(x, STAGES[i], 5, f"stage_{i}_conv")
    x = x + conv(x, STAGES[i], 1, f"stage_{i}_point")
    return pooled(x, f"stage_{i}_pool")


def layer(x, i):
    with hk.experimental.name_scope(f"layer_{i}"):
        norm = lambda n: hk.LayerNorm(-1, True, True, name=n)
        x = x + dropped(attention(norm("norm_1")(x)), 0.4)
        h = dropped(hk.Linear(2 * x.shape[-1], name="up")(norm("norm_2")(x)), 0.4)
        return x + dropped(hk.Linear(x.shape[-1], name="down")(jax.nn.relu(h)), 0.4)


def enformer(topology, chips, batch, bases=196608, depth=11, tracks=5313, kept=896, compute="float32", micro=1, donate=True):
    if compute != "float32":
        policy = jmp.Policy(compute_dtype=jnp.dtype(compute), param_dtype=jnp.float32, output_dtype=jnp.dtype(compute))
        for module in (hk.Conv1D, hk.LayerNorm, hk.Linear, hk.BatchNorm):
            hk.mixed_precision.set_policy(module, policy)
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def forward(dna):
        x = hk.Conv1D(768, 15, name="stem")(dna.astype(compute))
        x = pooled(x + conv(x, 768, 1, "stem_point"), "stem_pool")
        for i in range(6):
            x = stage(x, i)
        for i in range(depth):
            x = layer(x, i)
        cut = (x.shape[1] - kept) // 2
        x = gelu(dropped(conv(x[:, cut : cut + kept], 3072, 1, "final"), 0.05))
        return jax.nn.softplus(hk.Linear(tracks, name="human")(x).astype(jnp.float32))

    net = hk.transform_with_state(forward)
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"dna": S("float32", bases, 4), "tracks": S("float32", kept, tracks)}
    params, state = placed(jax.eval_shape(lambda key, dna: net.init(key, dna), jax.random.key(0), jax.ShapeDtypeStruct((1, bases, 4), "float32")), whole)
    transform = optax.chain(optax.clip_by_global_norm(0.2), optax.adam(5e-4))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, state, data, key):
        out, state = net.apply(params, state, key, data["dna"])
        return (out - data["tracks"] * jnp.log(out + 1e-6)).mean(), state

    def gradients(params, state, data, key):
        whole_step = jax.value_and_grad(loss_fn, has_aux=True)
        if micro == 1:
            return whole_step(params, state, data, key)

        def parts(a):
            a = a.reshape(chips, micro, -1, *a.shape[1:]).swapaxes(0, 1)
            return jax.lax.with_sharding_constraint(a.reshape(micro, -1, *a.shape[3:]), NamedSharding(devices, P(None, "data")))

        def add(carry, xs):
            total, state = carry
            (loss, state), grads = whole_step(params, state, *xs)
            return (jax.tree.map(jnp.add, total, grads), state), loss

        (grads, state), losses = jax.lax.scan(add, (jax.tree.map(jnp.zeros_like, params), state), (jax.tree.map(parts, data), jax.random.split(key, micro)))
        return (losses.mean(), state), jax.tree.map(lambda g: g / micro, grads)

    def train_step(params, state, opt_state, data, seed):
        (loss, state), grads = gradients(params, state, data, jax.random.wrap_key_data(seed))
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), state, opt_state, loss

    seed = jax.ShapeDtypeStruct((2,), "uint32", sharding=whole)
    classify = lambda path: {"[0]": "weight", "[1]": "other", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, state, opt, data, seed), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(state), shardings(opt), None))
