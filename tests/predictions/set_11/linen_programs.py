"""Flax Linen: a U-Net, two contrastive towers, a half-checkpointed encoder, a detector with a feature pyramid."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed

HALF = jnp.bfloat16


def training(model, transform, loss, data, devices, inputs, donate=True):
    """TrainState-like: {'params', 'opt_state', 'step'}; `inputs` of the data go through the model."""
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), *[jnp.zeros((1, *x.shape[1:]), x.dtype) for x in data[:inputs]]))["params"]
    state = {"params": params, "opt_state": jax.eval_shape(transform.init, params), "step": jax.ShapeDtypeStruct((), jnp.int32)}

    def train_step(state, *batch):
        def total(params):
            return loss(model.apply({"params": params}, *batch[:inputs]), *batch[inputs:])

        value, gradients = jax.value_and_grad(total)(state["params"])
        updates, opt_state = transform.update(gradients, state["opt_state"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt_state": opt_state, "step": state["step"] + 1}, value

    args = (placed(state, whole), *[placed(x, split) for x in data])
    rule = lambda path: "input" if path[:3] != "[0]" else "weight" if "['params']" in path[:13] else "other" if "['step']" in path else "opt"
    return Program(train_step, args, rule, (0,) if donate else ())


class Res(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        y = nn.Conv(self.width, (3, 3), dtype=HALF, name="conv_a")(nn.silu(nn.GroupNorm(16, dtype=HALF, name="gn_a")(x)))
        y = nn.Conv(self.width, (3, 3), dtype=HALF, name="conv_b")(nn.silu(nn.GroupNorm(16, dtype=HALF, name="gn_b")(y)))
        if x.shape[-1] != self.width:
            x = nn.Conv(self.width, (1, 1), dtype=HALF, name="short")(x)
        return x + y


class UNet(nn.Module):
    base: int
    remat: bool

    @nn.compact
    def __call__(self, image):
        res = nn.remat(Res) if self.remat else Res
        x = nn.Conv(self.base, (3, 3), dtype=HALF, name="stem")(image.astype(HALF))
        skips = []
        for level, factor in enumerate((1, 2, 4, 8)):
            for i in range(2):
                x = res(self.base * factor, name=f"down_{level}_{i}")(x)
                skips.append(x)
            if level < 3:
                x = nn.Conv(x.shape[-1], (3, 3), (2, 2), dtype=HALF, name=f"shrink_{level}")(x)
        x = res(self.base * 8, name="middle")(x)
        for level, factor in reversed(list(enumerate((1, 2, 4, 8)))):
            for i in range(2):
                x = res(self.base * factor, name=f"up_{level}_{i}")(jnp.concatenate([x, skips.pop()], -1))
            if level > 0:
                x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
                x = nn.Conv(x.shape[-1], (3, 3), dtype=HALF, name=f"grow_{level}")(x)
        return nn.Conv(19, (1, 1), name="classes")(x.astype(jnp.float32))


def unet(topology, chips, batch, size, base, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    loss = lambda out, labels: optax.softmax_cross_entropy_with_integer_labels(out, labels).mean()
    data = [jax.ShapeDtypeStruct((batch, size, size, 3), jnp.uint8), jax.ShapeDtypeStruct((batch, size, size), jnp.int32)]
    return training(UNet(base, remat), optax.adam(1e-4), loss, data, devices, 1)


class Block(nn.Module):
    heads: int
    width: int
    causal: bool = False

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm(dtype=HALF, name="ln_1")(x)
        q, k, v = jnp.split(nn.Dense(3 * self.width, dtype=HALF, name="qkv")(y), 3, -1)
        cut = lambda a: a.reshape(*a.shape[:2], self.heads, -1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", cut(q), cut(k)).astype(jnp.float32) * (self.width // self.heads) ** -0.5
        if self.causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(HALF), cut(v)).reshape(x.shape)
        x = x + nn.Dense(self.width, dtype=HALF, name="proj")(y)
        y = nn.Dense(4 * self.width, dtype=HALF, name="c_fc")(nn.LayerNorm(dtype=HALF, name="ln_2")(x))
        return x + nn.Dense(self.width, dtype=HALF, name="c_proj")(y * nn.sigmoid(1.702 * y))


class Towers(nn.Module):
    depth: int
    remat: str

    @nn.compact
    def __call__(self, image, text):
        seeing = nn.remat(Block) if self.remat in ("all", "visual") else Block
        reading = nn.remat(Block) if self.remat == "all" else Block
        x = nn.Conv(768, (16, 16), (16, 16), dtype=HALF, name="patch")(image.astype(HALF)).reshape(image.shape[0], -1, 768)
        x = x + self.param("visual_pos", nn.initializers.normal(0.02), (x.shape[1], 768)).astype(HALF)
        for i in range(self.depth):
            x = seeing(12, 768, name=f"visual_{i}")(x)
        x = nn.Dense(512, dtype=HALF, name="visual_projection")(x.mean(1))
        y = nn.Embed(49408, 512, dtype=HALF, name="words")(text)
        for i in range(self.depth):
            y = reading(8, 512, True, name=f"text_{i}")(y)
        y = nn.Dense(512, dtype=HALF, name="text_projection")(y[:, -1])
        unit = lambda a: a.astype(jnp.float32) / jnp.linalg.norm(a.astype(jnp.float32), axis=-1, keepdims=True)
        scale = self.param("logit_scale", nn.initializers.constant(2.6), ())
        return unit(x) @ unit(y).T * jnp.exp(scale)


def clip(topology, chips, batch, size, depth, remat=""):
    devices = mesh(topology, (chips,), ("data",))

    def loss(logits):
        labels = jnp.arange(logits.shape[0])
        entropy = lambda a: optax.softmax_cross_entropy_with_integer_labels(a, labels).mean()
        return (entropy(logits) + entropy(logits.T)) / 2

    data = [jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32), jax.ShapeDtypeStruct((batch, 77), jnp.int32)]
    return training(Towers(depth, remat), optax.lion(1e-4), loss, data, devices, 2)


class Masked(nn.Module):
    depth: int
    width: int
    remat: int

    @nn.compact
    def __call__(self, tokens, where):
        embed = nn.Embed(30522, self.width, dtype=HALF, name="embed")
        x = embed(tokens)
        for i in range(self.depth):
            x = (nn.remat(Block) if i < self.remat else Block)(16, self.width, name=f"layer_{i}")(x)
        x = jnp.take_along_axis(x, where[..., None], 1)
        return embed.attend(nn.LayerNorm(dtype=HALF, name="last")(x))


def masked(topology, batch, length, depth, width, remat, donate=True):
    """Masked words at 76 places a row; the first `remat` layers are checkpointed already."""
    devices = mesh(topology, (1,), ("data",))
    loss = lambda out, labels: optax.softmax_cross_entropy_with_integer_labels(out.astype(jnp.float32), labels).mean()
    few = jax.ShapeDtypeStruct((batch, 76), jnp.int32)
    data = [jax.ShapeDtypeStruct((batch, length), jnp.int32), few, few]
    return training(Masked(depth, width, remat), optax.lamb(1e-3), loss, data, devices, 2, donate)


class Bottleneck(nn.Module):
    width: int
    stride: int = 1

    @nn.compact
    def __call__(self, x):
        norm = lambda name: nn.GroupNorm(32, dtype=HALF, name=name)
        y = nn.relu(norm("n1")(nn.Conv(self.width // 4, (1, 1), use_bias=False, dtype=HALF, name="c1")(x)))
        y = nn.relu(norm("n2")(nn.Conv(self.width // 4, (3, 3), (self.stride,) * 2, use_bias=False, dtype=HALF, name="c2")(y)))
        y = norm("n3")(nn.Conv(self.width, (1, 1), use_bias=False, dtype=HALF, name="c3")(y))
        if x.shape != y.shape:
            x = norm("n4")(nn.Conv(self.width, (1, 1), (self.stride,) * 2, use_bias=False, dtype=HALF, name="c4")(x))
        return nn.relu(x + y)


class Head(nn.Module):
    out: int

    @nn.compact
    def __call__(self, x):
        for i in range(3):
            x = nn.relu(nn.Conv(256, (3, 3), dtype=HALF, name=f"tower_{i}")(x))
        x = nn.Conv(self.out, (3, 3), dtype=HALF, name="out")(x)
        return x.reshape(x.shape[0], -1, self.out // 9)


class Detector(nn.Module):
    remat: bool

    @nn.compact
    def __call__(self, image):
        block, head = (nn.remat(Bottleneck), nn.remat(Head)) if self.remat else (Bottleneck, Head)
        x = nn.relu(nn.GroupNorm(32, dtype=HALF, name="stem_norm")(nn.Conv(64, (7, 7), (2, 2), dtype=HALF, name="stem")(image.astype(HALF))))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        levels = []
        for stage, width in enumerate((256, 512, 1024, 2048)):
            for i in range(2):
                x = block(width, 2 if i == 0 and stage else 1, name=f"stage{stage}_block{i}")(x)
            levels.append(x)
        top, pyramid = None, []
        for i, level in reversed(list(enumerate(levels[1:]))):
            y = nn.Conv(256, (1, 1), dtype=HALF, name=f"lateral_{i}")(level)
            top = y if top is None else y + jnp.repeat(jnp.repeat(top, 2, 1), 2, 2)
            pyramid.append(nn.Conv(256, (3, 3), dtype=HALF, name=f"smooth_{i}")(top))
        classes, boxes = head(9 * 80, name="class_head"), head(9 * 4, name="box_head")
        return jnp.concatenate([classes(p) for p in pyramid], 1), jnp.concatenate([boxes(p) for p in pyramid], 1)


def detect(topology, chips, batch, size, remat=False):
    devices = mesh(topology, (chips,), ("data",))
    anchors = sum((size // s) ** 2 * 9 for s in (8, 16, 32))

    def loss(out, labels, boxes):
        logits, found = [a.astype(jnp.float32) for a in out]
        right = jax.nn.one_hot(labels, 80)
        chance = jax.nn.sigmoid(logits)
        near = chance * right + (1 - chance) * (1 - right)
        focal = (1 - near) ** 2 * optax.sigmoid_binary_cross_entropy(logits, right)
        return focal.sum() / labels.size + optax.huber_loss(found, boxes).mean()

    data = [jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32), jax.ShapeDtypeStruct((batch, anchors), jnp.int32),
            jax.ShapeDtypeStruct((batch, anchors, 4), jnp.float32)]
    return training(Detector(remat), optax.sgd(1e-2, momentum=0.9), loss, data, devices, 1)
