"""Linen: CLIP ViT-B/16 (pictures of 224, 197 places of 768; texts of 77 of 512; 12 layers each by nn.scan) learns which text belongs to which picture, over the pictures and texts of all devices, weights in float32, computing in bfloat16, AdamW, data parallel."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, kind_of_step, shardings
from recipe import Program, mesh, placed


def stored_as(transform, dtype):
    """Its moments kept in `dtype`, its sums in float32."""
    cast = lambda tree, d: jax.tree.map(lambda a: a.astype(d) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree)

    def update(grads, state, params):
        updates, state = transform.update(grads, cast(state, "float32"), params)
        return updates, cast(state, dtype)

    return optax.GradientTransformation(lambda params: cast(transform.init(params), dtype), update)


class Block(nn.Module):
    heads: int
    causal: bool

    @nn.compact
    def __call__(self, x, _):
        width = x.shape[-1]
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2], "int32")) if self.causal else None
        h = nn.LayerNorm(dtype=HALF, name="ln_1")(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=HALF, deterministic=True, name="attn")(h, h, mask=mask)
        h = nn.Dense(4 * width, dtype=HALF, name="mlp_in")(nn.LayerNorm(dtype=HALF, name="ln_2")(x))
        return x + nn.Dense(width, dtype=HALF, name="mlp_out")(h * nn.sigmoid(1.702 * h)), None


class Tower(nn.Module):
    depth: int
    heads: int
    causal: bool
    remat: bool

    @nn.compact
    def __call__(self, x):
        block = nn.remat(Block, prevent_cse=False) if self.remat else Block
        stack = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth, in_axes=nn.broadcast)
        return stack(self.heads, self.causal, name="layers")(x, None)[0]


class CLIP(nn.Module):
    depth: int
    remat: bool

    @nn.compact
    def __call__(self, pictures, tokens):
        x = nn.Conv(768, (16, 16), (16, 16), use_bias=False, dtype=HALF, name="patches")(pictures.astype(HALF))
        x = x.reshape(x.shape[0], -1, 768)
        first = self.param("class", nn.initializers.normal(0.02), (768,))
        x = jnp.concatenate([jnp.broadcast_to(first.astype(HALF), (x.shape[0], 1, 768)), x], 1)
        x = x + self.param("places", nn.initializers.normal(0.01), (x.shape[1], 768)).astype(HALF)
        x = Tower(self.depth, 12, False, self.remat, name="visual")(nn.LayerNorm(dtype=HALF, name="ln_pre")(x))
        seen = nn.Dense(512, use_bias=False, dtype=HALF, name="visual_projection")(nn.LayerNorm(dtype=HALF, name="ln_post")(x[:, 0]))
        t = nn.Embed(49408, 512, dtype=HALF, name="words")(tokens)
        t = t + self.param("text_places", nn.initializers.normal(0.01), (tokens.shape[1], 512)).astype(HALF)
        t = nn.LayerNorm(dtype=HALF, name="ln_final")(Tower(self.depth, 8, True, self.remat, name="text")(t))
        t = jnp.take_along_axis(t, tokens.argmax(-1)[:, None, None], 1)[:, 0]
        read = nn.Dense(512, use_bias=False, dtype=HALF, name="text_projection")(t)
        one = lambda a: a.astype(jnp.float32) / jnp.linalg.norm(a.astype(jnp.float32), axis=-1, keepdims=True)
        return one(seen), one(read), jnp.exp(self.param("scale", nn.initializers.constant(2.6593), ()))


def clip(topology, chips, batch, side=224, words=77, depth=12, remat=False, moments="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = CLIP(depth, remat)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, side, side, 3)), jnp.zeros((1, words), "int32")))["params"]
    params = placed(params, whole)
    transform = stored_as(optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 5e-4, 2000, 100000), b2=0.98, eps=1e-6, weight_decay=0.2), moments)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, data):
        seen, read, scale = net.apply({"params": params}, data["pictures"], data["tokens"])
        logits = scale * seen @ jax.lax.with_sharding_constraint(read, whole).T
        back = scale * read @ jax.lax.with_sharding_constraint(seen, whole).T
        labels = jnp.arange(batch)
        wrong = optax.softmax_cross_entropy_with_integer_labels
        return (wrong(logits, labels).mean() + wrong(back, labels).mean()) / 2

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"pictures": S("float32", side, side, 3), "tokens": S("int32", words)}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
