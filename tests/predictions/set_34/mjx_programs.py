"""MuJoCo MJX: system identification of the humanoid: masses, damping and gears fitted by gradients through rollouts of its simulation, one Newton iteration a step."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import mujoco_model
from pieces import shardings
from recipe import Program, mesh, placed


def identify(topology, chips, batch, steps, remat=False, donate=True):
    import mujoco
    from mujoco import mjx

    model = mujoco_model("humanoid")
    model.opt.iterations, model.opt.ls_iterations = 1, 4
    net = mjx.put_model(model, impl="jax")
    start = mjx.make_data(model, impl="jax")
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    params = {"mass": jax.ShapeDtypeStruct((model.nbody,), "float32"), "damping": jax.ShapeDtypeStruct((model.nv,), "float32"), "gear": jax.ShapeDtypeStruct((model.nu,), "float32")}
    params = placed(params, whole)
    transform = optax.adam(1e-3)
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            mine = net.replace(
                body_mass=net.body_mass * jnp.exp(params["mass"]), dof_damping=net.dof_damping * jnp.exp(params["damping"]),
                actuator_gear=net.actuator_gear * jnp.exp(params["gear"])[:, None])

            def one(qpos, qvel, ctrl, seen):
                data = start.replace(qpos=qpos, qvel=qvel)

                def step(data, now):
                    ctrl, seen = now
                    data = mjx.step(mine, data.replace(ctrl=ctrl))
                    return data, jnp.sum((data.qpos - seen) ** 2)

                return jax.lax.scan(jax.checkpoint(step, prevent_cse=False) if remat else step, data, (ctrl, seen))[1].mean()

            return jax.vmap(one)(batch["qpos"], batch["qvel"], batch["ctrl"], batch["seen"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda *s: jax.ShapeDtypeStruct((batch, *s), "float32", sharding=split)
    data = {"qpos": S(model.nq), "qvel": S(model.nv), "ctrl": S(steps, model.nu), "seen": S(steps, model.nq)}
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, opt, data), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
