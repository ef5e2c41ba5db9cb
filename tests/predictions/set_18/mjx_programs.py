"""MuJoCo's MJX: short horizon actor critic (SHAC), the policy's gradient through the physics, a critic at the end."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import mujoco_model
from recipe import Program, mesh, placed


class Policy(nn.Module):
    out: int
    width: int

    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.LayerNorm()(nn.elu(nn.Dense(self.width)(x)))
        return nn.Dense(self.out)(x)


def shac(topology, chips, bodies, steps, name="walker2d", width=256, remat=False, donate=True):
    from mujoco import mjx

    model = mujoco_model(name)
    model.opt.iterations, model.opt.ls_iterations = 1, 4
    model = mjx.put_model(model)
    data = mjx.make_data(model)
    devices = mesh(topology, (chips,), ("bodies",))
    split, whole = NamedSharding(devices, P("bodies")), NamedSharding(devices, P())
    actor, critic = Policy(model.nu, width), Policy(1, width)
    seen = jax.ShapeDtypeStruct((1, model.nq + model.nv), "float32")
    params = {"actor": jax.eval_shape(actor.init, jax.random.key(0), seen), "critic": jax.eval_shape(critic.init, jax.random.key(0), seen)}
    transform = optax.adam(2e-3)

    def update(params, opt_state, model, data, noise):
        def look(d):
            return jnp.concatenate([d.qpos, d.qvel], -1)

        def loss_fn(params):
            def one(carry, given):
                d, worth = carry
                action = jnp.tanh(actor.apply(params["actor"], look(d)) + 0.1 * given)
                d = jax.vmap(mjx.step, (None, 0))(model, d.replace(ctrl=action))
                reward = d.qvel[:, 0] - 0.001 * (action**2).sum(-1)
                return (d, worth * 0.99 + reward), look(d)

            begin = (data, jnp.zeros(data.qpos.shape[0]))
            (d, worth), places = jax.lax.scan(jax.checkpoint(one) if remat else one, begin, noise)
            value = critic.apply(jax.lax.stop_gradient(params["critic"]), look(d))[:, 0]
            fitted = critic.apply(params["critic"], jax.lax.stop_gradient(places))[..., 0]
            error = ((fitted - jax.lax.stop_gradient(value + worth)) ** 2).mean()
            return error - (worth + value).mean(), d

        (loss, data), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, data, loss

    abstract = lambda tree, where, *lead: jax.tree.map(
        lambda a: jax.ShapeDtypeStruct((*lead, *np.shape(a)), jnp.asarray(a).dtype, sharding=where), tree)
    noise = jax.ShapeDtypeStruct((steps, bodies, model.nu), "float32", sharding=NamedSharding(devices, P(None, "bodies")))
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), abstract(model, whole), abstract(data, split, bodies), noise)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(update, args, classify, (0, 1) if donate else ())
