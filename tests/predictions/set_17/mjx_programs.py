"""MuJoCo's MJX: system identification, the gradient of a rollout's error with respect to the model's masses and damping; brax' evolution strategies."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import Caught, mujoco_model
from recipe import Program, mesh


def sysid(topology, chips, bodies, steps, name="hopper", remat=False, donate=False):
    from mujoco import mjx

    model = mujoco_model(name)
    model.opt.iterations, model.opt.ls_iterations = 1, 4
    model = mjx.put_model(model)
    data = mjx.make_data(model)
    devices = mesh(topology, (chips,), ("bodies",))
    split, whole = NamedSharding(devices, P("bodies")), NamedSharding(devices, P())
    F = lambda where, *s: jax.ShapeDtypeStruct(s, "float32", sharding=where)
    guess = {"mass": F(whole, *model.body_mass.shape), "damping": F(whole, *model.dof_damping.shape)}
    transform = optax.adam(1e-3)
    state = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=whole), jax.eval_shape(transform.init, guess))

    def fit(guess, opt_state, model, data, controls, measured):
        def loss_fn(guess):
            mine = model.replace(body_mass=guess["mass"], dof_damping=guess["damping"])

            def one(d, given):
                control, seen = given
                d = jax.vmap(mjx.step, (None, 0))(mine, d.replace(ctrl=control))
                return d, ((d.qpos - seen) ** 2).mean()

            _, errors = jax.lax.scan(jax.checkpoint(one) if remat else one, data, (controls, measured))
            return errors.mean()

        loss, grads = jax.value_and_grad(loss_fn)(guess)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(guess, updates), opt_state, loss

    abstract = lambda tree, where, *lead: jax.tree.map(
        lambda a: jax.ShapeDtypeStruct((*lead, *np.shape(a)), jnp.asarray(a).dtype, sharding=where), tree)
    over = NamedSharding(devices, P(None, "bodies"))
    args = (guess, state, abstract(model, whole), abstract(data, split, bodies), F(over, steps, bodies, model.nu), F(over, steps, bodies, model.nq))
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(fit, args, classify, (0, 1) if donate else ())


def es(topology, chips, population, steps, environment="ant", backend="spring", normalize=True, donate=False):
    """brax' own training epoch of evolution strategies, caught as it is jitted."""
    from brax import envs as E
    from brax.training.agents.es import train as T

    devices = mesh(topology, (chips,), ("i",))
    got, jit = {}, jax.jit

    def caught(function=None, **options):
        if getattr(function, "__name__", "") != "training_epoch":
            return jit(function, **options) if function is not None else lambda f: jit(f, **options)

        def call(*values):
            got.update(function=function, values=values)
            raise Caught()

        return call

    make_mesh, count = jax.make_mesh, jax.local_device_count
    jax.make_mesh = lambda *args, **rest: devices
    jax.local_device_count = lambda *args: chips
    reshard = jax.reshard
    jax.reshard = lambda x, where: jax.lax.with_sharding_constraint(x, where)
    jax.jit = caught
    try:
        T.train(environment=E.get_environment(environment, backend=backend), num_timesteps=1 << 40, episode_length=steps, population_size=population,
                normalize_observations=normalize, num_evals=0, num_eval_envs=8)
    except Caught:
        pass
    jax.jit, jax.make_mesh, jax.local_device_count = jit, make_mesh, count
    whole = NamedSharding(devices, P())
    args = jax.tree.map(lambda a: jax.ShapeDtypeStruct(jnp.shape(a), jnp.asarray(a).dtype, sharding=whole), got["values"])
    classify = lambda path: "opt" if "optimizer_state" in path else "weight" if path.startswith("[0]") else "input"

    def training_epoch(training_state, key):
        return got["function"](training_state, key)

    return Program(training_epoch, args, classify, (0,) if donate else ())
