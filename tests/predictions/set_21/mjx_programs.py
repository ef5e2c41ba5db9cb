"""MuJoCo's MJX: iterative LQR of many bodies at once: rollouts, all the dynamics' Jacobians, a Riccati recursion, a line search."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

from brax_pieces import mujoco_model
from recipe import Program, mesh


def ilqr(topology, chips, bodies, steps, name="hopper", tries=8, donate=False):
    from mujoco import mjx

    model = mujoco_model(name)
    model.opt.iterations, model.opt.ls_iterations = 1, 4
    model = mjx.put_model(model)
    data = mjx.make_data(model)
    nq, nv, nu = model.nq, model.nv, model.nu
    nx = nq + nv
    devices = mesh(topology, (chips,), ("bodies",))
    split, whole = NamedSharding(devices, P("bodies")), NamedSharding(devices, P())

    def iterate(model, data, states, controls, goal):
        def move(x, u):
            d = mjx.step(model, data.replace(qpos=x[:nq], qvel=x[nq:], ctrl=u))
            return jnp.concatenate([d.qpos, d.qvel])

        cost = lambda x, u: 0.5 * ((x - goal) ** 2).sum() + 0.05 * (u**2).sum()

        def one(x0, us):
            def forward(x, u):
                return move(x, u), x

            last, xs = jax.lax.scan(forward, x0, us)
            A, B = jax.vmap(jax.jacfwd(move, (0, 1)))(xs, us)
            gx, gu = jax.vmap(jax.grad(cost, (0, 1)))(xs, us)
            Q, R = jnp.eye(nx), 0.1 * jnp.eye(nu)

            def riccati(carry, given):
                V, v = carry
                A, B, gx, gu = given
                qx, qu = gx + A.T @ v, gu + B.T @ v
                qxx, quu, qux = Q + A.T @ V @ A, R + B.T @ V @ B, B.T @ V @ A
                chol = jax.scipy.linalg.cho_factor(quu + 1e-3 * jnp.eye(nu))
                K, k = -jax.scipy.linalg.cho_solve(chol, qux), -jax.scipy.linalg.cho_solve(chol, qu)
                return (qxx + K.T @ quu @ K + K.T @ qux + qux.T @ K, qx + K.T @ quu @ k + K.T @ qu + qux.T @ k), (K, k)

            _, (K, k) = jax.lax.scan(riccati, (Q, last - goal), (A, B, gx, gu), reverse=True)

            def attempt(alpha):
                def follow(x, given):
                    u, seen, K, k = given
                    u = u + alpha * k + K @ (x - seen)
                    return move(x, u), (u, cost(x, u))

                _, (us_new, costs) = jax.lax.scan(follow, x0, (us, xs, K, k))
                return us_new, costs.sum()

            plans, costs = jax.vmap(attempt)(0.5 ** jnp.arange(tries))
            best = costs.argmin()
            return plans[best], costs[best]

        return jax.vmap(one)(states, controls)

    abstract = lambda tree, where: jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), jnp.asarray(a).dtype, sharding=where), tree)
    F = lambda where, *s: jax.ShapeDtypeStruct(s, "float32", sharding=where)
    args = (abstract(model, whole), abstract(data, whole), F(split, bodies, nx), F(split, bodies, steps, nu), F(whole, nx))
    return Program(iterate, args, lambda path: "weight" if path.startswith("[0]") else "input", (3,) if donate else ())
