"""JAX alone: a server whose keys lie transposed and whose values lie by head, before the slots; a Llama with FSDP, saved names and micro-batches in a fori_loop."""

import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def server(topology, chips, slots, context=8192, depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336, words=128256, kept="bfloat16", donate=True):
    """Keys [depth, kv, size, slots, context], values [kv, depth, context, slots, size]; heads divided over the chips."""
    devices = mesh(topology, (chips,), ("model",))
    A = lambda d, s, *spec: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*spec)))
    W = lambda s, *spec: A("bfloat16", s, *spec)
    layers = {"wq": W((depth, width, heads, size), None, None, "model"), "wk": W((depth, width, kv, size), None, None, "model"), "wv": W((depth, width, kv, size), None, None, "model"), "wo": W((depth, heads, size, width), None, "model"),
              "gate": W((depth, width, hidden), None, None, "model"), "up": W((depth, width, hidden), None, None, "model"), "down": W((depth, hidden, width), None, "model"), "norm1": W((depth, width)), "norm2": W((depth, width))}
    params = {"embed": W((words, width), "model"), "head": W((width, words), None, "model"), "norm": W((width,)), "layers": layers}
    cache = {"keys": A(kept, (depth, kv, size, slots, context), None, "model"), "values": A(kept, (kv, depth, context, slots, size), "model")}
    group, every = heads // kv, jnp.arange(slots)

    def decode(params, cache, tokens, positions):
        def layer(carry, xs):
            x, keys, values = carry
            i, w = xs
            h = rms(x, w["norm1"])
            q = jnp.einsum("sd,dhk->shk", h, w["wq"]).reshape(slots, kv, group, size)
            k, v = jnp.einsum("sd,dhk->hks", h, w["wk"]), jnp.einsum("sd,dhk->hsk", h, w["wv"])
            keys = keys.at[i, :, :, every, positions].set(k.transpose(2, 0, 1).astype(kept))
            values = values.at[:, i, positions, every].set(v.astype(kept))
            s = jnp.einsum("shgk,hkst->shgt", q, keys[i].astype(HALF)).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(context) <= positions[:, None, None, None], s, -1e30)
            o = jnp.einsum("shgt,htsk->shgk", jax.nn.softmax(s).astype(HALF), values[:, i].astype(HALF))
            x = x + jnp.einsum("shk,hkd->sd", o.reshape(slots, heads, size), w["wo"])
            h = rms(x, w["norm2"])
            return (x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], keys, values), None

        (x, keys, values), _ = jax.lax.scan(layer, (params["embed"][tokens], cache["keys"], cache["values"]), (jnp.arange(depth), params["layers"]))
        return jnp.argmax(rms(x, params["norm"]) @ params["head"], -1).astype(jnp.int32), {"keys": keys, "values": values}

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode, (params, cache, A("int32", (slots,)), A("int32", (slots,))), classify, (1,) if donate else (), (None, shardings(cache)))


def llama(topology, chips, batch, micro=2, length=2048, depth=22, width=2048, heads=32, kv=4, hidden=5632, words=32000, saved=("query", "key", "value", "context", "gate", "up"), chunks=1, donate=True):
    """TinyLlama's size. `saved` are the names that the checkpoint keeps; none: all is recomputed."""
    devices = mesh(topology, (chips,), ("fsdp",))
    split, size = NamedSharding(devices, P("fsdp")), width // heads
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    layers = {"wq": F(depth, width, width), "wk": F(depth, width, kv * size), "wv": F(depth, width, kv * size), "wo": F(depth, width, width), "w1": F(depth, width, hidden), "w3": F(depth, width, hidden), "w2": F(depth, hidden, width), "norm1": F(depth, width), "norm2": F(depth, width)}
    params = placed({"embed": F(words, width), "head": F(width, words), "norm": F(width), "layers": layers}, largest_dimension(devices, "fsdp", 1 << 17))
    transform = optax.adamw(4e-4, b2=0.95)
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    keep = lambda a: jax.lax.with_sharding_constraint(a, split)

    def layer(x, w):
        h = rms(x, w["norm1"])
        lin = lambda n, name: checkpoint_name(h @ w[n].astype(HALF), name).reshape(*h.shape[:2], -1, size)
        q, k, v = lin("wq", "query"), lin("wk", "key"), lin("wv", "value")
        a = causal(q, jnp.repeat(k, heads // kv, 2), jnp.repeat(v, heads // kv, 2)).reshape(x.shape)
        x = x + checkpoint_name(a, "context") @ w["wo"].astype(HALF)
        h = rms(x, w["norm2"])
        gate, up = checkpoint_name(h @ w["w1"].astype(HALF), "gate"), checkpoint_name(h @ w["w3"].astype(HALF), "up")
        return keep(x + (jax.nn.silu(gate) * up) @ w["w2"].astype(HALF)), None

    policy = jax.checkpoint_policies.save_only_these_names(*saved) if saved else None
    body = jax.checkpoint(layer, policy=policy, prevent_cse=False)

    def loss_fn(params, tokens):
        x, _ = jax.lax.scan(body, keep(params["embed"].astype(HALF)[tokens]), params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        parts = tokens.reshape(chips, micro, -1, length)  # of each device's sequences

        def one(i, carry):
            part = keep(jax.lax.dynamic_index_in_dim(parts, i, 1, False).reshape(-1, length))
            return jax.tree.map(jnp.add, carry, jax.value_and_grad(loss_fn)(params, part))

        loss, grads = jax.lax.fori_loop(0, micro, one, (jnp.float32(0), jax.tree.map(jnp.zeros_like, params)))
        grads = jax.tree.map(lambda g: g / micro, grads)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss / micro

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
