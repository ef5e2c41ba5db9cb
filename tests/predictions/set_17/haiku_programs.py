"""Haiku: BYOL as its paper's code has it, two views through its ResNet 101 and through the moving average of it."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def byol(topology, chips, batch, size=224, half=False, together=False, donate=True):
    """`half` is Haiku's own mixed precision (jmp's policy for the network)."""
    devices = mesh(topology, (chips,), ("i",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("i"))

    class MLP(hk.Module):
        def __init__(self, hidden, out, name):
            super().__init__(name=name)
            self.hidden, self.out = hidden, out

        def __call__(self, x, training):
            x = hk.Linear(self.hidden)(x)
            x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, is_training=training))
            return hk.Linear(self.out, with_bias=False)(x)

    def forward(images, training):
        net = hk.nets.ResNet101(1000, resnet_v2=True)
        net.logits = lambda x: x
        x = net(images.astype(jnp.bfloat16) if half else images, is_training=training).astype(jnp.float32)
        projection = MLP(4096, 256, "projector")(x, training)
        return dict(projection=projection, prediction=MLP(4096, 256, "predictor")(projection, training))

    if half:
        import jmp

        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        hk.mixed_precision.set_policy(hk.nets.ResNet101, policy)
        hk.mixed_precision.set_policy(hk.BatchNorm, jmp.get_policy("params=float32,compute=float32,output=bfloat16"))
    net = hk.without_apply_rng(hk.transform_with_state(forward))
    image = jax.ShapeDtypeStruct((batch, size, size, 3), "float32", sharding=split)
    params, state = jax.eval_shape(lambda k, x: net.init(k, x, True), jax.random.key(0), jax.ShapeDtypeStruct((2, size, size, 3), "float32"))
    transform = optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(1.5e-6), optax.scale_by_trust_ratio(), optax.scale(-0.2))
    opt = jax.eval_shape(transform.init, params)

    def regression(x, y):
        unit = lambda a: a / jnp.linalg.norm(a, axis=-1, keepdims=True)
        return ((unit(x) - unit(y)) ** 2).sum(-1).mean()

    def loss_fn(params, target, states, target_states, first, second):
        a, states = net.apply(params, states, first, True)
        b, states = net.apply(params, states, second, True)
        c, target_states = net.apply(target, target_states, first, True)
        d, target_states = net.apply(target, target_states, second, True)
        stop = jax.lax.stop_gradient
        loss = regression(a["prediction"], stop(d["projection"])) + regression(b["prediction"], stop(c["projection"]))
        return loss, (states, target_states)

    def update(params, target, states, target_states, opt_state, first, second):
        grads, (states, target_states) = jax.grad(loss_fn, has_aux=True)(params, target, states, target_states, first, second)
        updates, opt_state = transform.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        target = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b, target, params)
        return params, target, states, target_states, opt_state

    put = lambda tree: placed(tree, whole)
    args = (put(params), put(params), put(state), put(state), put(opt), image, image)
    classify = lambda path: "input" if path[:3] in ("[5]", "[6]") else "opt" if path[:3] == "[4]" else "weight"
    return Program(update, args, classify, (0, 1, 2, 3, 4) if donate else ())
