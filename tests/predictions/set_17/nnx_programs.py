"""Flax NNX: the vision transformer of JAX's tutorials (its own MultiHeadAttention, Dropout, LayerNorm), weights whole or divided."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_nnx, shardings
from recipe import Program, largest_dimension, mesh, placed


class Encoder(nnx.Module):
    def __init__(self, width, hidden, heads, rate, dtype, rngs):
        self.norm1 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(heads, width, dropout_rate=rate, broadcast_dropout=False, decode=False, deterministic=False, dtype=dtype, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.mlp = nnx.Sequential(
            nnx.Linear(width, hidden, dtype=dtype, rngs=rngs), nnx.gelu, nnx.Dropout(rate, rngs=rngs),
            nnx.Linear(hidden, width, dtype=dtype, rngs=rngs), nnx.Dropout(rate, rngs=rngs))

    def __call__(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nnx.Module):
    def __init__(self, size, patch, width, hidden, heads, depth, rate, classes, dtype, remat, rngs):
        count = (size // patch) ** 2
        self.patch_embeddings = nnx.Conv(3, width, (patch, patch), (patch, patch), padding="VALID", dtype=dtype, rngs=rngs)
        init = jax.nn.initializers.truncated_normal(0.02)
        self.position_embeddings = nnx.Param(init(rngs.params(), (1, count + 1, width), jnp.float32))
        self.cls_token = nnx.Param(jnp.zeros((1, 1, width)))
        self.dropout = nnx.Dropout(rate, rngs=rngs)
        self.encoder = nnx.List([Encoder(width, hidden, heads, rate, dtype, rngs) for _ in range(depth)])
        self.final_norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.classifier = nnx.Linear(width, classes, dtype=dtype, rngs=rngs)
        self.remat, self.dtype = remat, dtype

    def __call__(self, x):
        patches = self.patch_embeddings(x)
        batch = patches.shape[0]
        patches = patches.reshape(batch, -1, patches.shape[-1])
        token = jnp.tile(self.cls_token[...], (batch, 1, 1)).astype(self.dtype)
        x = self.dropout(jnp.concatenate([token, patches], 1) + self.position_embeddings[...].astype(self.dtype))
        for i, layer in enumerate(self.encoder):
            x = (nnx.remat(lambda layer, x: layer(x)) if i < self.remat else (lambda layer, x: layer(x)))(layer, x)
        return self.classifier(self.final_norm(x)[:, 0]).astype(jnp.float32)


def vit(topology, chips, batch, size, patch, width, hidden, heads, depth, half=False, remat=0, fsdp=False, rate=0.1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    dtype = jnp.bfloat16 if half else jnp.float32
    model = nnx.eval_shape(lambda: VisionTransformer(size, patch, width, hidden, heads, depth, rate, 1000, dtype, remat, nnx.Rngs(0)))
    transform = optax.adam(1e-3)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)
    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    cut = largest_dimension(devices, "data") if fsdp else whole
    net_state, opt_state = placed(net_state, cut), placed(opt_state, cut)

    def train_step(model, opt_state, images, labels):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, opt_state)
        loss_fn = lambda net: optax.softmax_cross_entropy_with_integer_labels(net(images), labels).mean()
        loss, grads = nnx.value_and_grad(loss_fn)(net)
        opt.update(net, grads)
        return nnx.state(net), nnx.state(opt), loss

    images = jax.ShapeDtypeStruct((batch, size, size, 3), "float32", sharding=split)
    labels = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    outs = (shardings(net_state), shardings(opt_state), None)

    def classify(path):
        if path.startswith("[1]"):
            return "opt"
        return kind_of_nnx(path)

    return Program(train_step, (net_state, opt_state, images, labels), classify, (0, 1) if donate else (), outs)
