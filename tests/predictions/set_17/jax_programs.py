"""JAX alone: linear recurrent layers (LRU) by an associative scan; a mixture of experts sent around by all_to_all inside shard_map; ring attention."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, gradients, kind_of_step, rms, shardings, training_step
from recipe import Program, largest_dimension, mesh, placed


def lru(topology, chips, batch, length, depth, width, states, vocabulary, remat=False, chunks=1, micro=1, zero=False, donate=True):
    """Layers in a Python list; complex states, as the paper's minimal code has them."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    layer = {"nu": F(states), "theta": F(states), "gamma": F(states), "b_re": F(width, states), "b_im": F(width, states), "c_re": F(states, width),
             "c_im": F(states, width), "d": F(width), "scale": F(width), "gate": F(width, width), "value": F(width, width)}
    params = {"embed": F(vocabulary, width), "layers": [dict(layer) for _ in range(depth)], "norm": F(width), "head": F(width, vocabulary)}
    transform = optax.adamw(1e-3)
    state = jax.eval_shape(transform.init, params)
    state = placed(state, largest_dimension(devices, "data") if zero else whole)

    def recurrent_layer(x, w):
        u = rms(x, w["scale"])
        decay = jnp.exp(-jnp.exp(w["nu"]) + 1j * jnp.exp(w["theta"]))
        b = w["b_re"] + 1j * w["b_im"]
        driven = (u.astype(jnp.complex64) @ b) * w["gamma"]

        def merge(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]

        decays = jnp.broadcast_to(decay, driven.shape)
        _, h = jax.lax.associative_scan(merge, (decays, driven), axis=1)
        y = (h @ (w["c_re"] + 1j * w["c_im"])).real + w["d"] * u
        y = jax.nn.gelu(y).astype(HALF)
        return x + (y @ w["value"].astype(HALF)) * jax.nn.sigmoid(y @ w["gate"].astype(HALF))

    body = jax.checkpoint(recurrent_layer) if remat else recurrent_layer

    def loss_fn(params, tokens):
        x = params["embed"].astype(HALF)[tokens]
        for i, w in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{i}"):
                x = body(x, w)
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    update = training_step(gradients(loss_fn, devices, micro), transform)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(update, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def ring(topology, shape, batch, length, depth, width, heads, hidden, vocabulary, remat=False, chunks=1, donate=True):
    """The sequence is divided between devices; keys and values go around a ring, the softmax is kept online. Weights divided (FSDP)."""
    devices = mesh(topology, shape, ("data", "seq"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    size, count = width // heads, shape[1]
    F = lambda *s, where=(): jax.ShapeDtypeStruct(s, "float32", sharding=on(*where))
    cut = ("data", "seq")
    layers = {"norm1": F(depth, width), "norm2": F(depth, width), "qkv": F(depth, width, 3, heads, size, where=(None, cut)),
              "out": F(depth, heads, size, width, where=(None, None, None, cut)), "up": F(depth, width, hidden, where=(None, cut)),
              "down": F(depth, hidden, width, where=(None, None, cut))}
    params = {"embed": F(vocabulary, width, where=(None, cut)), "layers": layers, "norm": F(width), "head": F(width, vocabulary, where=(cut,))}
    transform = optax.adamw(1e-4)
    state = following(jax.eval_shape(transform.init, params), params, on())

    def ring_attention(q, k, v):
        me = jax.lax.axis_index("seq")
        part = q.shape[1]
        places = me * part + jnp.arange(part)

        def one(carry, i):
            k, v, top, total, out = carry
            theirs = ((me - i) % count) * part + jnp.arange(part)
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * size**-0.5
            scores = jnp.where(places[:, None] >= theirs[None], scores, -1e30)
            new = jnp.maximum(top, scores.max(-1))
            weights, old = jnp.exp(scores - new[..., None]), jnp.exp(top - new)
            out = out * old[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights.astype(HALF), v).astype(jnp.float32)
            turn = functools.partial(jax.lax.ppermute, axis_name="seq", perm=[(j, (j + 1) % count) for j in range(count)])
            return (turn(k), turn(v), new, total * old + weights.sum(-1), out), None

        shape = (q.shape[0], heads, part)
        begin = (k, v, jnp.full(shape, -1e30), jnp.zeros(shape), jnp.zeros((*shape, size)))
        (_, _, _, total, out), _ = jax.lax.scan(one, begin, jnp.arange(count))
        return (out / total[..., None]).astype(HALF).swapaxes(1, 2)

    spec = P("data", "seq")
    attention = jax.shard_map(ring_attention, mesh=devices, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)

    def layer(x, w):
        x = jax.lax.with_sharding_constraint(x, on("data", "seq"))
        qkv = jnp.einsum("btd,dnhk->nbthk", rms(x, w["norm1"]), w["qkv"].astype(HALF))
        x = x + jnp.einsum("bthk,hkd->btd", attention(*qkv), w["out"].astype(HALF))
        h = jax.nn.gelu(rms(x, w["norm2"]) @ w["up"].astype(HALF))
        return x + h @ w["down"].astype(HALF), None

    body = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(HALF)[tokens], on("data", "seq"))
        x, _ = jax.lax.scan(body, x, params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    update = training_step(jax.value_and_grad(loss_fn), transform)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data", "seq"))
    return Program(update, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
