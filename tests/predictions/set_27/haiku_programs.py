"""Haiku: DINO, a student of large and small crops held to an averaged teacher of the large ones; ViT-S/8, half precision, data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


class Block(hk.Module):
    def __init__(self, heads, name=None):
        super().__init__(name=name)
        self.heads = heads

    def __call__(self, x):
        width, init = x.shape[-1], hk.initializers.VarianceScaling(0.1)
        norm = lambda name: hk.LayerNorm(-1, True, True, name=name)
        h = norm("norm1")(x)
        x = x + hk.MultiHeadAttention(self.heads, width // self.heads, w_init=init, model_size=width, name="attn")(h, h, h)
        return x + hk.nets.MLP([4 * width, width], activation=jax.nn.gelu, name="mlp")(norm("norm2")(x))


def dino(topology, chips, batch, patch=8, width=384, heads=6, depth=12, out=65536, crops=8, small=96, large=224, remat=0, donate=True, half=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    if half:
        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        for kind in (hk.Linear, hk.Conv2D, hk.MultiHeadAttention, hk.LayerNorm):
            hk.mixed_precision.set_policy(kind, policy)

    def forward(images):
        x = hk.Conv2D(width, patch, patch, padding="VALID", name="patch_embed")(images)
        grid = x.shape[1]
        pos = hk.get_parameter("pos_embed", [large // patch, large // patch, width], init=hk.initializers.RandomNormal(0.02))
        pos = jax.image.resize(pos, (grid, grid, width), "bilinear").astype(x.dtype)
        x = (x + pos).reshape(x.shape[0], -1, width)
        cls = hk.get_parameter("cls_token", [1, 1, width], init=jnp.zeros).astype(x.dtype)
        x = jnp.concatenate([jnp.broadcast_to(cls, (x.shape[0], 1, width)), x], 1)
        for i in range(depth):
            block = Block(heads, name=f"block_{i}")
            x = (hk.remat(block) if i < remat else block)(x)
        x = hk.LayerNorm(-1, True, True, name="norm")(x[:, 0])
        for i in range(2):
            x = jax.nn.gelu(hk.Linear(2048, name=f"head_{i}")(x))
        x = hk.Linear(256, name="bottleneck")(x).astype(jnp.float32)
        return hk.Linear(out, with_bias=False, name="prototypes")(x / jnp.linalg.norm(x, axis=-1, keepdims=True)).astype(jnp.float32)

    net = hk.without_apply_rng(hk.transform(forward))
    student = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, large, large, 3), "float32")), whole)
    transform = optax.chain(optax.clip_by_global_norm(3.0), optax.adamw(5e-4, weight_decay=0.04))
    opt = placed(jax.eval_shape(transform.init, student), whole)
    center = jax.ShapeDtypeStruct((out,), "float32", sharding=whole)

    def update(student, teacher, center, opt_state, batch):
        wide = batch["global"].swapaxes(0, 1).reshape(-1, large, large, 3)  # crops first
        near = batch["local"].swapaxes(0, 1).reshape(-1, small, small, 3)
        keep = lambda a: jax.lax.with_sharding_constraint(a, split)
        seen = net.apply(teacher, keep(wide))
        target = jax.nn.softmax((seen - center) / 0.04).reshape(2, -1, out)

        def loss_fn(student):
            said = jnp.concatenate([net.apply(student, keep(wide)).reshape(2, -1, out), net.apply(student, keep(near)).reshape(crops, -1, out)])
            logs = jax.nn.log_softmax(said / 0.1)
            pairs = [(-(target[t] * logs[s]).sum(-1)).mean() for t in range(2) for s in range(crops + 2) if s != t]
            return sum(pairs) / len(pairs)

        loss, grads = jax.value_and_grad(loss_fn)(student)
        updates, opt_state = transform.update(grads, opt_state, student)
        student = optax.apply_updates(student, updates)
        teacher = jax.tree.map(lambda t, s: 0.996 * t + 0.004 * s, teacher, student)
        return student, teacher, 0.9 * center + 0.1 * seen.mean(0), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    data = {"global": S(2, large, large, 3), "local": S(crops, small, small, 3)}
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "other", "[3]": "opt"}.get(path[:3], "input")
    return Program(update, (student, student, center, opt, data), classify, (0, 1, 2, 3) if donate else ())
