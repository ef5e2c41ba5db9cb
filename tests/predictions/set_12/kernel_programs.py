"""JAX's own Pallas kernels: flash attention and megablox' grouped matmul in a mixture of experts, layers scanned (put together by us)."""
import jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
from jax.experimental.pallas.ops.tpu.megablox.ops import gmm
from pieces import HALF, entropy, gradients, kind_of_step, rms, shardings, training_step
from recipe import Program, mesh


def experts(topology, chips, batch, length, depth, width, heads, count, hidden, vocabulary, remat=False, chunks=1, micro=1):
    m = mesh(topology, (chips,), ("fsdp",)); N = lambda *p: NamedSharding(m, P(*p))
    sd = lambda shape, *p: jax.ShapeDtypeStruct(shape, "float32", sharding=N(*p))
    params = {"embed": sd((vocabulary, width), None, "fsdp"), "head": sd((width, vocabulary), "fsdp"), "layers": {
        "norm1": sd((depth, width)), "norm2": sd((depth, width)), "qkv": sd((depth, width, 3 * width), None, "fsdp"), "out": sd((depth, width, width), None, "fsdp"),
        "router": sd((depth, width, count)), "up": sd((depth, count, width, hidden), None, None, "fsdp"), "down": sd((depth, count, hidden, width), None, None, None, "fsdp")}}
    tx = optax.adamw(1e-4)
    opt = jax.eval_shape(tx.init, params)
    by_name = {jax.tree_util.keystr(p)[-20:]: a.sharding for p, a in jax.tree_util.tree_flatten_with_path(params)[0]}
    opt = jax.tree_util.tree_map_with_path(lambda p, a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=next((s for q, s in by_name.items() if a.ndim > 0 and jax.tree_util.keystr(p).endswith(q)), N())), opt)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=N("fsdp"))

    def mixture(x, router, up, down):  # tokens of one device, top 2 of the experts
        flat = x.reshape(-1, width)
        weight, expert = jax.lax.top_k(jax.nn.softmax((flat @ router.astype(HALF)).astype(jnp.float32)), 2)
        order = jnp.argsort(expert.reshape(-1)); sizes = jnp.bincount(expert.reshape(-1), length=count).astype(jnp.int32)
        rows = flat[order // 2]
        tiling = (512, 512, 512)
        y = gmm(jax.nn.gelu(gmm(rows, up, sizes, HALF, tiling)), down, sizes, HALF, tiling)
        y = y * weight.reshape(-1)[order][:, None].astype(HALF)
        return jnp.zeros_like(flat).at[order // 2].add(y).reshape(x.shape)

    shard = lambda f, ins: jax.shard_map(f, mesh=m, in_specs=ins, out_specs=P("fsdp"), check_vma=False)

    def layer(x, w):
        q, k, v = [a.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2) for a in jnp.split(rms(x, w["norm1"]) @ w["qkv"].astype(HALF), 3, -1)]
        a = shard(lambda q, k, v: flash_attention(q, k, v, causal=True, sm_scale=q.shape[-1] ** -0.5), (P("fsdp"),) * 3)(q, k, v)
        x = x + a.swapaxes(1, 2).reshape(x.shape) @ w["out"].astype(HALF)
        return x + shard(mixture, (P("fsdp"), P(), P(), P()))(rms(x, w["norm2"]), w["router"], w["up"].astype(HALF), w["down"].astype(HALF)), None

    body = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(HALF)[tokens], N("fsdp"))
        x, _ = jax.lax.scan(body, x, params["layers"])
        return entropy(x, params["head"], jnp.roll(tokens, -1, 1), chunks)

    update = training_step(gradients(loss_fn, m, micro), tx, "update")
    return Program(update, (params, opt, tokens), kind_of_step, (0, 1), (shardings(params), shardings(opt), None))
