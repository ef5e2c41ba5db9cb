"""JAX and Optax: a GPT by optax.MultiSteps; a Gemma-like server whose local layers keep a ring; a Llama by tensor and sequence parallelism, gradients summed by a scan over microbatches."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed

keep = jax.lax.with_sharding_constraint


def multisteps(topology, chips, batch, length=1024, depth=24, width=1024, heads=16, words=50304, every=8, remat=False, chunks=1, zero=False, donate=True):
    """GPT-2 medium, whole on every device; optax.MultiSteps keeps the gradients' mean in its state."""
    devices = mesh(topology, (chips,), ("data",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=on())
    blocks = {"attn_qkv": F(depth, width, 3 * width), "attn_out": F(depth, width, width), "mlp_in": F(depth, width, 4 * width), "mlp_out": F(depth, 4 * width, width),
              "bias_in": F(depth, 4 * width), "bias_out": F(depth, width), "ln1": F(depth, width), "ln2": F(depth, width)}
    params = {"wte": F(words, width), "wpe": F(length, width), "ln_f": F(width), "blocks": blocks}
    transform = optax.MultiSteps(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(6e-4, weight_decay=0.1)), every_k_schedule=every)
    shapes = jax.eval_shape(transform.init, params)
    state = placed(shapes, largest_dimension(devices, "data") if zero else on())

    def block(x, w):
        h = rms(x, w["ln1"])
        q, k, v = (a.reshape(*h.shape[:2], heads, -1) for a in jnp.split(h @ w["attn_qkv"].astype(HALF), 3, -1))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ w["attn_out"].astype(HALF)
        h = jax.nn.gelu(rms(x, w["ln2"]) @ w["mlp_in"].astype(HALF) + w["bias_in"].astype(HALF))
        return x + h @ w["mlp_out"].astype(HALF) + w["bias_out"].astype(HALF), None

    body = jax.checkpoint(block) if remat else block

    def loss_fn(params, tokens):
        x = params["wte"].astype(HALF)[tokens] + params["wpe"].astype(HALF)
        x, _ = jax.lax.scan(body, x, params["blocks"])
        return entropy(rms(x, params["ln_f"]), params["wte"].T, jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def ring(topology, chips, slots, context=16384, window=1024, groups=8, locals_=5, width=3840, heads=16, kv=8, size=256, hidden=15360, words=262144, kept="bfloat16", donate=True):
    """Gemma 3 12B, bfloat16, by tensor parallelism: of six layers five keep the last `window` keys and values in a ring, one keeps all."""
    devices = mesh(topology, (chips,), ("model",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    S = lambda s, d, *p: jax.ShapeDtypeStruct(s, d, sharding=on(*p))
    H = "bfloat16"
    per = locals_ + 1
    layers = dict(
        wq=S((groups, per, width, heads, size), H, None, None, None, "model"), wk=S((groups, per, width, kv, size), H, None, None, None, "model"), wv=S((groups, per, width, kv, size), H, None, None, None, "model"),
        wo=S((groups, per, heads, size, width), H, None, None, "model"), gate=S((groups, per, width, hidden), H, None, None, None, "model"), up=S((groups, per, width, hidden), H, None, None, None, "model"),
        down=S((groups, per, hidden, width), H, None, None, "model"), norm1=S((groups, per, width), H), norm2=S((groups, per, width), H))
    params = dict(embed=S((words, width), H, "model"), norm=S((width,), H), layers=layers)
    both = lambda *s: {n: S(s, kept, None, None, None, None, "model") for n in ("k", "v")}
    cache = {"local": both(groups, locals_, slots, window, kv, size), "full": {n: S((groups, slots, context, kv, size), kept, None, None, None, "model") for n in ("k", "v")}}

    def serve_step(params, cache, tokens, positions):
        rows = jnp.arange(slots)

        def attend(x, w, k, v, at, seen):
            h = rms(x, w["norm1"])
            q = jnp.einsum("sd,dhk->shk", h, w["wq"]).reshape(slots, kv, heads // kv, size)
            k = k.at[rows, at].set(jnp.einsum("sd,dhk->shk", h, w["wk"]).astype(k.dtype))
            v = v.at[rows, at].set(jnp.einsum("sd,dhk->shk", h, w["wv"]).astype(v.dtype))
            s = jnp.einsum("sgqd,stgd->sgqt", q, k.astype(HALF)).astype(jnp.float32) * size**-0.5
            o = jnp.einsum("sgqt,stgd->sgqd", jax.nn.softmax(jnp.where(seen[:, None, None], s, -1e30)).astype(HALF), v.astype(HALF))
            x = x + jnp.einsum("shk,hkd->sd", o.reshape(slots, heads, size), w["wo"])
            h = rms(x, w["norm2"])
            return x + (jax.nn.gelu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], k, v

        def group(carry, xs):
            x, cache = carry
            i, w = xs
            new = {"k": [], "v": []}
            for j in range(per):
                one = {n: a[j] for n, a in w.items()}
                if j < locals_:
                    k, v = (cache["local"][n][i, j] for n in ("k", "v"))
                    x, k, v = attend(x, one, k, v, positions % window, jnp.arange(window) <= positions[:, None])
                    cache["local"] = {n: cache["local"][n].at[i, j].set(a) for n, a in (("k", k), ("v", v))}
                else:
                    k, v = (cache["full"][n][i] for n in ("k", "v"))
                    x, k, v = attend(x, one, k, v, positions, jnp.arange(context) <= positions[:, None])
                    cache["full"] = {n: cache["full"][n].at[i].set(a) for n, a in (("k", k), ("v", v))}
            return (x, cache), None

        cache = {n: dict(c) for n, c in cache.items()}
        (x, cache), _ = jax.lax.scan(group, (params["embed"][tokens], cache), (jnp.arange(groups), params["layers"]))
        return jnp.argmax(rms(x, params["norm"]) @ params["embed"].T, -1).astype(jnp.int32), cache

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(serve_step, (params, cache, S((slots,), "int32"), S((slots,), "int32")), classify, (1,) if donate else (), (None, shardings(cache)))


def megatron(topology, shape, batch, parts=4, length=4096, depth=48, width=8192, heads=64, kv=8, size=128, hidden=22016, words=32768, remat="dots_with_no_batch_dims_saveable", chunks=1, donate=True):
    """A code Llama 34B: heads and hidden units divided over `model`, the sequence between (Megatron); the optimizer's state over `data` too; `parts` microbatches."""
    devices = mesh(topology, shape, ("data", "model"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda s, *spec: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    layers = {"wq": F((depth, width, heads * size), None, "data", "model"), "wk": F((depth, width, kv * size), None, "data", "model"), "wv": F((depth, width, kv * size), None, "data", "model"), "wo": F((depth, heads * size, width), None, "model", "data"),
              "w1": F((depth, width, hidden), None, "data", "model"), "w3": F((depth, width, hidden), None, "data", "model"), "w2": F((depth, hidden, width), None, "model", "data"), "norm1": F((depth, width)), "norm2": F((depth, width))}
    params = {"embed": F((words, width), "model", "data"), "head": F((width, words), "data", "model"), "norm": F((width,)), "layers": layers}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    state = following(jax.eval_shape(transform.init, params), params, on())
    between, inside = on("data", "model"), on("data", None, "model")

    def layer(x, w):
        h = keep(rms(x, w["norm1"]), on("data"))
        lin = lambda n: keep((h @ w[n].astype(HALF)).reshape(*h.shape[:2], -1, size), inside)
        a = jax.nn.dot_product_attention(lin("wq"), lin("wk"), lin("wv"), is_causal=True)
        x = x + keep(keep(a, inside).reshape(*h.shape[:2], -1) @ w["wo"].astype(HALF), between)
        h = keep(rms(x, w["norm2"]), on("data"))
        return x + keep(keep(jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF)), inside) @ w["w2"].astype(HALF), between), None

    body = jax.checkpoint(layer, policy=getattr(jax.checkpoint_policies, remat)) if remat else layer

    def loss_fn(params, tokens):
        x = keep(params["embed"].astype(HALF)[tokens], between)
        x, _ = jax.lax.scan(body, x, params["layers"])
        return entropy(keep(rms(x, params["norm"]), on("data")), params["head"], jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        def micro(carry, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, carry, (loss, grads)), None

        cut = keep(tokens.reshape(parts, -1, length), on(None, "data"))
        (loss, grads), _ = jax.lax.scan(micro, (0.0, jax.tree.map(jnp.zeros_like, params)), cut)
        grads = jax.tree.map(lambda g: g / parts, grads)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss / parts

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
