"""Brax' PPO and SAC, their training_epoch caught."""

import jax
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import caught, on_every_device
from recipe import Program, mesh


def epoch(topology, chips, train, donate, classify, **options):
    """What `train` would run on each of the devices, all of them in one program."""
    function, values = caught(train, **options)
    devices = mesh(topology, (chips,), ("i",))
    split = NamedSharding(devices, P("i"))
    args = jax.tree.map(lambda a: jax.ShapeDtypeStruct((chips, *a.shape[1:]), a.dtype, sharding=split), values)
    return Program(on_every_device(function, devices), args, classify, donate)


def part(path):
    """What an argument is whose path is in the first one, the training state."""
    return "opt" if "optimizer_state" in path else "weight"


def ppo(topology, chips, envs, batch, minibatches, unroll, name="humanoid", backend="spring", donate=True):
    """`envs` and `batch` are a device's."""
    from brax import envs as E
    from brax.training.agents.ppo import train as T

    classify = lambda path: part(path) if path.startswith("[0]") else "input"
    return epoch(
        topology, chips, T.train, (0, 1) if donate else (), classify,
        environment=E.get_environment(name, backend=backend), num_timesteps=200_000_000, episode_length=1000,
        num_envs=envs, unroll_length=unroll, batch_size=batch, num_minibatches=minibatches,
        num_updates_per_batch=4, num_evals=0, normalize_observations=True, run_evals=False)


def sac(topology, chips, envs, batch, replay, updates, name="humanoid", backend="spring", donate=True):
    """All sizes are a device's. The replay buffer is state that is neither weights nor the optimizer's."""
    from brax import envs as E
    from brax.training.agents.sac import train as T

    def classify(path):
        return part(path) if path.startswith("[0]") else "other" if path.startswith("[2]") else "input"

    return epoch(
        topology, chips, T.train, (0, 1, 2) if donate else (), classify,
        environment=E.get_environment(name, backend=backend), num_timesteps=10_000_000, episode_length=1000,
        num_envs=envs, batch_size=batch, grad_updates_per_step=updates,
        min_replay_size=envs, max_replay_size=replay, normalize_observations=True, num_evals=1)
