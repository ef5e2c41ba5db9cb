"""Linen: BEiT large, masked patches told as words, layers by nn.scan over nn.remat with a policy, half precision, data parallel."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, largest_dimension, mesh, placed


class Layer(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, bias):
        width = x.shape[-1]
        h = nn.LayerNorm(dtype=HALF, name="layernorm_before")(x)
        q, k, v = (nn.DenseGeneral((self.heads, width // self.heads), dtype=HALF, name=n)(h) for n in ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * (width // self.heads) ** -0.5 + bias
        h = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores).astype(HALF), v)
        h = nn.DenseGeneral(width, (-2, -1), dtype=HALF, name="output")(h)
        x = x + h * self.param("lambda_1", nn.initializers.constant(0.1), (width,)).astype(HALF)
        h = nn.LayerNorm(dtype=HALF, name="layernorm_after")(x)
        h = nn.Dense(width, dtype=HALF, name="mlp_output")(nn.gelu(nn.Dense(4 * width, dtype=HALF, name="intermediate")(h), approximate=False))
        return x + h * self.param("lambda_2", nn.initializers.constant(0.1), (width,)).astype(HALF), None


class Beit(nn.Module):
    width: int
    heads: int
    depth: int
    patch: int
    words: int
    policy: str

    @nn.compact
    def __call__(self, images, masked):
        x = nn.Conv(self.width, (self.patch,) * 2, (self.patch,) * 2, padding="VALID", dtype=HALF, name="patch_embeddings")(images)
        x = x.reshape(x.shape[0], -1, self.width)
        hole = self.param("mask_token", nn.initializers.normal(0.02), (self.width,)).astype(HALF)
        x = jnp.where(masked[..., None], hole, x)
        bias = self.param("relative_position_bias", nn.initializers.zeros, (self.heads, x.shape[1], x.shape[1]))
        body = Layer if self.policy is None else nn.remat(Layer, prevent_cse=False, policy=None if self.policy == "nothing" else getattr(jax.checkpoint_policies, self.policy))
        x, _ = nn.scan(body, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=nn.broadcast, length=self.depth)(self.heads, name="encoder")(x, bias)
        return nn.Dense(self.words, dtype=HALF, name="lm_head")(nn.LayerNorm(dtype=HALF, name="layernorm")(x)).astype(jnp.float32)


def beit(topology, chips, batch, size=224, patch=16, width=1024, heads=16, depth=24, words=8192, policy="dots_saveable", zero=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net, places = Beit(width, heads, depth, patch, words, policy), (size // patch) ** 2
    transform = optax.chain(optax.clip_by_global_norm(3.0), optax.adamw(1.5e-3, b2=0.98, weight_decay=0.05))

    def make(key):
        params = net.init(key, jnp.zeros((1, size, size, 3)), jnp.zeros((1, places), bool))["params"]
        return train_state.TrainState.create(apply_fn=net.apply, params=params, tx=transform)

    state = placed(jax.eval_shape(make, jax.random.key(0)), whole)
    if zero:
        state = state.replace(opt_state=placed(state.opt_state, largest_dimension(devices, "data")))

    def train_step(state, batch):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, batch["pixel_values"], batch["mask"])
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["tokens"])
            return (losses * batch["mask"]).sum() / batch["mask"].sum()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"pixel_values": S("float32", size, size, 3), "mask": S("bool", places), "tokens": S("int32", places)}
    classify = lambda path: "opt" if "opt_state" in path or path.endswith(".step") else "weight" if path.startswith("[0]") else "input"
    return Program(train_step, (state, data), classify, (0,) if donate else (), (shardings(state), None))
