"""The gemma library: a Gemma 3 270M taught by a frozen 1B, on every word's probability."""

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, largest_dimension, mesh, placed


def half(tree):
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "bfloat16" if jnp.issubdtype(a.dtype, jnp.floating) else a.dtype), tree)


def distill(topology, chips, batch, length, chunks=1, remat=False, shard=False, donate=True):
    """The student in float32 with Adam, the teacher in bfloat16."""
    from gemma import gm
    from gemma.gm.nn import _modules as M

    if remat:
        M.Block = nn.remat(M.Block)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    student, teacher = gm.nn.Gemma3_270M(dtype=jnp.bfloat16), gm.nn.Gemma3_1B(dtype=jnp.bfloat16)
    init = lambda net: jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    cut = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "float32"), init(student))
    transform = optax.adam(1e-4)
    state = placed(jax.eval_shape(transform.init, params), cut)
    only = shard == "state"
    params, frozen = placed(params, whole if only else cut), placed(half(init(teacher)), whole if only else cut)

    def train_step(student_params, opt_state, teacher_params, tokens, mask):
        def loss_fn(params):
            mine = student.apply({"params": params}, tokens=tokens).logits
            theirs = jax.lax.stop_gradient(teacher.apply({"params": teacher_params}, tokens=tokens).logits)
            a, b = jax.nn.log_softmax(mine.astype(jnp.float32)), jax.nn.log_softmax(theirs.astype(jnp.float32))
            kl = (jnp.exp(b) * (b - a)).sum(-1)
            return (kl * mask).sum() / mask.sum()

        loss, grads = jax.value_and_grad(loss_fn)(student_params)
        if only:
            grads = jax.tree_util.tree_map_with_path(lambda path, g: jax.lax.with_sharding_constraint(g, cut(jax.tree_util.keystr(path), g)), grads)
        updates, opt_state = transform.update(grads, opt_state, student_params)
        return optax.apply_updates(student_params, updates), opt_state, loss

    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    sharding = lambda tree: jax.tree.map(lambda a: a.sharding, tree)
    outs = (sharding(params), sharding(state), None) if only else None
    return Program(train_step, (params, state, frozen, S("int32"), S("bool")), classify, (0, 1) if donate else (), outs)
