"""brax' analytic policy gradients, its training_epoch caught; MuJoCo's MJX stepped."""
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh


def apg(topology, chips, envs, horizon, name="hopper", backend="spring", remat=False, donate=False):
    from brax import envs as E
    from brax.training.agents.apg import train as T

    class Caught(Exception):
        pass

    got, real = {}, jax.pmap
    def pmap(f, *a, **k):
        if getattr(f, "__name__", "") != "training_epoch":
            return real(f, *a, **k)
        def call(*x):
            got.update(f=f, x=x)
            raise Caught()
        return call
    jax.device_put_replicated = lambda x, devices: jax.tree.map(lambda a: jnp.stack([jnp.asarray(a)] * len(devices)), x)  # gone from jax
    def wrapped(env, **k):
        env = E.training.wrap(env, **k)
        if remat:
            env.step = jax.checkpoint(env.step)
        return env
    jax.pmap = pmap
    try:
        T.train(environment=E.get_environment(name, backend=backend), episode_length=1000, policy_updates=100, horizon_length=horizon, num_envs=8, num_evals=1, wrap_env_fn=wrapped)
    except Caught:
        pass
    jax.pmap = real
    m = mesh(topology, (chips,), ("i",)); B = NamedSharding(m, P("i"))
    squeeze, expand = (lambda t: jax.tree.map(lambda a: a[0], t)), (lambda t: jax.tree.map(lambda a: a[None], t))

    def training_epoch(training_state, env_state, key):
        return expand(got["f"](squeeze(training_state), squeeze(env_state), squeeze(key)))

    grow = lambda a: (chips, envs // chips, *a.shape[2:]) if a.ndim > 1 and a.shape[1] == 8 else (chips, *a.shape[1:])
    state, env_state, key = got["x"]
    one = lambda a: jax.ShapeDtypeStruct((chips, *a.shape[1:]), a.dtype, sharding=B)
    args = (jax.tree.map(one, state), jax.tree.map(lambda a: jax.ShapeDtypeStruct(grow(a), a.dtype, sharding=B), env_state), jax.tree.map(one, key))
    f = jax.shard_map(training_epoch, mesh=m, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    f.__name__ = "training_epoch"
    classify = lambda path: "opt" if "optimizer_state" in path else "weight" if path.startswith("[0]") else "input"
    return Program(f, args, classify, (0, 1) if donate else ())


def mjx(topology, chips, batch, steps, name="ant", donate=False, record=True):
    from brax import envs as E
    from mujoco import mjx as X
    env = E.get_environment(name, backend="mjx"); model = env.sys.mj_model if hasattr(env.sys, "mj_model") else env.sys
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
