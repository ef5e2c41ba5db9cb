"""dm-haiku's own MobileNetV1, trained with optax' lamb."""
import jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh, placed


def mobilenet(topology, chips, batch, size, half=False, remat=False, micro=1):
    import haiku as hk
    net = hk.transform_with_state(lambda x, t: hk.nets.MobileNetV1((1, 2, 2, 2, 2), (64, 128, 256, 512, 1024), 1000)(x, is_training=t))
    m = mesh(topology, (chips,), ("i",)); R, B = NamedSharding(m, P()), NamedSharding(m, P("i"))
    dtype = jnp.bfloat16 if half else jnp.float32
    params, state = jax.eval_shape(lambda k: net.init(k, jnp.zeros((2, size, size, 3)), True), jax.random.key(0))
    tx = optax.lamb(1e-3)
    opt = jax.eval_shape(tx.init, params)

    def apply(p, s, x):
        if half:
            p = jax.tree.map(lambda a: a.astype(dtype), p)
        return net.apply(p, s, None, x.astype(dtype), True)

    def loss_fn(params, state, images, labels):
        logits, state = (jax.checkpoint(apply) if remat else apply)(params, state, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean(), state

    def train_step(params, state, opt_state, images, labels):
        if micro == 1:
            (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, images, labels)
        else:
            cut = lambda a: jax.lax.with_sharding_constraint(a.reshape(chips, micro, -1, *a.shape[1:]).swapaxes(0, 1).reshape(micro, -1, *a.shape[1:]), NamedSharding(m, P(None, "i")))
            def one(carry, part):
                state, total = carry
                (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, *part)
                return (state, jax.tree.map(jnp.add, total, grads)), loss
            (state, grads), losses = jax.lax.scan(one, (state, jax.tree.map(jnp.zeros_like, params)), (cut(images), cut(labels)))
            loss = losses.mean()
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), state, opt_state, loss

    images = jax.ShapeDtypeStruct((batch, size, size, 3), "float32", sharding=B); labels = jax.ShapeDtypeStruct((batch,), "int32", sharding=B)
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (placed(params, R), placed(state, R), placed(opt, R), images, labels), classify, (0, 1, 2))
