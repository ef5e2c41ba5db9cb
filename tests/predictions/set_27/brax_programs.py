"""Brax: PPO on its Humanoid, its training_epoch caught."""

import jax
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import caught, on_every_device
from recipe import Program, mesh


def ppo(topology, chips, envs, batch, minibatches, unroll, name="humanoid", backend="spring", donate=True):
    """`envs` and `batch` are a device's."""
    from brax import envs as E
    from brax.training.agents.ppo import train as T

    function, values = caught(
        T.train, environment=E.get_environment(name, backend=backend), num_timesteps=100_000_000, episode_length=1000,
        num_envs=envs, unroll_length=unroll, batch_size=batch, num_minibatches=minibatches,
        num_updates_per_batch=8, num_evals=0, normalize_observations=True, run_evals=False)
    devices = mesh(topology, (chips,), ("i",))
    split = NamedSharding(devices, P("i"))
    args = jax.tree.map(lambda a: jax.ShapeDtypeStruct((chips, *a.shape[1:]), a.dtype, sharding=split), values)
    classify = lambda path: ("opt" if "optimizer_state" in path else "weight") if path.startswith("[0]") else "input"
    return Program(on_every_device(function, devices), args, classify, (0, 1) if donate else ())
