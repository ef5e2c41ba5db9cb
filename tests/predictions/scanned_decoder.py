"""A Llama-like decoder, its layers scanned, with one of JAX's attention kernels or without."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, gradients, kind_of_step, rms, shardings, training_step
from recipe import Program, largest_dimension, mesh, placed

TRANSFORMS = {"adamw": lambda: optax.adamw(1e-4), "lamb": lambda: optax.lamb(1e-3), "sgdm": lambda: optax.sgd(0.1, momentum=0.9)}


def splash(length, heads, kv, size):
    """Grouped: the queries of one key-value head together."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as K, splash_attention_mask as M

    mask = M.MultiHeadMask([M.CausalMask((length, length)) for _ in range(heads // kv)])
    made = K.make_splash_mqa(mask, head_shards=1, q_seq_shards=1)

    def attend(q, k, v):
        q = (q * size**-0.5).reshape(q.shape[0], kv, heads // kv, *q.shape[2:])
        return jax.vmap(jax.vmap(made))(q, k, v).reshape(q.shape[0], heads, *q.shape[3:])

    return attend


def flash(heads, kv, size):
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    repeat = lambda a: jnp.repeat(a, heads // kv, 1)
    return lambda q, k, v: flash_attention(q, repeat(k), repeat(v), causal=True, sm_scale=size**-0.5)


def decoder(
        topology, chips, batch, length, depth, width, heads, kv, hidden, vocabulary, kernel, policy=None,
        optimizer="adamw", chunks=1, micro=1, donate=True, fsdp=True):
    """`policy` is what jax.checkpoint of a layer saves."""
    devices, size = mesh(topology, (chips,), ("fsdp",)), width // heads
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda shape, *spec: jax.ShapeDtypeStruct(shape, "float32", sharding=on(*spec))
    cut = "fsdp" if fsdp else None
    layers = {
        "norm1": F((depth, width)), "norm2": F((depth, width)),
        "q": F((depth, width, heads, size), None, cut), "kv": F((depth, width, 2, kv, size), None, cut),
        "o": F((depth, heads, size, width), None, None, None, cut),
        "gate": F((depth, width, hidden), None, cut), "up": F((depth, width, hidden), None, cut),
        "down": F((depth, hidden, width), None, None, cut)}
    params = {"embed": F((vocabulary, width), None, cut), "head": F((width, vocabulary), cut), "final_norm": F((width,)), "layers": layers}
    transform = TRANSFORMS[optimizer]()
    state = following(jax.eval_shape(transform.init, params), params, on())
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("fsdp"))
    attend = {"splash": lambda: splash(length, heads, kv, size), "flash": lambda: flash(heads, kv, size), None: lambda: None}[kernel]()

    def attention(q, k, v):  # [batch, time, heads, size]
        if attend is None:
            return jax.nn.dot_product_attention(q, k, v, is_causal=True)
        part = jax.shard_map(attend, mesh=devices, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False)
        return part(*[a.swapaxes(1, 2) for a in (q, k, v)]).swapaxes(1, 2)

    def layer(x, w):
        h = rms(x, w["norm1"])
        q = jnp.einsum("btd,dhk->bthk", h, w["q"].astype(HALF))
        k, v = jnp.moveaxis(jnp.einsum("btd,dnhk->btnhk", h, w["kv"].astype(HALF)), 2, 0)
        x = x + jnp.einsum("bthk,hkd->btd", attention(q, k, v), w["o"].astype(HALF))
        h = rms(x, w["norm2"])
        return x + (jax.nn.silu(h @ w["gate"].astype(HALF)) * (h @ w["up"].astype(HALF))) @ w["down"].astype(HALF), None

    body = jax.checkpoint(layer, policy=getattr(jax.checkpoint_policies, policy)) if policy else layer

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(HALF)[tokens], on("fsdp"))
        x, _ = jax.lax.scan(body, x, params["layers"])
        return entropy(rms(x, params["final_norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    update = training_step(gradients(loss_fn, devices, micro), transform, "update")
    outs = (shardings(params), shardings(state), None)
    return Program(update, (params, state, tokens), kind_of_step, (0, 1) if donate else (), outs)


def zero(shard=False, **options):
    """The scanned decoder with the optimizer's state divided between the devices, the weights whole on each."""
    made = decoder(**options)
    if shard:
        devices = made.args[2].sharding.mesh
        params, state, tokens = made.args
        state = placed(state, largest_dimension(devices, "fsdp"))
        made.args = (params, state, tokens)
        made.out_shardings = (made.out_shardings[0], shardings(state), None)
    return made
