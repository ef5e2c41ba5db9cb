"""JAX alone: Mixtral 8x7B with capacity, experts over one axis and FSDP over another; inputs of layers go to the host (a checkpoint policy that offloads)."""

import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, following, kind_of_step, rms, shardings
from recipe import Program, mesh, placed


def splash(q, k, v, heads, group):
    """Of a device: [batch, time, heads, size], keys and values of fewer heads."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel, splash_attention_mask as masks

    n = q.shape[1]
    sizes = kernel.BlockSizes(block_q=512, block_kv=512, block_kv_compute=512, block_q_dkv=512, block_kv_dkv=512, block_kv_dkv_compute=512, block_q_dq=512, block_kv_dq=512)
    run = kernel.make_splash_mha(masks.MultiHeadMask([masks.CausalMask((n, n)) for _ in range(heads)]), head_shards=1, q_seq_shards=1, block_sizes=sizes)
    first = lambda a: a.swapaxes(1, 2)
    k, v = jnp.repeat(k, group, 2), jnp.repeat(v, group, 2)
    return first(jax.vmap(run)(first(q) * (q.shape[-1] ** -0.5), first(k), first(v)))


def mixtral(topology, shape, batch, length=4096, depth=32, width=4096, heads=32, kv=8, hidden=14336, experts=8, top=2, factor=1.25, words=32000, chunks=1, blockwise=False, host=False, donate=True):
    devices = mesh(topology, shape, ("fsdp", "expert"))
    every, size, group = ("fsdp", "expert"), width // heads, heads // kv
    where = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda spec, *s: jax.ShapeDtypeStruct(s, "float32", sharding=where(*spec))
    L = depth
    layers = {"wq": F((None, every), L, width, width), "wk": F((None, every), L, width, kv * size), "wv": F((None, every), L, width, kv * size), "wo": F((None, every), L, width, width),
              "router": F((), L, width, experts), "w1": F((None, "expert", "fsdp"), L, experts, width, hidden), "w3": F((None, "expert", "fsdp"), L, experts, width, hidden), "w2": F((None, "expert", "fsdp"), L, experts, hidden, width),
              "norm1": F((), L, width), "norm2": F((), L, width)}
    params = {"embed": F((None, every), words, width), "head": F((every,), width, words), "norm": F((), width), "layers": layers}
    transform = optax.adamw(1e-5, b2=0.95)
    opt = following(jax.eval_shape(transform.init, params), params, where())
    near = shardings(opt)
    if host:
        opt = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding.with_memory_kind("pinned_host")) if a.ndim else a, opt)
    keep = lambda a: jax.lax.with_sharding_constraint(a, where(every))
    room = int(factor * length * top / experts)
    if blockwise:
        attend = jax.shard_map(lambda q, k, v: splash(q, k, v, heads, group), mesh=devices, in_specs=P(every), out_specs=P(every), check_vma=False)
    else:
        attend = lambda q, k, v: causal(q, jnp.repeat(k, group, 2), jnp.repeat(v, group, 2))

    def experts_of(h, w):  # [batch, time, width]
        p = jax.nn.softmax((h @ w["router"].astype(HALF)).astype(jnp.float32))
        share, ids = jax.lax.top_k(p, top)
        share = share / share.sum(-1, keepdims=True)
        send, taken = 0, jnp.zeros((h.shape[0], 1, experts))
        for i in range(top):  # first choices have precedence
            one = jax.nn.one_hot(ids[..., i], experts)
            place = jnp.cumsum(one, 1) - 1 + taken
            taken = taken + one.sum(1, keepdims=True)
            slot = jax.nn.one_hot(jnp.where(one > 0, place, -1).astype(jnp.int32), room, dtype=HALF)
            send = send + slot * share[..., i, None, None].astype(HALF)
        rows = jnp.einsum("btec,btd->ebcd", (send > 0).astype(HALF), h)
        rows = jax.lax.with_sharding_constraint(rows, where("expert", "fsdp"))
        full = lambda n: jax.lax.with_sharding_constraint(w[n].astype(HALF), where("expert"))
        y = jax.nn.silu(jnp.einsum("ebcd,edf->ebcf", rows, full("w1"))) * jnp.einsum("ebcd,edf->ebcf", rows, full("w3"))
        y = jax.lax.with_sharding_constraint(jnp.einsum("ebcf,efd->ebcd", y, full("w2")), where("expert", "fsdp"))
        return jnp.einsum("btec,ebcd->btd", send, y)

    def layer(x, w):
        x = checkpoint_name(x, "layer_in")
        h = rms(x, w["norm1"])
        q, k, v = ((h @ w[n].astype(HALF)).reshape(*h.shape[:2], -1, size) for n in ("wq", "wk", "wv"))
        x = keep(x + attend(q, k, v).reshape(x.shape) @ w["wo"].astype(HALF))
        return keep(x + experts_of(rms(x, w["norm2"]), w)), None

    policy = jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=[], names_which_can_be_offloaded=["layer_in"], offload_src="device", offload_dst="pinned_host")

    def loss_fn(params, tokens):
        x, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy, prevent_cse=False), keep(params["embed"].astype(HALF)[tokens]), params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        if host:
            opt_state = jax.device_put(opt_state, near)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=where(every))
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
