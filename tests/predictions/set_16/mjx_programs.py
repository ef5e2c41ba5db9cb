"""MuJoCo's MJX: a policy moves many bodies, and everything about their parts is collected as a data set."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import mujoco_model
from recipe import Program, mesh, placed


class Policy(nn.Module):
    actions: int

    @nn.compact
    def __call__(self, x):
        for i in range(3):
            x = nn.swish(nn.Dense(256)(x))
        return jnp.tanh(nn.Dense(self.actions)(x))


def dataset(topology, chips, bodies, steps, name="humanoid", donate=False):
    from mujoco import mjx

    model = mjx.put_model(mujoco_model(name))
    data = mjx.make_data(model)
    devices = mesh(topology, (chips,), ("bodies",))
    split, whole = NamedSharding(devices, P("bodies")), NamedSharding(devices, P())
    policy = Policy(model.nu)
    observe = lambda d: jnp.concatenate([d.qpos, d.qvel], -1)
    params = placed(jax.eval_shape(policy.init, jax.random.key(0), jnp.zeros(model.nq + model.nv)), whole)

    def collect(model, data, params):
        def one(d, _):
            d = jax.vmap(mjx.step, (None, 0))(model, d.replace(ctrl=policy.apply(params, observe(d))))
            return d, dict(qpos=d.qpos, qvel=d.qvel, xpos=d.xpos, xquat=d.xquat, cinert=d.cinert, cvel=d.cvel, ctrl=d.ctrl)

        return jax.lax.scan(one, data, length=steps)

    abstract = lambda tree, where, *lead: jax.tree.map(
        lambda a: jax.ShapeDtypeStruct((*lead, *np.shape(a)), jnp.asarray(a).dtype, sharding=where), tree)
    args = (abstract(model, whole), abstract(data, split, bodies), params)
    classify = lambda path: "input" if path.startswith("[1]") else "weight"
    return Program(collect, args, classify, (1,) if donate else ())
