"""Brax' own training epochs: APG (gradients through the simulation) of the ant, SAC of the humanoid with its replay memory."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import caught, on_every_device
from recipe import Program, mesh


def apg(topology, chips, envs, horizon=32, remat=False, donate=False):
    from brax import envs as E
    from brax.envs.wrappers import training as W
    from brax.training.agents.apg import train as T

    class Checkpointed(E.base.Wrapper):
        def step(self, state, action):
            return jax.checkpoint(self.env.step)(state, action)

    def wrap(env, **options):
        env = W.wrap(env, **options)
        return Checkpointed(env) if remat else env

    function, values = caught(
        T.train, environment=E.get_environment("ant", backend="spring"), episode_length=1000, policy_updates=499, wrap_env_fn=wrap, horizon_length=horizon, num_envs=2,
        num_evals=1, learning_rate=3e-4, normalize_observations=True, max_devices_per_host=1)
    devices = mesh(topology, (chips,), ("i",))
    where = NamedSharding(devices, P("i"))
    training, state, key = values
    one = lambda tree: jax.tree.map(lambda a: jax.ShapeDtypeStruct((chips, *a.shape[1:]), a.dtype, sharding=where), tree)
    # The environments' dimension is the second; caught with two of them.
    many = jax.tree.map(lambda a: jax.ShapeDtypeStruct((chips, envs // chips, *a.shape[2:]), a.dtype, sharding=where), state)
    training = one(training)

    def classify(path):
        if not path.startswith("[0]"):
            return "input" if path.startswith("[2]") else "other"
        return "opt" if "optimizer_state" in path else "weight" if "policy_params" in path else "other"

    each = on_every_device(function, devices)

    def training_epoch(training_state, env_state, key):
        return each(training_state, env_state, key)

    return Program(training_epoch, (training, many, one(jax.tree.map(jnp.asarray, key))), classify, (0, 1) if donate else ())


def sac(topology, chips, room, envs=256, batch=1024, updates=8, donate=True):
    """Caught with a small memory and few environments; then the memory has `room` places on each device."""
    from brax import envs as E
    from brax.training import replay_buffers as R
    from brax.training.agents.sac import train as T

    queues = []
    real = R.UniformSamplingQueue

    class Queue(real):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            queues.append(self)

    R.UniformSamplingQueue = Queue
    jax.config.update("jax_num_cpu_devices", 1)
    function, values = caught(
        T.train, environment=E.get_environment("humanoid", backend="spring"), num_timesteps=1 << 20, episode_length=1000, num_envs=2, learning_rate=6e-4, discounting=0.97, batch_size=batch,
        num_evals=1, normalize_observations=True, reward_scaling=30.0, min_replay_size=0, max_replay_size=16, grad_updates_per_step=updates, max_devices_per_host=1)
    R.UniformSamplingQueue = real
    queue = queues[-1]
    small = queue._data_shape
    queue._data_shape = (room, small[1])
    devices = mesh(topology, (chips,), ("i",))
    where = NamedSharding(devices, P("i"))
    training, state, buffer, key = values
    S = lambda s, d: jax.ShapeDtypeStruct((chips, *s), d, sharding=where)
    one = lambda tree: jax.tree.map(lambda a: S(a.shape[1:], a.dtype), tree)
    many = jax.tree.map(lambda a: S((envs, *a.shape[2:]), a.dtype), state)
    buffer = one(buffer).replace(data=S((room, small[1]), buffer.data.dtype))

    def classify(path):
        if path.startswith("[0]"):
            return "opt" if "optimizer_state" in path else "weight" if "_params" in path and "normalizer" not in path else "other"
        return "input" if path.startswith("[3]") else "other"

    each = on_every_device(function, devices)

    def training_epoch(training_state, env_state, buffer_state, key):
        return each(training_state, env_state, buffer_state, key)

    return Program(training_epoch, (one(training), many, buffer, one(jax.tree.map(jnp.asarray, key))), classify, (0, 1, 2) if donate else ())
