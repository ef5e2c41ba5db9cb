"""brax' analytic policy gradients, its training_epoch caught; MuJoCo's MJX stepped."""
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from brax_pieces import caught, mujoco_model, on_every_device
from recipe import Program, mesh


def apg(topology, chips, envs, horizon, name="hopper", backend="spring", remat=False, donate=False):
    from brax import envs as E
    from brax.training.agents.apg import train as T

    def wrapped(env, **k):
        env = E.training.wrap(env, **k)
        if remat:
            env.step = jax.checkpoint(env.step)
        return env

    training_epoch, (state, env_state, key) = caught(
        T.train, environment=E.get_environment(name, backend=backend), episode_length=1000, policy_updates=100,
        horizon_length=horizon, num_envs=8, num_evals=1, wrap_env_fn=wrapped)
    m = mesh(topology, (chips,), ("i",)); B = NamedSharding(m, P("i"))
    grow = lambda a: (chips, envs // chips, *a.shape[2:]) if a.ndim > 1 and a.shape[1] == 8 else (chips, *a.shape[1:])
    one = lambda a: jax.ShapeDtypeStruct((chips, *a.shape[1:]), a.dtype, sharding=B)
    args = (jax.tree.map(one, state), jax.tree.map(lambda a: jax.ShapeDtypeStruct(grow(a), a.dtype, sharding=B), env_state), jax.tree.map(one, key))
    classify = lambda path: "opt" if "optimizer_state" in path else "weight" if path.startswith("[0]") else "input"
    return Program(on_every_device(training_epoch, m), args, classify, (0, 1) if donate else ())


def mjx(topology, chips, batch, steps, name="ant", donate=False, record=True):
    from mujoco import mjx as X
    model = mujoco_model(name)
    put = X.put_model(model); data = X.make_data(put)
    m = mesh(topology, (chips,), ("b",)); B, R = NamedSharding(m, P("b")), NamedSharding(m, P())
    D = jax.tree.map(lambda a: jax.ShapeDtypeStruct((batch, *np.shape(a)), jnp.asarray(a).dtype, sharding=B), data)
    M = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), jnp.asarray(a).dtype, sharding=R), put)
    controls = jax.ShapeDtypeStruct((batch, steps, model.nu), "float32", sharding=B)

    def rollout(model, data, controls):
        def one(d, u):
            d = jax.vmap(X.step, (None, 0))(model, d.replace(ctrl=u))
            return d, (d.qpos, d.qvel, d.sensordata)
        return jax.lax.scan(one, data, controls.swapaxes(0, 1))

    return Program(rollout, (M, D, controls), lambda path: "weight" if path.startswith("[0]") else "input", (1,) if donate else ())
