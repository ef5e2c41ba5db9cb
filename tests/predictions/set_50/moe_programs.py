"""JAX and Optax alone: OLMoE 1B-7B (16 layers of 2048 by lax.scan, 64 experts of 1024, eight a word) in training on texts of 4096; experts divided over 8 chips, words sent to them and back by all_to_all with room for a quarter more, everything else whole; weights in float32, computing in bfloat16, AdamW."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, flash, following, gradients, kind_of_step, rms, shardings, turned
from recipe import Program, mesh


def stored_as(transform, dtype):
    """Its moments kept in `dtype`, its sums in float32."""
    cast = lambda tree, d: jax.tree.map(lambda a: a.astype(d) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree)

    def update(grads, state, params):
        updates, state = transform.update(grads, cast(state, "float32"), params)
        return updates, cast(state, dtype)

    return optax.GradientTransformation(lambda params: cast(transform.init(params), dtype), update)


def moe(topology, chips, batch, length=4096, vocabulary=50304, width=2048, depth=16, heads=16, experts=64, hidden=1024, chosen=8, room=1.25, remat=False, moments="float32", stored="float32", micro=1, donate=True):
    devices, size = mesh(topology, (chips,), ("ep",)), width // heads
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda shape, *spec: jax.ShapeDtypeStruct(shape, "float32", sharding=on(*spec))
    layers = {
        "norm1": F((depth, width)), "norm2": F((depth, width)), "q": F((depth, width, width)), "k": F((depth, width, width)), "v": F((depth, width, width)), "o": F((depth, width, width)),
        "router": F((depth, width, experts)), "gate": F((depth, experts, width, hidden), None, "ep"), "up": F((depth, experts, width, hidden), None, "ep"), "down": F((depth, experts, hidden, width), None, "ep")}
    masters = {"embed": F((vocabulary, width)), "head": F((width, vocabulary)), "norm": F((width,)), "layers": layers}
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, stored, sharding=a.sharding), masters)
    transform = stored_as(optax.adamw(4e-4, b2=0.95, weight_decay=0.1), moments)
    state = following(jax.eval_shape(transform.init, masters), masters, on())
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("ep"))

    @functools.partial(jax.shard_map, mesh=devices, in_specs=(P("ep"),) * 3, out_specs=P("ep"), check_vma=False)
    def attention(q, k, v):
        return flash(q, k, v)

    @functools.partial(jax.shard_map, mesh=devices, in_specs=(P("ep"), P(), P("ep"), P("ep"), P("ep")), out_specs=(P("ep"), P()), check_vma=False)
    def through_experts(x, router, gate, up, down):
        rows = x.reshape(-1, width)
        count = rows.shape[0]
        places = int(count * chosen * room / experts)
        share = jax.nn.softmax((rows @ router.astype(HALF)).astype(jnp.float32))
        weights, who = jax.lax.top_k(share, chosen)
        flat = who.reshape(-1)
        mark = jax.nn.one_hot(flat, experts, dtype="int32")
        rank = jnp.take_along_axis(jnp.cumsum(mark, 0) - 1, flat[:, None], 1)[:, 0]
        slot = jnp.where(rank < places, flat * places + rank, experts * places)
        sent = jnp.zeros((experts * places, width), HALF).at[slot].set(jnp.repeat(rows, chosen, 0), mode="drop")
        sent = sent.reshape(chips, experts // chips, places, width)
        got = jax.lax.all_to_all(sent, "ep", 0, 0).swapaxes(0, 1).reshape(experts // chips, chips * places, width)
        h = jax.nn.silu(jnp.einsum("end,edh->enh", got, gate.astype(HALF))) * jnp.einsum("end,edh->enh", got, up.astype(HALF))
        out = jnp.einsum("enh,ehd->end", h, down.astype(HALF)).reshape(experts // chips, chips, places, width).swapaxes(0, 1)
        back = jax.lax.all_to_all(out, "ep", 0, 0).reshape(experts * places, width)
        each = back.at[slot].get(mode="fill", fill_value=0).reshape(count, chosen, width)
        y = jnp.einsum("nkd,nk->nd", each, weights.astype(HALF))
        balance = experts * jnp.sum(jax.lax.pmean(share.mean(0), "ep") * jax.lax.pmean(mark.reshape(count, chosen, experts).sum(1).astype(jnp.float32).mean(0), "ep"))
        return y.reshape(x.shape), balance

    def layer(x, w):
        h = rms(x, w["norm1"])
        q, k, v = ((h @ w[n].astype(HALF)).reshape(*h.shape[:2], heads, size) for n in "qkv")
        x = x + attention(turned(q, 10000.0), turned(k, 10000.0), v).reshape(x.shape) @ w["o"].astype(HALF)
        y, balance = through_experts(rms(x, w["norm2"]), w["router"], w["gate"], w["up"], w["down"])
        return x + y, balance

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(HALF)[tokens], on("ep"))
        x, balance = jax.lax.scan(jax.checkpoint(layer) if remat else layer, x, params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), 1) + 0.01 * balance.mean()

    def train_step(params, opt_state, tokens):
        loss, grads = gradients(loss_fn, devices, micro)(params, tokens)
        updates, opt_state = transform.update(jax.tree.map(lambda g: g.astype("float32"), grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
