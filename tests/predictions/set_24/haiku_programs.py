"""Haiku: its own ResNet-50 on ImageNet, as in its examples: batch norms across devices' own batch, SGD with momentum, weight decay, smoothed labels."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def resnet50(topology, chips, batch, size=224, half=False, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    if half:
        policy = jmp.get_policy("params=float32,compute=bfloat16,output=bfloat16")
        hk.mixed_precision.set_policy(hk.nets.ResNet50, policy)
        hk.mixed_precision.set_policy(hk.BatchNorm, jmp.get_policy("params=float32,compute=float32,output=bfloat16"))
    if remat:
        plain = hk.nets.ResNet.BlockGroup.__call__
        from haiku._src.nets import resnet as R
        for kind in (R.BlockV1,):
            call = kind.__call__
            def wrapped(self, inputs, is_training, test_local_stats, call=call):
                return hk.remat(lambda x: call(self, x, is_training, test_local_stats))(inputs)
            kind.__call__ = wrapped

    def forward(images, is_training):
        return hk.nets.ResNet50(1000, bn_config={"decay_rate": 0.9})(images.astype(jnp.bfloat16) if half else images, is_training=is_training)

    net = hk.without_apply_rng(hk.transform_with_state(forward))
    images = jax.ShapeDtypeStruct((1, size, size, 3), "float32")
    params, state = jax.eval_shape(lambda k, x: net.init(k, x, True), jax.random.key(0), images)
    transform = optax.sgd(optax.cosine_decay_schedule(0.1, 1000), momentum=0.9, nesterov=True)
    opt = placed(jax.eval_shape(transform.init, params), whole)
    params, state = placed(params, whole), placed(state, whole)

    def train_step(params, state, opt_state, batch):
        def loss_fn(params):
            logits, new = net.apply(params, state, batch["images"], True)
            labels = optax.smooth_labels(jax.nn.one_hot(batch["labels"], 1000), 0.1)
            decay = 0.5 * sum(jnp.sum(p**2) for p in jax.tree.leaves(params) if p.ndim > 1)
            return optax.softmax_cross_entropy(logits.astype(jnp.float32), labels).mean() + 1e-4 * decay, new

        (loss, state2), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), state2, opt_state, loss

    S = lambda dtype, *s: jax.ShapeDtypeStruct((batch, *s), dtype, sharding=split)
    data = {"images": S("float32", size, size, 3), "labels": S("int32")}
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, state, opt, data), classify, (0, 1, 2) if donate else ())
