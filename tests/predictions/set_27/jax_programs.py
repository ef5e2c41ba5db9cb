"""JAX alone: RetNet by chunks, its gradients accumulated over micro-batches; a server of several steps whose cache is scanned over with the layers; a decoder of 64K words with splash attention and names that its policy saves."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, rms, shardings
from recipe import Program, mesh, placed
from scanned_decoder import splash


def retnet(topology, chips, batch, length=4096, chunk=256, depth=24, width=2048, heads=8, hidden=4096, words=50304, micro=4, remat=False, chunks=1, policy=None, donate=True):
    """RetNet 1.3B: retention by chunks, a scan over them in each layer; layers scanned; `micro` batches one after another."""
    devices = mesh(topology, (chips,), ("fsdp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda s, *spec: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    size, wide = width // heads, 2 * width // heads
    layers = {
        "q_proj": F((depth, width, width), None, "fsdp"), "k_proj": F((depth, width, width), None, "fsdp"), "v_proj": F((depth, width, 2 * width), None, "fsdp"),
        "g_proj": F((depth, width, 2 * width), None, "fsdp"), "out_proj": F((depth, 2 * width, width), None, "fsdp"),
        "fc1": F((depth, width, hidden), None, "fsdp"), "fc2": F((depth, hidden, width), None, "fsdp"), "norm1": F((depth, width)), "norm2": F((depth, width))}
    params = {"embed": F((words, width), "fsdp"), "head": F((width, words), "fsdp"), "norm": F((width,)), "layers": layers}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.05))
    state = following(jax.eval_shape(transform.init, params), params, on())

    def retention(q, k, v):  # [batch, time, heads, size]
        decay = jnp.log(1 - 2.0 ** (-5 - jnp.arange(heads)))
        at = jnp.arange(chunk)
        inner = jnp.where(at[:, None] >= at, jnp.exp((at[:, None] - at) * decay[:, None, None]), 0.0)  # heads, chunk, chunk
        carry_in = jnp.exp((at + 1) * decay[:, None])
        carry_out = jnp.exp((chunk - 1 - at) * decay[:, None])
        cut = lambda a: a.reshape(a.shape[0], -1, chunk, *a.shape[2:]).swapaxes(0, 1)

        def one(kept, qkv):
            q, k, v = qkv
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * inner
            o = jnp.einsum("bhqk,bkhe->bqhe", scores.astype(HALF), v).astype(jnp.float32)
            o = o + jnp.einsum("bqhd,bhde,hq->bqhe", q.astype(jnp.float32), kept, carry_in)
            kept = kept * jnp.exp(chunk * decay)[:, None, None] + jnp.einsum("bkhd,bkhe,hk->bhde", k.astype(jnp.float32), v.astype(jnp.float32), carry_out)
            return kept, o.astype(HALF)

        _, o = jax.lax.scan(one, jnp.zeros((q.shape[0], heads, size, wide)), tuple(map(cut, (q, k, v))))
        return o.swapaxes(0, 1).reshape(q.shape[0], -1, heads, wide)

    def layer(x, w):
        h = rms(x, w["norm1"])
        heads_of = lambda n: (h @ w[n].astype(HALF)).reshape(*h.shape[:2], heads, -1)
        o = retention(heads_of("q_proj") * size**-0.5, heads_of("k_proj"), heads_of("v_proj"))
        o = o.astype(jnp.float32)
        o = (o * jax.lax.rsqrt(jnp.mean(o * o, -1, keepdims=True) + 1e-5)).astype(HALF).reshape(*h.shape[:2], -1)
        x = x + (o * jax.nn.silu(h @ w["g_proj"].astype(HALF))) @ w["out_proj"].astype(HALF)
        h = rms(x, w["norm2"])
        return x + jax.nn.gelu(h @ w["fc1"].astype(HALF)) @ w["fc2"].astype(HALF), None

    body = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(HALF)[tokens], on("fsdp"))
        x, _ = jax.lax.scan(body, x, params["layers"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        parts = jax.lax.with_sharding_constraint(tokens.reshape(-1, micro, length).swapaxes(0, 1), on(None, "fsdp"))

        def one(total, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, total, grads), loss

        grads, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
        updates, opt_state = transform.update(jax.tree.map(lambda g: g / micro, grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, losses.mean()

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("fsdp"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def serve_steps(topology, chips, slots, length, steps=16, depth=48, width=5120, heads=40, kv=8, size=128, hidden=13824, words=152064, kept="bfloat16", donate=True):
    """Qwen 2.5 14B: several words of every slot; each step scans over the layers and their cache together; heads and cache divided over the chips."""
    devices = mesh(topology, (chips,), ("tensor",))
    sd = lambda s, d, *p: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*p)))
    H = "bfloat16"
    layers = dict(
        q=sd((depth, width, heads, size), H, None, None, "tensor"), k=sd((depth, width, kv, size), H, None, None, "tensor"), v=sd((depth, width, kv, size), H, None, None, "tensor"),
        q_bias=sd((depth, heads, size), H, None, "tensor"), k_bias=sd((depth, kv, size), H, None, "tensor"), v_bias=sd((depth, kv, size), H, None, "tensor"),
        o=sd((depth, heads, size, width), H, None, "tensor"), gate=sd((depth, width, hidden), H, None, None, "tensor"), up=sd((depth, width, hidden), H, None, None, "tensor"),
        down=sd((depth, hidden, width), H, None, "tensor"), input_norm=sd((depth, width), H), post_norm=sd((depth, width), H))
    weights = dict(embed=sd((words, width), H, "tensor"), lm_head=sd((width, words), H, None, "tensor"), norm=sd((width,), H), layers=layers)
    kv_cache = {n: sd((depth, slots, length, kv, size), kept, None, None, None, "tensor") for n in ("key", "value")}

    def generate(weights, kv_cache, last, lengths):
        def layer(carry, ws):
            x, at = carry
            w, key, value = ws
            h = rms(x, w["input_norm"])
            q = (jnp.einsum("sd,dhk->shk", h, w["q"]) + w["q_bias"]).reshape(slots, kv, heads // kv, size)
            rows = jnp.arange(slots)
            key = key.at[rows, at].set((jnp.einsum("sd,dhk->shk", h, w["k"]) + w["k_bias"]).astype(key.dtype))
            value = value.at[rows, at].set((jnp.einsum("sd,dhk->shk", h, w["v"]) + w["v_bias"]).astype(value.dtype))
            s = jnp.einsum("sgqd,stgd->sgqt", q, key.astype(HALF)).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(length) <= at[:, None, None, None], s, -1e30)
            o = jnp.einsum("sgqt,stgd->sgqd", jax.nn.softmax(s).astype(HALF), value.astype(HALF)).reshape(slots, heads, size)
            x = x + jnp.einsum("shk,hkd->sd", o, w["o"])
            h = rms(x, w["post_norm"])
            return (x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], at), (key, value)

        def step(carry, _):
            cache, words, at = carry
            (x, _), (key, value) = jax.lax.scan(layer, (weights["embed"][words], at), (weights["layers"], cache["key"], cache["value"]))
            words = jnp.argmax(rms(x, weights["norm"]) @ weights["lm_head"], -1).astype(jnp.int32)
            return ({"key": key, "value": value}, words, at + 1), words

        (cache, _, at), words = jax.lax.scan(step, (kv_cache, last, lengths), None, length=steps)
        return cache, words, at

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = ({n: c.sharding for n, c in kv_cache.items()}, None, None)
    return Program(generate, (weights, kv_cache, sd((slots,), "int32"), sd((slots,), "int32")), classify, (1,) if donate else (), outs)


def long64(topology, chips, batch, length=65536, depth=28, width=2048, heads=16, kv=4, size=128, hidden=8192, words=32768, saved=("attended", "query", "key", "value", "gate", "up"), chunks=16, donate=True, bits="float32"):
    """Splash attention on whole sequences; a checkpointed layer keeps what is named in `saved`."""
    devices = mesh(topology, (chips,), ("data",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda s, *spec: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    layers = {"wq": F((depth, width, heads * size), None, None, "data"), "wk": F((depth, width, kv * size), None, None, "data"), "wv": F((depth, width, kv * size), None, None, "data"),
              "wo": F((depth, heads * size, width), None, None, "data"), "wg": F((depth, width, hidden), None, None, "data"), "wu": F((depth, width, hidden), None, None, "data"),
              "wd": F((depth, hidden, width), None, None, "data"), "n1": F((depth, width)), "n2": F((depth, width))}
    params = {"embedding": F((words, width), None, "data"), "unembed": F((width, words), "data"), "norm": F((width,)), "decoder": layers}
    transform = optax.adamw(3e-4, b2=0.95, weight_decay=0.1, mu_dtype=bits)
    state = following(jax.eval_shape(transform.init, params), params, on())
    made = jax.shard_map(splash(length, heads, kv, size), mesh=devices, in_specs=(P("data"),) * 3, out_specs=P("data"), check_vma=False)

    def layer(x, w):
        h = rms(x, w["n1"])
        put = lambda n, name: checkpoint_name((h @ w[n].astype(HALF)).reshape(*h.shape[:2], -1, size), name)
        q, k, v = put("wq", "query"), put("wk", "key"), put("wv", "value")
        o = checkpoint_name(made(*[a.swapaxes(1, 2) for a in (q, k, v)]).swapaxes(1, 2), "attended")
        x = x + o.reshape(*h.shape[:2], -1) @ w["wo"].astype(HALF)
        h = rms(x, w["n2"])
        g, u = checkpoint_name(h @ w["wg"].astype(HALF), "gate"), checkpoint_name(h @ w["wu"].astype(HALF), "up")
        return x + (jax.nn.silu(g) * u) @ w["wd"].astype(HALF), None

    body = jax.checkpoint(layer, policy=jax.checkpoint_policies.save_only_these_names(*saved))

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embedding"].astype(HALF)[tokens], on("data"))
        x, _ = jax.lax.scan(body, x, params["decoder"])
        return entropy(rms(x, params["norm"]), params["unembed"], jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
