"""NNX: ViT-g/14 with nnx.LoRALinear on its projections; what is not LoRA is frozen, half precision; layers in a Python loop, data parallel."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh, placed


class Layer(nnx.Module):
    def __init__(self, width, hidden, heads, rank, rngs):
        low = lambda a, b: nnx.LoRALinear(a, b, lora_rank=rank, dtype=HALF, param_dtype=HALF, lora_param_dtype=jnp.float32, lora_dtype=HALF, rngs=rngs)
        self.norm1, self.norm2 = (nnx.LayerNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs) for _ in range(2))
        self.query, self.key, self.value, self.out = (low(width, width) for _ in range(4))
        self.fc1, self.fc2 = low(width, hidden), low(hidden, width)
        self.heads = heads

    def __call__(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).reshape(*h.shape[:2], self.heads, -1) for f in (self.query, self.key, self.value))
        x = x + self.out(nnx.dot_product_attention(q, k, v).reshape(x.shape))
        return x + self.fc2(nnx.gelu(self.fc1(self.norm2(x))))


class ViT(nnx.Module):
    def __init__(self, size, patch, width, hidden, depth, heads, rank, remat, classes, rngs):
        self.patches = nnx.Conv(3, width, (patch, patch), (patch, patch), padding="VALID", dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.positions = nnx.Param(jnp.zeros((1, (size // patch) ** 2, width), HALF))
        self.layers = nnx.List([Layer(width, hidden, heads, rank, rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.head = nnx.LoRALinear(width, classes, lora_rank=rank, dtype=HALF, param_dtype=HALF, lora_param_dtype=jnp.float32, lora_dtype=HALF, rngs=rngs)
        self.remat = remat

    def __call__(self, images):
        x = self.patches(images.astype(HALF))
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + self.positions[...]
        for i, layer in enumerate(self.layers):
            x = nnx.remat(lambda layer, x: layer(x))(layer, x) if i < self.remat else layer(x)
        return self.head(self.norm(x).mean(1))


def vit_lora(topology, chips, batch, size=224, patch=14, width=1408, hidden=6144, depth=40, heads=16, rank=16, remat=0, classes=1000, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    transform = optax.adamw(1e-4)

    def build():
        net = ViT(size, patch, width, hidden, depth, heads, rank, remat, classes, nnx.Rngs(0))
        return net, nnx.Optimizer(net, transform, wrt=nnx.LoRAParam)

    net, optimizer = nnx.eval_shape(build)
    graph, adapters, frozen = nnx.split(net, nnx.LoRAParam, ...)
    opt_graph, opt = nnx.split(optimizer)
    adapters, frozen, opt = (placed(a, whole) for a in (adapters, frozen, opt))

    def finetune_step(adapters, frozen, opt_state, images, labels):
        net, optimizer = nnx.merge(graph, adapters, frozen), nnx.merge(opt_graph, opt_state)

        def loss_fn(net):
            return optax.softmax_cross_entropy_with_integer_labels(net(images).astype(jnp.float32), labels).mean()

        loss, grads = nnx.value_and_grad(loss_fn, argnums=nnx.DiffState(0, nnx.LoRAParam))(net)
        optimizer.update(net, grads)
        return nnx.state(net, nnx.LoRAParam), nnx.state(optimizer), loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    args = (adapters, frozen, opt, S("float32", size, size, 3), S("int32"))
    return Program(finetune_step, args, classify, (0, 2) if donate else (), (shardings(adapters), shardings(opt), None))
