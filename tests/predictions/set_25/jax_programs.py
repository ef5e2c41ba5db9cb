"""JAX alone: a Llama 3 8B by FSDP and tensor parallelism, scanned; LoRA of a Llama 3 8B, its frozen weights divided; a server of Mistral Nemo 12B with a cache of fixed slots."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, rms, shardings
from recipe import Program, mesh, placed
from scanned_decoder import splash


def attend_with(kernel, devices, heads, kv, size, length, spec, parts=1):
    if kernel:
        made = splash(length, heads // parts, kv // parts, size)
        part = jax.shard_map(made, mesh=devices, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)
        return lambda q, k, v: part(*[a.swapaxes(1, 2) for a in (q, k, v)]).swapaxes(1, 2)
    return functools.partial(jax.nn.dot_product_attention, is_causal=True)


def two_axes(topology, shape, batch, length=4096, depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336, words=128256, policy="dots_with_no_batch_dims_saveable", chunks=1, micro=1, donate=True):
    devices = mesh(topology, shape, ("fsdp", "tensor"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda s, *spec: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    layers = {
        "attention_norm": F((depth, width)), "ffn_norm": F((depth, width)),
        "wq": F((depth, width, heads, size), None, "fsdp", "tensor"), "wk": F((depth, width, kv, size), None, "fsdp", "tensor"), "wv": F((depth, width, kv, size), None, "fsdp", "tensor"),
        "wo": F((depth, heads, size, width), None, "tensor", None, "fsdp"),
        "w1": F((depth, width, hidden), None, "fsdp", "tensor"), "w3": F((depth, width, hidden), None, "fsdp", "tensor"), "w2": F((depth, hidden, width), None, "tensor", "fsdp")}
    params = {"tok_embeddings": F((words, width), "tensor", "fsdp"), "output": F((width, words), "fsdp", "tensor"), "norm": F((width,)), "layers": layers}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    state = following(jax.eval_shape(transform.init, params), params, on())
    attend = attend_with(True, devices, heads, kv, size, length, P("fsdp", "tensor"), shape[1])
    keep = jax.lax.with_sharding_constraint

    def layer(x, w):
        with jax.named_scope("attention"):
            h = rms(x, w["attention_norm"])
            q, k, v = (jnp.einsum("btd,dhk->bthk", h, w[n].astype(HALF)) for n in ("wq", "wk", "wv"))
            x = x + keep(jnp.einsum("bthk,hkd->btd", attend(q, k, v), w["wo"].astype(HALF)), on("fsdp"))
        with jax.named_scope("feed_forward"):
            h = rms(x, w["ffn_norm"])
            h = jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF))
            return x + keep(h @ w["w2"].astype(HALF), on("fsdp")), None

    body = jax.checkpoint(layer, policy=getattr(jax.checkpoint_policies, policy))

    def loss_fn(params, tokens):
        x = keep(params["tok_embeddings"].astype(HALF)[tokens], on("fsdp"))
        x, _ = jax.lax.scan(body, x, params["layers"])
        return entropy(rms(x, params["norm"]), params["output"], jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        if micro == 1:
            loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        else:
            parts = keep(tokens.reshape(-1, micro, length).swapaxes(0, 1), on(None, "fsdp"))
            one = lambda total, part: (jax.tree.map(jnp.add, total, jax.grad(loss_fn)(params, part)), None)
            grads, loss = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("fsdp"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def lora(topology, chips, batch, length=2048, rank=16, depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336, words=128256, kernel=False, remat=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    H = lambda s, *spec: jax.ShapeDtypeStruct(s, "bfloat16", sharding=on(*spec))
    sizes = {"q_proj": (width, heads * size), "k_proj": (width, kv * size), "v_proj": (width, kv * size), "o_proj": (heads * size, width), "gate_proj": (width, hidden), "up_proj": (width, hidden), "down_proj": (hidden, width)}
    base = {"embed_tokens": H((words, width), "fsdp"), "lm_head": H((width, words), "fsdp"), "norm": H((width,)),
            "layers": {n: H((depth, *s), None, "fsdp") for n, s in sizes.items()} | {"input_norm": H((depth, width)), "post_norm": H((depth, width))}}
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=on())
    adapters = {n: {"a": F(depth, s[0], rank), "b": F(depth, rank, s[1])} for n, s in sizes.items()}
    transform = optax.adamw(2e-4)
    state = placed(jax.eval_shape(transform.init, adapters), on())
    attend = attend_with(kernel, devices, heads, kv, size, length, P("fsdp"))

    def layer(x, ws):
        w, low = ws
        lin = lambda h, n: h @ w[n] + 2.0 * (h @ low[n]["a"].astype(HALF)) @ low[n]["b"].astype(HALF)
        h = rms(x, w["input_norm"])
        q, k, v = (lin(h, n).reshape(*h.shape[:2], -1, size) for n in ("q_proj", "k_proj", "v_proj"))
        x = x + lin(attend(q, k, v).reshape(*h.shape[:2], -1), "o_proj")
        h = rms(x, w["post_norm"])
        return x + lin(jax.nn.silu(lin(h, "gate_proj")) * lin(h, "up_proj"), "down_proj"), None

    body = jax.checkpoint(layer) if remat else layer

    def loss_fn(adapters, base, tokens):
        x = jax.lax.with_sharding_constraint(base["embed_tokens"][tokens], on("fsdp"))
        x, _ = jax.lax.scan(body, x, (base["layers"], adapters))
        return entropy(rms(x, base["norm"]), base["lm_head"], jnp.roll(tokens, -1, 1), chunks)

    def finetune_step(adapters, base, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(adapters, base, tokens)
        updates, opt_state = transform.update(grads, opt_state, adapters)
        return optax.apply_updates(adapters, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("fsdp"))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(finetune_step, (adapters, base, state, tokens), classify, (0, 2) if donate else (), (shardings(adapters), shardings(state), None))


def serve(topology, chips, slots, length, depth=40, width=5120, heads=32, kv=8, size=128, hidden=14336, words=131072, kept="bfloat16", donate=True):
    """One word of every slot; the cache of all layers is carried by the scan over them."""
    devices = mesh(topology, (chips,), ("model",))
    sd = lambda s, d, *p: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*p)))
    H = "bfloat16"
    layers = dict(
        wq=sd((depth, width, heads, size), H, None, None, "model"), wk=sd((depth, width, kv, size), H, None, None, "model"), wv=sd((depth, width, kv, size), H, None, None, "model"),
        wo=sd((depth, heads, size, width), H, None, "model"), w1=sd((depth, width, hidden), H, None, None, "model"), w3=sd((depth, width, hidden), H, None, None, "model"),
        w2=sd((depth, hidden, width), H, None, "model"), attn_norm=sd((depth, width), H), mlp_norm=sd((depth, width), H))
    params = dict(embed=sd((words, width), H, "model"), head=sd((width, words), H, None, "model"), norm=sd((width,), H), layers=layers)
    cache = {n: sd((depth, slots, kv, length, size), kept, None, None, "model") for n in ("k", "v")}

    def decode_step(params, cache, tokens, positions):
        def layer(carry, w):
            x, kept_k, kept_v, i = carry
            h = rms(x, w["attn_norm"])
            q = jnp.einsum("sd,dhk->shk", h, w["wq"]).reshape(slots, kv, heads // kv, size)
            rows = jnp.arange(slots)
            kept_k = kept_k.at[i, rows, :, positions].set(jnp.einsum("sd,dhk->shk", h, w["wk"]).astype(kept_k.dtype))
            kept_v = kept_v.at[i, rows, :, positions].set(jnp.einsum("sd,dhk->shk", h, w["wv"]).astype(kept_v.dtype))
            k, v = kept_k[i].astype(HALF), kept_v[i].astype(HALF)
            s = jnp.einsum("sgqd,sgtd->sgqt", q, k).astype(jnp.float32) * size**-0.5
            s = jnp.where(jnp.arange(length) <= positions[:, None, None, None], s, -1e30)
            o = jnp.einsum("sgqt,sgtd->sgqd", jax.nn.softmax(s).astype(HALF), v).reshape(slots, heads, size)
            x = x + jnp.einsum("shk,hkd->sd", o, w["wo"])
            h = rms(x, w["mlp_norm"])
            return (x + (jax.nn.silu(h @ w["w1"]) * (h @ w["w3"])) @ w["w2"], kept_k, kept_v, i + 1), None

        (x, k, v, _), _ = jax.lax.scan(layer, (params["embed"][tokens], cache["k"], cache["v"], 0), params["layers"])
        return jnp.argmax(rms(x, params["norm"]) @ params["head"], -1).astype(jnp.int32), {"k": k, "v": v}

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = (None, {n: c.sharding for n, c in cache.items()})
    return Program(decode_step, (params, cache, sd((slots,), "int32"), sd((slots,), "int32")), classify, (1,) if donate else (), outs)
