"""NNX: segmentation of ADE20K by a head of convolutions on a frozen DINOv2 ViT-L/14 (nnx.value_and_grad of nnx.DiffState), logits brought to the picture's size."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, shardings
from recipe import Program, mesh, placed


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        lin = lambda a, b: nnx.Linear(a, b, dtype=HALF, param_dtype=HALF, rngs=rngs)
        norm = lambda: nnx.LayerNorm(width, dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.norm1, self.norm2, self.qkv, self.proj, self.fc1, self.fc2, self.heads = norm(), norm(), lin(width, 3 * width), lin(width, width), lin(width, 4 * width), lin(4 * width, width), heads

    def __call__(self, x):
        q, k, v = jnp.split(self.qkv(self.norm1(x)).reshape(*x.shape[:2], 3 * self.heads, -1), 3, 2)
        x = x + self.proj(jax.nn.dot_product_attention(q, k, v).reshape(x.shape))
        return x + self.fc2(nnx.gelu(self.fc1(self.norm2(x))))


class Backbone(nnx.Module):
    def __init__(self, side, width, heads, depth, rngs):
        self.patches = nnx.Conv(3, width, (14, 14), strides=(14, 14), dtype=HALF, param_dtype=HALF, rngs=rngs)
        self.places = nnx.Param(jnp.zeros(((side // 14) ** 2, width), HALF))
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(depth)])

    def __call__(self, pixels, kept):
        x = self.patches(pixels.astype(HALF))
        shape = x.shape
        x = x.reshape(shape[0], -1, shape[-1]) + self.places[...]
        found = []
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number in kept:
                found.append(x.reshape(shape))
        return jnp.concatenate(found, -1)


class Segmenter(nnx.Module):
    def __init__(self, side, kinds, width, heads, depth, hidden, rngs):
        self.backbone = Backbone(side, width, heads, depth, rngs)
        conv = lambda a, b, n: nnx.Conv(a, b, (n, n), dtype=HALF, rngs=rngs)
        self.conv1, self.conv2, self.out = conv(4 * width, hidden, 3), conv(hidden, hidden, 3), conv(hidden, kinds, 1)
        self.kept = (5, 11, 17, 23)

    def __call__(self, pixels, side):
        x = jax.lax.stop_gradient(self.backbone(pixels, self.kept))
        x = jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "bilinear")
        x = self.out(nnx.relu(self.conv2(nnx.relu(self.conv1(x)))))
        return jax.image.resize(x.astype(jnp.float32), (x.shape[0], side, side, x.shape[-1]), "bilinear")


def segment(topology, chips, batch, side=518, kinds=150, width=1024, heads=16, depth=24, hidden=512, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    model = nnx.eval_shape(lambda: Segmenter(side, kinds, width, heads, depth, hidden, nnx.Rngs(0)))
    in_backbone = lambda path, value: "backbone" in path
    graph, frozen, params, rest = nnx.split(model, in_backbone, nnx.Param, ...)
    frozen, params = placed(frozen, whole), placed(params, whole)
    transform = optax.adamw(1e-3, weight_decay=1e-4)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(head, opt_state, backbone, batch):
        def loss_fn(head):
            net = nnx.merge(graph, backbone, head, rest)
            logits = net(batch["image"].astype(jnp.float32) / 255, side)
            known = batch["label"] != 255
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.where(known, batch["label"], 0).astype(jnp.int32))
            right = (logits.argmax(-1) == batch["label"]) & known
            return (loss * known).sum() / known.sum(), right.sum() / known.sum()

        (loss, right), grads = jax.value_and_grad(loss_fn, has_aux=True)(head)
        updates, opt_state = transform.update(grads, opt_state, head)
        return optax.apply_updates(head, updates), opt_state, loss, right

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "uint8", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, (params, opt, frozen, {"image": S(side, side, 3), "label": S(side, side)}), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None, None))
