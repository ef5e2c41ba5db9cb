"""JAX alone: gated linear attention in chunks over long texts; a GPT whose gradients are summed over parts; Shampoo's Kronecker factors; a long-context Llama by Ulysses and Muon on 64 chips."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def gla(topology, chips, batch, length=16384, depth=12, width=1024, heads=8, size=64, hidden=2816, words=32000, block=256, remat=False, chunks=1, donate=True):
    """Gated linear attention: a state of `size` by `width/heads` of each head, carried from block to block."""
    devices = mesh(topology, (chips,), ("data",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=on())
    value = width // heads
    blocks = {"q": F(depth, width, heads, size), "k": F(depth, width, heads, size), "v": F(depth, width, heads, value), "decay": F(depth, width, heads), "gate": F(depth, width, width),
              "o": F(depth, width, width), "norm1": F(depth, width), "norm2": F(depth, width), "w1": F(depth, width, hidden), "w3": F(depth, width, hidden), "w2": F(depth, hidden, width)}
    params = {"embed": F(words, width), "norm": F(width), "blocks": blocks}
    transform = optax.adamw(3e-4)
    state = placed(jax.eval_shape(transform.init, params), on())

    def mix(q, k, v, decay):  # [batch, time, heads, …]; the decay's logarithm [batch, time, heads]
        cut = lambda a: a.reshape(a.shape[0], -1, block, *a.shape[2:]).swapaxes(0, 1)

        def step(kept, part):
            q, k, v, g = part
            total = jnp.cumsum(g, 1)
            inside = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32)
            fall = total.swapaxes(1, 2)[..., :, None] - total.swapaxes(1, 2)[..., None, :]
            inside = jnp.where(jnp.tril(jnp.ones((block, block), bool)), inside * jnp.exp(jnp.minimum(fall, 0.0)), 0.0)
            y = jnp.einsum("bhqk,bkhv->bqhv", inside.astype(HALF), v)
            y += jnp.einsum("bqhd,bhdv->bqhv", q * jnp.exp(total)[..., None].astype(HALF), kept.astype(HALF))
            rest = jnp.exp(total[:, -1:] - total)[..., None].astype(HALF)
            kept = kept * jnp.exp(total[:, -1])[..., None, None] + jnp.einsum("bkhd,bkhv->bhdv", k * rest, v).astype(jnp.float32)
            return kept, y

        first = jnp.zeros((q.shape[0], heads, size, value), jnp.float32)
        _, y = jax.lax.scan(step, first, (cut(q), cut(k), cut(v), cut(decay)))
        return y.swapaxes(0, 1).reshape(v.shape)

    def layer(x, w):
        h = rms(x, w["norm1"])
        lin = lambda n: jnp.einsum("btd,dhk->bthk", h, w[n].astype(HALF))
        decay = jax.nn.log_sigmoid((h @ w["decay"].astype(HALF)).astype(jnp.float32)) / 16
        y = mix(lin("q") * size**-0.5, lin("k"), lin("v"), decay).reshape(x.shape)
        x = x + (y * jax.nn.silu(h @ w["gate"].astype(HALF))) @ w["o"].astype(HALF)
        h = rms(x, w["norm2"])
        return x + (jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF))) @ w["w2"].astype(HALF), None

    body = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, tokens):
        x = params["embed"].astype(HALF)[tokens]
        x, _ = jax.lax.scan(body, x, params["blocks"])
        return entropy(rms(x, params["norm"]), params["embed"].T, jnp.roll(tokens, -1, 1), chunks)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def accum(topology, chips, batch, parts=8, length=2048, depth=32, width=2560, heads=20, words=50304, policy="dots_with_no_batch_dims_saveable", zero=False, donate=True):
    """GPT, whole on every device; each device's batch in `parts`, one after another."""
    devices = mesh(topology, (chips,), ("data",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=on())
    blocks = {"qkv": F(depth, width, 3 * width), "proj": F(depth, width, width), "fc": F(depth, width, 4 * width), "out": F(depth, 4 * width, width), "ln1": F(depth, width), "ln2": F(depth, width)}
    params = {"wte": F(words, width), "wpe": F(length, width), "ln_f": F(width), "blocks": blocks}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-4, weight_decay=0.1))
    state = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else on())

    def layer(x, w):
        h = rms(x, w["ln1"])
        q, k, v = (a.reshape(*h.shape[:2], heads, -1) for a in jnp.split(h @ w["qkv"].astype(HALF), 3, -1))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ w["proj"].astype(HALF)
        return x + jnp.square(jax.nn.relu(rms(x, w["ln2"]) @ w["fc"].astype(HALF))) @ w["out"].astype(HALF), None

    body = jax.checkpoint(layer, policy=getattr(jax.checkpoint_policies, policy))

    def loss_fn(params, tokens):
        x = params["wte"].astype(HALF)[tokens] + params["wpe"].astype(HALF)
        x, _ = jax.lax.scan(body, x, params["blocks"])
        return entropy(rms(x, params["ln_f"]), params["wte"].T, jnp.roll(tokens, -1, 1), 1)

    def train_step(params, opt_state, tokens):
        def one(carry, part):
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            return jax.tree.map(jnp.add, carry, (loss, grads)), None

        part = jax.lax.with_sharding_constraint(tokens, on(None, "data"))
        (loss, grads), _ = jax.lax.scan(one, (0.0, jax.tree.map(jnp.zeros_like, params)), part)
        grads = jax.tree.map(lambda g: g / parts, grads)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss / parts

    tokens = jax.ShapeDtypeStruct((parts, batch // parts, length), "int32", sharding=on(None, "data"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def shampoo(topology, chips, batch, length=1024, depth=12, width=1536, heads=12, words=32000, zero=False, kept="float32", donate=True):
    """The factors' roots are taken in another program; here the statistics are updated and the roots applied."""
    devices = mesh(topology, (chips,), ("data",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda *s, d="float32": jax.ShapeDtypeStruct(s, d, sharding=on())
    matrices = {"wq": (width, width), "wk": (width, width), "wv": (width, width), "wo": (width, width), "fc": (width, 4 * width), "proj": (4 * width, width)}
    params = {"layers": {n: F(depth, *s) for n, s in matrices.items()} | {"ln1": F(depth, width), "ln2": F(depth, width)}, "embed": F(words, width), "ln_f": F(width)}
    factor = lambda i: {n: F(depth, s[i], s[i], d=kept) for n, s in matrices.items()}
    like = lambda: jax.tree.map(lambda a: F(*a.shape, d=kept), params)
    state = {"stat_l": factor(0), "stat_r": factor(1), "root_l": factor(0), "root_r": factor(1), "momentum": like(), "diagonal": like()}
    if zero:
        state = placed(state, largest_dimension(devices, "data"))

    def layer(x, w):
        h = rms(x, w["ln1"])
        q, k, v = ((h @ w[n].astype(HALF)).reshape(*h.shape[:2], heads, -1) for n in ("wq", "wk", "wv"))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ w["wo"].astype(HALF)
        return x + jax.nn.gelu(rms(x, w["ln2"]) @ w["fc"].astype(HALF)) @ w["proj"].astype(HALF), None

    def loss_fn(params, tokens):
        x = params["embed"].astype(HALF)[tokens]
        x, _ = jax.lax.scan(jax.checkpoint(layer), x, params["layers"])
        return entropy(rms(x, params["ln_f"]), params["embed"].T, jnp.roll(tokens, -1, 1), 1)

    def shampoo_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        new = {k: dict(v) for k, v in opt_state.items()}
        fall = lambda old, now: (0.95 * old.astype(jnp.float32) + 0.05 * now).astype(old.dtype)
        new["diagonal"] = jax.tree.map(lambda d, g: fall(d, g * g), opt_state["diagonal"], grads)
        scaled = jax.tree.map(lambda g, d: g * jax.lax.rsqrt(d.astype(jnp.float32) + 1e-8), grads, new["diagonal"])
        for n in matrices:
            g = grads["layers"][n]
            new["stat_l"][n] = fall(opt_state["stat_l"][n], jnp.einsum("lmn,lkn->lmk", g, g))
            new["stat_r"][n] = fall(opt_state["stat_r"][n], jnp.einsum("lmn,lmk->lnk", g, g))
            p = jnp.einsum("lmk,lkn,lnj->lmj", opt_state["root_l"][n].astype(jnp.float32), g, opt_state["root_r"][n].astype(jnp.float32))
            graft = jnp.linalg.norm(scaled["layers"][n], axis=(1, 2), keepdims=True) / (jnp.linalg.norm(p, axis=(1, 2), keepdims=True) + 1e-9)
            scaled["layers"][n] = p * graft
        new["momentum"] = jax.tree.map(lambda m, u: (0.9 * m.astype(jnp.float32) + u).astype(m.dtype), opt_state["momentum"], scaled)
        return jax.tree.map(lambda p, m: p - 1e-3 * m.astype(jnp.float32), params, new["momentum"]), new, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data"))
    return Program(shampoo_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def long(topology, shape, batch, length=32768, depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336, words=128256, policy="dots_with_no_batch_dims_saveable", chunks=1, donate=True):
    """Llama 3 8B; the sequence divided, heads exchanged for it in attention (Ulysses); splash attention; Muon, layer by layer."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as K, splash_attention_mask as M

    devices = mesh(topology, shape, ("data", "seq"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    both = ("data", "seq")
    F = lambda s, *spec: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    layers = {"wq": F((depth, width, heads * size), None, both), "wk": F((depth, width, kv * size), None, both), "wv": F((depth, width, kv * size), None, both), "wo": F((depth, heads * size, width), None, None, both),
              "w1": F((depth, width, hidden), None, both), "w3": F((depth, width, hidden), None, both), "w2": F((depth, hidden, width), None, None, both), "norm1": F((depth, width)), "norm2": F((depth, width))}
    params = {"embed": F((words, width), None, both), "head": F((width, words), both), "norm": F((width,)), "layers": layers}
    state = jax.tree.map(lambda a: a, params)  # the momentum
    group, parts = heads // kv, devices.shape["seq"]
    block = K.BlockSizes(block_q=1024, block_kv=1024, block_kv_compute=512, block_q_dkv=1024, block_kv_dkv=1024, block_kv_dkv_compute=512, block_q_dq=1024, block_kv_dq=1024)
    made = K.make_splash_mqa(M.MultiHeadMask([M.CausalMask((length, length)) for _ in range(group)]), head_shards=1, q_seq_shards=1, block_sizes=block)

    def kernel(q, k, v):  # [batch, heads, time, size]
        q = (q * size**-0.5).reshape(q.shape[0], -1, group, *q.shape[2:])
        return jax.vmap(jax.vmap(made))(q, k, v).reshape(q.shape[0], -1, *q.shape[3:])

    spec = P("data", "seq")
    attend = jax.shard_map(kernel, mesh=devices, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)
    keep = jax.lax.with_sharding_constraint

    def layer(x, w):
        h = rms(x, w["norm1"])
        lin = lambda n: (h @ w[n].astype(HALF)).reshape(*h.shape[:2], -1, size).swapaxes(1, 2)
        o = keep(attend(lin("wq"), lin("wk"), lin("wv")).swapaxes(1, 2), on("data", "seq")).reshape(x.shape)
        x = x + o @ w["wo"].astype(HALF)
        h = rms(x, w["norm2"])
        return keep(x + (jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF))) @ w["w2"].astype(HALF), on("data", "seq")), None

    body = jax.checkpoint(layer, policy=getattr(jax.checkpoint_policies, policy))

    def loss_fn(params, tokens):
        x = keep(params["embed"].astype(HALF)[tokens], on("data", "seq"))
        x, _ = jax.lax.scan(body, x, params["layers"])
        x, labels = keep(rms(x, params["norm"]), on("data", "seq")), jnp.roll(tokens, -1, 1)
        if chunks > 1:  # pieces of each device's part of the sequence
            cut = lambda a: keep(a.reshape(a.shape[0], parts, chunks, -1, *a.shape[2:]).swapaxes(1, 2).swapaxes(0, 1), on(None, "data", "seq"))
            one = jax.checkpoint(lambda total, xs: (total + entropy(*[a.reshape(a.shape[0], -1, *a.shape[3:]) for a in (xs[0],)], params["head"], xs[1].reshape(xs[1].shape[0], -1), 1), None))
            return jax.lax.scan(one, 0.0, (cut(x), cut(labels)))[0] / chunks
        return entropy(x, params["head"], labels, 1)

    def orthogonal(m):  # one layer's
        x = m.astype(HALF)
        x = x.T if m.shape[0] > m.shape[1] else x
        x = x / (jnp.linalg.norm(x.astype(jnp.float32)) + 1e-7).astype(HALF)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return (x.T if m.shape[0] > m.shape[1] else x).astype(jnp.float32)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        momentum = jax.tree.map(lambda m, g: 0.95 * m + g, opt_state, grads)
        update = {**momentum, "layers": {n: jax.lax.map(orthogonal, m) if m.ndim == 3 else m for n, m in momentum["layers"].items()}}
        return jax.tree.map(lambda p, u: p - 1e-3 * u, params, update), momentum, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data", "seq"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
