"""Haiku: ConvNeXt-T of hk.DepthwiseConv2D, LayerNorm and Linear, float32, LAMB, data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


class Block(hk.Module):
    def __call__(self, x):
        width = x.shape[-1]
        y = hk.DepthwiseConv2D(1, 7, padding="SAME", name="dwconv")(x)
        y = hk.Linear(4 * width, name="pwconv1")(hk.LayerNorm(-1, True, True, name="norm")(y))
        y = hk.Linear(width, name="pwconv2")(jax.nn.gelu(y))
        return x + y * hk.get_parameter("gamma", [width], init=hk.initializers.Constant(1e-6)).astype(y.dtype)


def convnext(topology, chips, batch, size=224, depths=(3, 3, 9, 3), widths=(96, 192, 384, 768), half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    if half:
        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        for kind in (hk.Linear, hk.Conv2D, hk.DepthwiseConv2D, hk.LayerNorm):
            hk.mixed_precision.set_policy(kind, policy)

    def forward(images):
        norm = lambda name: hk.LayerNorm(-1, True, True, name=name)
        x = images
        for i, (depth, width) in enumerate(zip(depths, widths)):
            if i:
                x = norm(f"down_norm_{i}")(x)
            x = hk.Conv2D(width, 2 if i else 4, 2 if i else 4, padding="VALID", name=f"down_{i}")(x)
            x = x if i else norm("stem_norm")(x)
            for j in range(depth):
                block = Block(name=f"stage_{i}_block_{j}")
                x = (hk.remat(block) if remat else block)(x)
                x = x.astype(jnp.bfloat16) if half else x
        return hk.Linear(1000, name="head")(norm("norm")(x.mean((1, 2))))

    net = hk.without_apply_rng(hk.transform(forward))
    params = placed(jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, size, size, 3), "float32")), whole)
    transform = optax.lamb(4e-3, weight_decay=0.05)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def update(params, opt_state, batch):
        def loss_fn(params):
            logits = net.apply(params, batch["image"]).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(update, (params, opt, {"image": S("float32", size, size, 3), "label": S("int32")}), classify, (0, 1) if donate else ())
