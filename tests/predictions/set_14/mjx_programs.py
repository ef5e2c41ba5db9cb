"""MuJoCo's MJX: evolution strategies, every member of the population with its own perturbed policy and its own body."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import mujoco_model
from recipe import Program, mesh, placed


def es(topology, chips, population, steps, hidden=256, name="humanoid", donate=False):
    """One generation."""
    from mujoco import mjx

    model, transform = mjx.put_model(mujoco_model(name)), optax.adam(1e-2)
    data = mjx.make_data(model)
    devices = mesh(topology, (chips,), ("population",))
    split, whole = NamedSharding(devices, P("population")), NamedSharding(devices, P())
    observe = lambda d: jnp.concatenate([d.qpos[2:], d.qvel, d.cinert.ravel(), d.cvel.ravel(), d.qfrc_actuator])
    sizes = [jax.eval_shape(observe, data).shape[0], hidden, hidden, model.nu]
    params = {f"layer_{i}": {"w": jax.ShapeDtypeStruct(s, "float32"), "b": jax.ShapeDtypeStruct(s[1:], "float32")}
              for i, s in enumerate(zip(sizes, sizes[1:]))}

    def policy(params, x):
        for i in range(3):
            x = jnp.tanh(x @ params[f"layer_{i}"]["w"] + params[f"layer_{i}"]["b"])
        return x

    def generation(model, data, params, opt_state, key):
        leaves, tree = jax.tree.flatten(params)
        draw = lambda k, a: jax.lax.with_sharding_constraint(jax.random.normal(k, (population, *a.shape)), split)
        noise = jax.tree.unflatten(tree, [draw(k, a) for k, a in zip(jax.random.split(key, len(leaves)), leaves)])
        perturbed = jax.tree.map(lambda a, n: a + 0.05 * n, params, noise)

        def one(carry, _):
            d, total = carry
            actions = jax.vmap(lambda p, d: policy(p, observe(d)))(perturbed, d)
            d = jax.vmap(mjx.step, (None, 0))(model, d.replace(ctrl=actions))
            return (d, total + d.qvel[:, 0]), None

        (data, fitness), _ = jax.lax.scan(one, (data, jnp.zeros(population)), length=steps)
        fitness = (fitness - fitness.mean()) / (fitness.std() + 1e-6)
        grads = jax.tree.map(lambda n: -jnp.tensordot(fitness, n, 1) / population, noise)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, data

    abstract = lambda tree, where, *lead: jax.tree.map(
        lambda a: jax.ShapeDtypeStruct((*lead, *np.shape(a)), jnp.asarray(a).dtype, sharding=where), tree)
    key = jax.eval_shape(lambda: jax.random.key(0))
    args = (abstract(model, whole), abstract(data, split, population), placed(params, whole),
            placed(jax.eval_shape(transform.init, params), whole), jax.ShapeDtypeStruct((), key.dtype, sharding=whole))
    classify = lambda path: {"[0]": "weight", "[2]": "weight", "[3]": "opt"}.get(path[:3], "input")
    return Program(generation, args, classify, (1, 2, 3) if donate else ())
