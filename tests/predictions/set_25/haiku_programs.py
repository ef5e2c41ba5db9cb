"""Haiku: ViT-B/16 of hk.MultiHeadAttention and hk.nets.MLP, in the style of its transformer example, float32, data parallel."""

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
        h = norm("attn_norm")(x)
        x = x + hk.MultiHeadAttention(self.heads, width // self.heads, w_init=init, model_size=width, name="attn")(h, h, h)
        return x + hk.nets.MLP([4 * width, width], activation=jax.nn.gelu, name="mlp")(norm("mlp_norm")(x))


def vit(topology, chips, batch, size=224, patch=16, width=768, heads=12, depth=12, half=False, remat=0, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    if half:
        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        for kind in (hk.Linear, hk.Conv2D, hk.MultiHeadAttention):
            hk.mixed_precision.set_policy(kind, policy)

    def forward(images):
        x = hk.Conv2D(width, patch, patch, padding="VALID", name="patches")(images)
        x = x.reshape(x.shape[0], -1, width)
        x = jnp.concatenate([jnp.broadcast_to(hk.get_parameter("cls", [1, 1, width], init=jnp.zeros).astype(x.dtype), (x.shape[0], 1, width)), x], 1)
        x = x + hk.get_parameter("pos", [1, x.shape[1], width], init=hk.initializers.RandomNormal(0.02)).astype(x.dtype)
        for i in range(depth):
            block = Block(heads, name=f"block_{i}")
            x = (hk.remat(block) if i < remat else block)(x)
            x = x.astype(jnp.bfloat16) if half else x
        return hk.Linear(1000, name="head")(hk.LayerNorm(-1, True, True, name="norm")(x[:, 0]))

    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, size, size, 3), "float32")), whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3, weight_decay=0.3))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def update(params, opt_state, batch):
        def loss_fn(params):
            logits = net.apply(params, batch["image"]).astype(jnp.float32)
            return optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(batch["label"], 1000), 0.1)).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(update, (params, opt, {"image": S("float32", size, size, 3), "label": S("int32")}), classify, (0, 1) if donate else ())
