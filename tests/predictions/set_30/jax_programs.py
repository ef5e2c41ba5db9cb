"""JAX alone: a server with a paged cache in int8 and its scales; Llama 2 7B by Adafactor, micro-batches in a Python loop, a policy in the scan."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def paged(topology, chips, slots, pages=6144, page=64, table=80, depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336, words=128256, kept="int8", donate=True):
    """keys, values [depth, kv, pages, page, size], one scale for each token and head; heads divided over the chips."""
    devices = mesh(topology, (chips,), ("model",))
    A = lambda d, s, *spec: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*spec)))
    W = lambda s, *spec: A("bfloat16", s, *spec)
    layers = {"wq": W((depth, width, heads, size), None, None, "model"), "wk": W((depth, width, kv, size), None, None, "model"), "wv": W((depth, width, kv, size), None, None, "model"), "wo": W((depth, heads, size, width), None, "model"),
              "gate": W((depth, width, hidden), None, None, "model"), "up": W((depth, width, hidden), None, None, "model"), "down": W((depth, hidden, width), None, "model"), "norm1": W((depth, width)), "norm2": W((depth, width))}
    params = {"embed": W((words, width), "model"), "head": W((width, words), None, "model"), "norm": W((width,)), "layers": layers}
    kvs = lambda d, *s: A(d, (depth, kv, pages, page, *s), None, "model")
    cache = {"keys": kvs(kept, size), "values": kvs(kept, size), "key_scales": kvs("bfloat16"), "value_scales": kvs("bfloat16")}
    group, every, context = heads // kv, jnp.arange(slots), table * page

    def quantised(a):  # [slots, kv, size]
        scale = jnp.maximum(jnp.abs(a).max(-1), 1e-6) / 127
        a = a / scale[..., None]
        return (jnp.round(a) if kept == "int8" else a).astype(kept), scale.astype(HALF)

    def decode(params, cache, tokens, lengths, tables):
        where, offset = tables[every, lengths // page], lengths % page

        def layer(carry, xs):
            x, cache = carry
            i, w = xs
            h = rms(x, w["norm1"])
            q = jnp.einsum("sd,dhk->shk", h, w["wq"]).reshape(slots, kv, group, size)
            new = dict(zip(("keys", "key_scales"), quantised(jnp.einsum("sd,dhk->shk", h, w["wk"])))) | dict(zip(("values", "value_scales"), quantised(jnp.einsum("sd,dhk->shk", h, w["wv"]))))
            cache = {n: cache[n].at[i, :, where, offset].set(new[n]) for n in cache}

            def read(a, scales):
                rows = cache[a][i][:, tables].astype(HALF) * cache[scales][i][:, tables][..., None]
                return rows.reshape(kv, slots, context, size)

            s = jnp.einsum("shgk,hstk->shgt", q, read("keys", "key_scales")).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(context) <= lengths[:, None, None, None], s, -1e30)
            o = jnp.einsum("shgt,hstk->shgk", jax.nn.softmax(s).astype(HALF), read("values", "value_scales"))
            x = x + jnp.einsum("shk,hkd->sd", o.reshape(slots, heads, size), w["wo"])
            h = rms(x, w["norm2"])
            return (x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], cache), None

        (x, cache), _ = jax.lax.scan(layer, (params["embed"][tokens], cache), (jnp.arange(depth), params["layers"]))
        return jnp.argmax(rms(x, params["norm"]) @ params["head"], -1).astype(jnp.int32), cache

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode, (params, cache, A("int32", (slots,)), A("int32", (slots,)), A("int32", (slots, table))), classify, (1,) if donate else (), (None, shardings(cache)))


def accum(topology, chips, batch, micro=2, length=4096, depth=32, width=4096, heads=32, hidden=11008, words=32000, policy="dots_with_no_batch_dims_saveable", donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    split, size = NamedSharding(devices, P("fsdp")), width // heads
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    layers = {"wq": F(depth, width, width), "wk": F(depth, width, width), "wv": F(depth, width, width), "wo": F(depth, width, width), "w1": F(depth, width, hidden), "w3": F(depth, width, hidden), "w2": F(depth, hidden, width), "norm1": F(depth, width), "norm2": F(depth, width)}
    params = placed({"embed": F(words, width), "head": F(width, words), "norm": F(width), "layers": layers}, largest_dimension(devices, "fsdp", 1 << 18))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adafactor(1e-3, multiply_by_parameter_scale=False, momentum=None))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    keep = lambda a: jax.lax.with_sharding_constraint(a, split)

    def layer(x, w):
        h = rms(x, w["norm1"])
        q, k, v = ((h @ w[n].astype(HALF)).reshape(*h.shape[:2], heads, size) for n in ("wq", "wk", "wv"))
        x = x + causal(q, k, v).reshape(x.shape) @ w["wo"].astype(HALF)
        h = rms(x, w["norm2"])
        return keep(x + (jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF))) @ w["w2"].astype(HALF)), None

    body = jax.checkpoint(layer, policy=getattr(jax.checkpoint_policies, policy), prevent_cse=False)

    def loss_fn(params, tokens):
        x, _ = jax.lax.scan(body, keep(params["embed"].astype(HALF)[tokens]), params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), 1)

    def train_step(params, opt_state, tokens):
        parts = tokens.reshape(chips, micro, -1, length)  # of each device's sequences
        total, grads = 0.0, jax.tree.map(jnp.zeros_like, params)
        for i in range(micro):
            loss, new = jax.value_and_grad(loss_fn)(params, keep(parts[:, i].reshape(-1, length)))
            total, grads = total + loss, jax.tree.map(jnp.add, grads, new)
        grads = jax.tree.map(lambda g: g / micro, grads)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, total / micro

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


def context(topology, shape, batch, length=131072, depth=32, width=4096, heads=32, kv=8, hidden=14336, words=32000, block=2048, donate=True):
    """Llama 3 8B of a long context: the sequence is divided over an axis, keys and values are gathered, blocks of queries see blocks of keys; every layer is recomputed."""
    devices = mesh(topology, shape, ("data", "ctx"))
    every, size, group = ("data", "ctx"), width // heads, heads // kv
    where = NamedSharding(devices, P("data", "ctx"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    layers = {"wq": F(depth, width, width), "wk": F(depth, width, kv * size), "wv": F(depth, width, kv * size), "wo": F(depth, width, width), "w1": F(depth, width, hidden), "w3": F(depth, width, hidden), "w2": F(depth, hidden, width), "norm1": F(depth, width), "norm2": F(depth, width)}
    spread = lambda path, a: NamedSharding(devices, P(*[every if i == len(a.shape) - 2 else None for i in range(len(a.shape))]) if len(a.shape) > 1 and "norm" not in path else P())
    params = placed({"embed": F(words, width), "head": F(width, words), "norm": F(width), "layers": layers}, spread)
    transform = optax.adamw(2e-5, b2=0.95)
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    keep = lambda a: jax.lax.with_sharding_constraint(a, where)

    def attend(q, k, v):  # of a device: [1, own, heads, size], [1, own, kv, size]
        own, start = q.shape[1], jax.lax.axis_index("ctx") * q.shape[1]
        k, v = (jax.lax.all_gather(a, "ctx", axis=1, tiled=True) for a in (k, v))
        parts = lambda a: a.reshape(a.shape[0], -1, block, *a.shape[2:]).swapaxes(0, 1)
        keys, values = parts(k), parts(v)

        @jax.checkpoint
        def rows(args):
            i, q = args
            q = q.reshape(*q.shape[:2], kv, group, size)

            @jax.checkpoint
            def column(carry, xs):
                best, total, out = carry
                j, k, v = xs
                s = jnp.einsum("bqhgd,bkhd->bhgqk", q, k).astype(jnp.float32) * size**-0.5
                seen = (start + i * block + jnp.arange(block))[:, None] >= j * block + jnp.arange(block)
                s = jnp.where(seen, s, -1e30)
                new = jnp.maximum(best, s.max(-1))
                p, scale = jnp.exp(s - new[..., None]), jnp.exp(best - new)
                return (new, total * scale + p.sum(-1), out * scale[..., None] + jnp.einsum("bhgqk,bkhd->bhgqd", p.astype(HALF), v).astype(jnp.float32)), None

            shape = (q.shape[0], kv, group, block)
            first = (jnp.full(shape, -1e30), jnp.zeros(shape), jnp.zeros((*shape, size)))
            (_, total, out), _ = jax.lax.scan(column, first, (jnp.arange(keys.shape[0]), keys, values))
            return (out / total[..., None]).astype(HALF).transpose(0, 3, 1, 2, 4)

        out = jax.lax.map(rows, (jnp.arange(own // block), parts(q)))
        return out.swapaxes(0, 1).reshape(q.shape)

    spec = P("data", "ctx")
    attention = jax.shard_map(attend, mesh=devices, in_specs=(spec, spec, spec), out_specs=spec, check_vma=False)

    def layer(x, w):
        h = rms(x, w["norm1"])
        q, k, v = ((h @ w[n].astype(HALF)).reshape(*h.shape[:2], -1, size) for n in ("wq", "wk", "wv"))
        x = keep(x + attention(q, k, v).reshape(x.shape) @ w["wo"].astype(HALF))
        h = rms(x, w["norm2"])
        return keep(x + (jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF))) @ w["w2"].astype(HALF)), None

    def train_step(params, opt_state, tokens):
        def loss_fn(params):
            x, _ = jax.lax.scan(jax.checkpoint(layer, prevent_cse=False), keep(params["embed"].astype(HALF)[tokens]), params["layers"])
            return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), 1)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=where)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
