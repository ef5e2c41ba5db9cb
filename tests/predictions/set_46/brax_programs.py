"""Brax: its analytic policy gradients (apg.train), the gradient through the physics of an unroll, of its ant (spring), on one chip."""

import jax
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import caught, on_every_device
from recipe import Program, mesh, placed


def apg(topology, chips, envs, name="ant", backend="spring", horizon=32, remat=False, donate=False):
    from brax import envs as E
    from brax.envs.wrappers import training as W
    from brax.training.agents.apg import train as T

    def wrapped(env, **options):
        env = W.wrap(env, **options)
        if remat:
            env.step = jax.checkpoint(env.step)
        return env

    # Few environments while its values are made, as many as wanted in their shapes.
    few = 16
    options = dict(episode_length=1000, policy_updates=499, num_evals=1, horizon_length=horizon, num_eval_envs=2, normalize_observations=True, max_gradient_norm=1e9)
    function, values = caught(T.train, environment=E.get_environment(name, backend=backend), wrap_env_fn=wrapped, num_envs=few, **options)
    devices = mesh(topology, (chips,), ("i",))
    split = NamedSharding(devices, P("i"))

    def shape(path, a):
        many = jax.tree_util.keystr(path).startswith("[1]") and a.ndim > 1 and a.shape[1] == few
        s = (chips, envs // chips, *a.shape[2:]) if many else (chips, *a.shape[1:])
        return jax.ShapeDtypeStruct(s, a.dtype, sharding=split)

    args = jax.tree_util.tree_map_with_path(shape, tuple(values))
    classify = lambda path: "input" if path.startswith("[1]") else "opt" if "optimizer" in path else "weight" if "policy" in path else "other"
    return Program(on_every_device(function, devices), args, classify, (0, 1) if donate else ())


def hopper(**options):
    return apg(name="hopper", backend="generalized", horizon=16, **options)


def cheetah(**options):
    return apg(name="halfcheetah", backend="spring", horizon=24, **options)
