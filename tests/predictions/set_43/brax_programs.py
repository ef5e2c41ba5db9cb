"""Brax: PPO of the humanoid (spring) by its own unroll, networks, loss and running statistics: one training step, rollout and epochs of mini-batches in one program on one chip."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from recipe import Program, mesh, placed


def ppo(topology, chips, envs, unroll=32, parts=8, epochs=4, donate=True):
    from brax import envs as E
    from brax.envs.wrappers import training as W
    from brax.training import acting
    from brax.training.acme import running_statistics, specs
    from brax.training.agents.ppo import losses, networks as N

    devices = mesh(topology, (chips,), ("i",))
    whole = NamedSharding(devices, P())
    env = W.wrap(E.get_environment("humanoid", backend="spring"), episode_length=1000, action_repeat=1)
    net = N.make_ppo_networks(env.observation_size, env.action_size, preprocess_observations_fn=running_statistics.normalize, policy_hidden_layer_sizes=(512, 256, 128), value_hidden_layer_sizes=(512, 256, 128))
    make_policy = N.make_inference_fn(net)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-4))

    def init(key):
        params = losses.PPONetworkParams(policy=net.policy_network.init(key), value=net.value_network.init(key))
        seen = running_statistics.init_state(specs.Array((env.observation_size,), jnp.dtype("float32")))
        return params, transform.init(params), seen, env.reset(jax.random.split(key, envs))

    params, opt, normalizer, state = placed(jax.eval_shape(init, jax.random.PRNGKey(0)), whole)

    def training_step(params, opt_state, normalizer, env_state, key):
        k1, k2 = jax.random.split(key)
        policy = make_policy((normalizer, params.policy, params.value))
        env_state, data = acting.generate_unroll(env, env_state, policy, k1, unroll, extra_fields=("truncation",))
        data = jax.tree.map(lambda a: jnp.swapaxes(a, 0, 1), data)  # environments first
        normalizer = running_statistics.update(normalizer, data.observation)

        def minibatch(carry, xs):
            params, opt_state = carry
            piece, key = xs
            grads, metrics = jax.grad(losses.compute_ppo_loss, has_aux=True)(params, normalizer, piece, key, net, entropy_cost=1e-3, discounting=0.97, reward_scaling=0.1)
            updates, opt_state = transform.update(grads, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), metrics["total_loss"]

        def epoch(carry, key):
            k1, k2 = jax.random.split(key)
            order = lambda a: jax.random.permutation(k1, a).reshape(parts, -1, *a.shape[1:])
            return jax.lax.scan(minibatch, carry, (jax.tree.map(order, data), jax.random.split(k2, parts)))

        (params, opt_state), loss = jax.lax.scan(epoch, (params, opt_state), jax.random.split(k2, epochs))
        return params, opt_state, normalizer, env_state, loss.mean()

    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "other", "[3]": "input"}.get(path[:3], "other")
    key = jax.ShapeDtypeStruct((2,), "uint32", sharding=whole)
    return Program(training_step, (params, opt, normalizer, state, key), classify, (0, 1, 2, 3) if donate else ())
