"""dm-haiku: a VQ-VAE as of its example, with its VectorQuantizerEMA."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, largest_dimension, mesh, placed


class Residual(hk.Module):
    def __init__(self, hidden, layers, inner, name=None):
        super().__init__(name)
        self.hidden, self.layers, self.inner = hidden, layers, inner

    def __call__(self, x):
        for i in range(self.layers):
            y = hk.Conv2D(self.inner, 3, name=f"res3x3_{i}")(jax.nn.relu(x))
            x = x + hk.Conv2D(self.hidden, 1, name=f"res1x1_{i}")(jax.nn.relu(y))
        return jax.nn.relu(x)


def vqvae(topology, chips, batch, size, codes, hidden=128, layers=2, inner=64, dim=64, half=False, donate=True):
    dtype = jnp.bfloat16 if half else jnp.float32

    def forward(images):
        x = jax.nn.relu(hk.Conv2D(hidden // 2, 4, 2, name="enc_1")(images))
        x = jax.nn.relu(hk.Conv2D(hidden, 4, 2, name="enc_2")(x))
        x = Residual(hidden, layers, inner, "enc_residual")(hk.Conv2D(hidden, 3, name="enc_3")(x))
        z = hk.Conv2D(dim, 1, name="to_vq")(x)
        out = hk.nets.VectorQuantizerEMA(embedding_dim=dim, num_embeddings=codes, commitment_cost=0.25, decay=0.99)(z.astype(jnp.float32), True)
        x = hk.Conv2D(hidden, 3, name="dec_1")(out["quantize"].astype(images.dtype))
        x = Residual(hidden, layers, inner, "dec_residual")(x)
        x = jax.nn.relu(hk.Conv2DTranspose(hidden // 2, 4, 2, name="dec_2")(x))
        return hk.Conv2DTranspose(3, 4, 2, name="dec_3")(x), out["loss"]

    net = hk.transform_with_state(forward)
    images = jax.ShapeDtypeStruct((batch, size, size, 3), "float32")
    params, state = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, size, size, 3), "float32"))
    transform = optax.adam(3e-4)

    def loss_fn(params, state, images):
        cast = lambda tree: jax.tree.map(lambda a: a.astype(dtype), tree)
        (out, loss), state = net.apply(cast(params), state, None, cast(images))
        return jnp.mean((out.astype(jnp.float32) - images) ** 2) / 0.06 + loss, state

    def train_step(params, state, opt_state, images):
        (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, images)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), state, opt_state, loss

    devices = mesh(topology, (chips,), ("i",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("i"))
    args = (*(placed(x, whole) for x in (params, state, jax.eval_shape(transform.init, params))), placed(images, split))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, args, classify, (0, 1, 2) if donate else ())


def gpt(topology, chips, batch, length, depth, width, heads, vocabulary, constrain=False, remat=False, shard=True, donate=True):
    """A causal transformer of Haiku's MultiHeadAttention, its layers in hk.experimental.layer_stack; weights divided as FSDP does."""
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    keep = (lambda a: jax.lax.with_sharding_constraint(a, split)) if constrain else lambda a: a

    def block(x):
        mask = jnp.tril(jnp.ones((1, 1, length, length)))
        init = hk.initializers.VarianceScaling(2 / depth)
        norm = lambda x, name: hk.LayerNorm(-1, True, True, name=name)(x)
        y = norm(x, "norm_1")
        x = keep(x + hk.MultiHeadAttention(heads, width // heads, w_init=init, name="attention")(y, y, y, mask))
        y = jax.nn.gelu(hk.Linear(4 * width, w_init=init, name="mlp_in")(norm(x, "norm_2")))
        return keep(x + hk.Linear(width, w_init=init, name="mlp_out")(y))

    def forward(tokens):
        x = keep(hk.Embed(vocabulary, width, name="embed")(tokens) + hk.get_parameter("places", (length, width), init=hk.initializers.TruncatedNormal(0.02)))
        x = hk.experimental.layer_stack(depth)(hk.remat(block) if remat else block)(x)
        return hk.Linear(vocabulary, name="head")(hk.LayerNorm(-1, True, True, name="norm")(x))

    net = hk.without_apply_rng(hk.transform(forward))
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((2, length), "int32"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4))
    where = largest_dimension(devices, "fsdp") if shard else whole
    params, state = placed(params, where), placed(jax.eval_shape(transform.init, params), where)

    def loss_fn(params, tokens):
        logits = net.apply(jax.tree.map(lambda a: a.astype(jnp.bfloat16), params), tokens).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    outs = (*(jax.tree.map(lambda a: a.sharding, x) for x in (params, state)), None)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, state, tokens), classify, (0, 1) if donate else (), outs)
