"""Linen: Pythia 1.4B (GPT-NeoX: attention and MLP side by side, a quarter of each head turned) learns texts of 1024, its 24 layers by nn.scan, weights in float32, computing in bfloat16, AdamW, fully sharded."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, flash, following, gradients, kind_of_step, shardings, training_step, turned
from recipe import Program, largest_dimension, mesh, placed


class NeoXLayer(nn.Module):
    heads: int
    devices: object
    kernel: bool

    @nn.compact
    def __call__(self, x, _):
        width = x.shape[-1]
        size = width // self.heads
        dense = lambda n, name: nn.Dense(n, dtype=HALF, kernel_init=nn.initializers.normal(0.02), name=name)
        h = nn.LayerNorm(epsilon=1e-5, dtype=HALF, name="input_layernorm")(x)
        qkv = dense(3 * width, "query_key_value")(h).reshape(*x.shape[:2], self.heads, 3 * size)
        q, k, v = jnp.split(qkv, 3, -1)
        part = lambda a: jnp.concatenate([turned(a[..., : size // 4], 10000.0), a[..., size // 4:]], -1)
        q, k = part(q), part(k)
        if self.kernel:
            spec = P("data")
            o = jax.shard_map(flash, mesh=self.devices, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)(q, k, v)
        else:
            o = causal(q, k, v)
        attention = dense(width, "attention_dense")(o.reshape(x.shape))
        h = nn.LayerNorm(epsilon=1e-5, dtype=HALF, name="post_attention_layernorm")(x)
        mlp = dense(width, "dense_4h_to_h")(nn.gelu(dense(4 * width, "dense_h_to_4h")(h), approximate=False))
        x = jax.lax.with_sharding_constraint(x + attention + mlp, NamedSharding(self.devices, P("data")))
        return x, None


class NeoX(nn.Module):
    words: int
    width: int
    depth: int
    heads: int
    devices: object
    kernel: bool
    remat: bool

    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(self.words, self.width, dtype=HALF, embedding_init=nn.initializers.normal(0.02), name="embed_in")(ids)
        x = jax.lax.with_sharding_constraint(x, NamedSharding(self.devices, P("data")))
        layer = nn.remat(NeoXLayer, prevent_cse=False) if self.remat else NeoXLayer
        scanned = nn.scan(layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = scanned(self.heads, self.devices, self.kernel, name="layers")(x, None)
        x = nn.LayerNorm(epsilon=1e-5, dtype=HALF, name="final_layer_norm")(x)
        return nn.Dense(self.words, use_bias=False, dtype=HALF, name="embed_out")(x)


def pythia(topology, chips, batch, length=1024, words=50304, width=2048, depth=24, heads=16, kernel=False, micro=1, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    net = NeoX(words, width, depth, heads, devices, kernel, remat)
    plain = NeoX(words, width, depth, heads, devices, False, False)
    params = jax.eval_shape(lambda: plain.init(jax.random.key(0), jnp.zeros((chips, 8), "int32")))["params"]
    params = placed(params, largest_dimension(devices, "data"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-4, b2=0.95, weight_decay=0.01))
    state = following(jax.eval_shape(transform.init, params), params, whole)

    def loss_fn(params, tokens):
        logits = net.apply({"params": params}, tokens).astype(jnp.float32)
        labels = jnp.roll(tokens, -1, 1)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    step = training_step(gradients(loss_fn, devices, micro), transform)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
