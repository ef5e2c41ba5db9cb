"""JAX alone: the optimizer's state divided; experts with capacities and a tensor-parallel decoder, with and without constraints."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, following, kind_of_step, rms, shardings, training_step
from recipe import Program, mesh, placed


def gshard(topology, shape, batch, length, depth, width, heads, hidden, experts, vocabulary, constrain=False, remat=False, chunks=1):
    """Every layer's experts see each sequence as a group; two experts a token, capacity twice the mean."""
    devices = mesh(topology, shape, ("data", "expert"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    keep = (lambda a, *spec: jax.lax.with_sharding_constraint(a, on(*spec))) if constrain else lambda a, *spec: a
    capacity, size = 2 * 2 * length // experts, width // heads
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    layer = {"norm1": F(depth, width), "norm2": F(depth, width),
             "qkv": F(depth, width, 3, heads, size), "out": F(depth, heads, size, width),
             "router": F(depth, width, experts), "wi": F(depth, experts, width, hidden), "wo": F(depth, experts, hidden, width)}
    params = {"embed": F(vocabulary, width), "layers": layer, "norm": F(width), "head": F(width, vocabulary)}

    def where(path, leaf):
        if "'wi'" in path or "'wo'" in path:
            return on(None, "expert", "data")
        return on()

    transform = optax.adamw(1e-4)
    params = placed(params, where)
    state = placed(jax.eval_shape(transform.init, params), where)

    def moe(x, w):
        gates = jax.nn.softmax(x.astype(jnp.float32) @ w["router"])
        value, index = jax.lax.top_k(gates, 2)
        chosen = jax.nn.one_hot(index, experts)  # [group, token, 2, expert]
        place = (jnp.cumsum(chosen.sum(2), 1) - 1)[:, :, None] * chosen
        slots = jax.nn.one_hot(place.astype(jnp.int32), capacity) * chosen[..., None]
        combine = (slots * value[..., None, None]).sum(2).astype(HALF)  # [group, token, expert, capacity]
        dispatch = (combine > 0).astype(HALF)
        y = keep(jnp.einsum("gsec,gsm->egcm", dispatch, x), "expert", "data")
        y = keep(jax.nn.gelu(jnp.einsum("egcm,emh->egch", y, w["wi"].astype(HALF))), "expert", "data")
        y = keep(jnp.einsum("egch,ehm->egcm", y, w["wo"].astype(HALF)), "expert", "data")
        return keep(jnp.einsum("gsec,egcm->gsm", combine, y), ("data", "expert"))

    def block(x, w):
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dnhk->btnhk", rms(x, w["norm1"]), w["qkv"].astype(HALF)), 2, 0)
        x = keep(x + jnp.einsum("bthk,hkd->btd", causal(q, k, v), w["out"].astype(HALF)), ("data", "expert"))
        return x + moe(rms(x, w["norm2"]), w), None

    def loss_fn(params, tokens):
        x = keep(params["embed"].astype(HALF)[tokens], ("data", "expert"))
        x, _ = jax.lax.scan(jax.checkpoint(block) if remat else block, x, params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on(("data", "expert")))
    step = training_step(jax.value_and_grad(loss_fn), transform)
    return Program(step, (params, state, tokens), kind_of_step, (0, 1), (shardings(params), shardings(state), None))


def tensor(topology, shape, batch, length, depth, width, heads, hidden, vocabulary, constrain=False, remat=False, chunks=1):
    """Megatron's division of heads and of the MLP; where constrained, the residual stream between is divided by its length."""
    devices = mesh(topology, shape, ("data", "model"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    keep = lambda a: jax.lax.with_sharding_constraint(a, on("data", "model")) if constrain else a
    size = width // heads
    F = lambda shape, *spec: jax.ShapeDtypeStruct(shape, "float32", sharding=on(*spec))
    layers = {
        "norm1": F((depth, width)), "norm2": F((depth, width)),
        "qkv": F((depth, width, 3, heads, size), None, None, None, "model"), "out": F((depth, heads, size, width), None, "model"),
        "gate": F((depth, width, hidden), None, None, "model"), "up": F((depth, width, hidden), None, None, "model"),
        "down": F((depth, hidden, width), None, "model")}
    params = {"embed": F((vocabulary, width), "model"), "norm": F((width,)), "head": F((width, vocabulary), None, "model"), "layers": layers}
    transform = optax.sgd(0.1, momentum=0.9)
    state = following(jax.eval_shape(transform.init, params), params, on())
    part = P("data", None, "model")
    attention = jax.shard_map(flash, mesh=devices, in_specs=(part,) * 3, out_specs=part, check_vma=False)

    def block(x, w):
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dnhk->btnhk", rms(x, w["norm1"]), w["qkv"].astype(HALF)), 2, 0)
        x = keep(x + jnp.einsum("bthk,hkd->btd", attention(q, k, v), w["out"].astype(HALF)))
        y = rms(x, w["norm2"])
        y = jax.nn.silu(y @ w["gate"].astype(HALF)) * (y @ w["up"].astype(HALF))
        return keep(x + y @ w["down"].astype(HALF)), None

    def loss_fn(params, tokens):
        x, _ = jax.lax.scan(jax.checkpoint(block) if remat else block, keep(params["embed"].astype(HALF)[tokens]), params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    step = training_step(jax.value_and_grad(loss_fn), transform)
    return Program(step, (params, state, tokens), kind_of_step, (0, 1), (shardings(params), shardings(state), None))
