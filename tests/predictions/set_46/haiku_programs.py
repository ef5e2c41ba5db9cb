"""Haiku: its own ResNet-101 learns ImageNet as its examples/imagenet does (batch norm over the whole batch, SGD with Nesterov momentum, label smoothing, weight decay), data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import shardings
from recipe import Program, mesh, placed


def resnet(topology, chips, batch, side=224, classes=1000, compute="float32", remat=False, donate=True):
    if compute != "float32":
        policy = jmp.Policy(compute_dtype=jnp.dtype(compute), param_dtype=jnp.float32, output_dtype=jnp.dtype(compute))
        hk.mixed_precision.set_policy(hk.BatchNorm, jmp.Policy(compute_dtype=jnp.float32, param_dtype=jnp.float32, output_dtype=jnp.dtype(compute)))
        hk.mixed_precision.set_policy(hk.nets.ResNet101, policy)
    if remat:
        block = hk.nets.ResNet.BlockV1
        plain = block.__call__
        block.__call__ = lambda self, x, is_training, local: hk.remat(lambda x: plain(self, x, is_training, local))(x)
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def forward(images):
        return hk.nets.ResNet101(classes, bn_config={"decay_rate": 0.9})(images, is_training=True)

    net = hk.transform_with_state(forward)
    params, state = placed(jax.eval_shape(lambda: net.init(jax.random.key(0), jnp.zeros((1, side, side, 3)))), whole)
    transform = optax.chain(optax.trace(decay=0.9, nesterov=True), optax.scale_by_schedule(optax.cosine_decay_schedule(0.1, 90000)), optax.scale(-1))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, state, batch):
        logits, state = net.apply(params, state, None, batch["images"].astype(compute))
        labels = optax.smooth_labels(jax.nn.one_hot(batch["labels"], classes), 0.1)
        loss = optax.softmax_cross_entropy(logits.astype(jnp.float32), labels).mean()
        decay = sum(jnp.sum(jnp.square(w)) for name, layer in params.items() for w in layer.values() if "batchnorm" not in name)
        return loss + 0.5e-4 * decay, state

    def train_step(params, state, opt_state, batch):
        (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), state, opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"images": S("float32", side, side, 3), "labels": S("int32")}
    classify = lambda path: {"[0]": "weight", "[1]": "other", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, state, opt, data), classify, (0, 1, 2) if donate else (), (shardings(params), shardings(state), shardings(opt), None))
