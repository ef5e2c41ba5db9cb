"""MuJoCo's MJX: predictive sampling, every body trying many plans of its own, the best of which is kept."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import mujoco_model
from recipe import Program, mesh


def sampling(topology, chips, bodies, samples, horizon, name="walker2d", donate=False):
    from mujoco import mjx

    model = mjx.put_model(mujoco_model(name))
    data = mjx.make_data(model)
    devices = mesh(topology, (chips,), ("bodies",))
    split, whole = NamedSharding(devices, P("bodies")), NamedSharding(devices, P())

    def plan(model, data, plans, key):
        noise = jax.random.normal(key, (bodies, samples, horizon, model.nu))
        tried = plans[:, None] + 0.2 * jax.lax.with_sharding_constraint(noise, split)

        def rollout(d, controls):
            def one(d, u):
                d = mjx.step(model, d.replace(ctrl=u))
                return d, (d.qpos, d.qvel)

            _, (qpos, qvel) = jax.lax.scan(one, d, controls)
            return qvel[:, 0].mean() - 0.01 * (controls**2).mean(), qpos, qvel

        returns, qpos, qvel = jax.vmap(lambda d, t: jax.vmap(lambda u: rollout(d, u))(t))(data, tried)
        best = returns.argmax(1)
        pick = lambda a: jnp.take_along_axis(a, best.reshape(-1, 1, *[1] * (a.ndim - 2)), 1)[:, 0]
        chosen = pick(tried)
        data = jax.vmap(mjx.step, (None, 0))(model, data.replace(ctrl=chosen[:, 0]))
        return data, jnp.roll(chosen, -1, 1), pick(qpos), pick(qvel)

    abstract = lambda tree, where, *lead: jax.tree.map(
        lambda a: jax.ShapeDtypeStruct((*lead, *np.shape(a)), jnp.asarray(a).dtype, sharding=where), tree)
    key = jax.eval_shape(lambda: jax.random.key(0))
    args = (abstract(model, whole), abstract(data, split, bodies), jax.ShapeDtypeStruct((bodies, horizon, model.nu), "float32", sharding=split),
            jax.ShapeDtypeStruct((), key.dtype, sharding=whole))
    return Program(plan, args, lambda path: "weight" if path.startswith("[0]") else "input", (1, 2) if donate else ())
