"""JAX alone: a mixture of experts by hand (shard_map, all_to_all), a decoder whose loss has a derivative by hand, decoding with a window and a scan over layers."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, rms, shardings
from recipe import Program, mesh


def experts(topology, chips, batch, length=2048, width=2048, heads=16, hidden=5632, depth=16, count=8, words=50304, capacity=1.25, policy="none", chunks=1, donate=True):
    """Top-2 experts, one expert of each layer on a device (expert parallel = data parallel), everything else whole on every device."""
    devices = mesh(topology, (chips,), ("e",))
    on = lambda *s: NamedSharding(devices, P(*s))
    A = lambda spec, *s: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    size = width // heads
    layers = {"ln1": A((), depth, width), "ln2": A((), depth, width), "wqkv": A((), depth, width, 3, heads, size), "wo": A((), depth, heads, size, width),
              "router": A((), depth, width, count), "w_in": A((None, "e"), depth, count, width, hidden), "w_out": A((None, "e"), depth, count, hidden, width)}
    params = {"embed": A((), words, width), "layers": layers, "ln_f": A((), width)}

    def moe(x, router, w_in, w_out):
        """On one device: x [tokens, width]; w_in [1, width, hidden]."""
        n = x.shape[0]
        probs = jax.nn.softmax((x @ router.astype(HALF)).astype(jnp.float32))
        gate, which = jax.lax.top_k(probs, 2)
        gate = gate / gate.sum(-1, keepdims=True)
        slots = int(capacity * 2 * n / count)
        chosen = jax.nn.one_hot(which.reshape(-1), count, dtype=jnp.int32)
        place = (jnp.cumsum(chosen, 0) * chosen).sum(-1) - 1
        where = jnp.where(place < slots, which.reshape(-1) * slots + place, count * slots)
        sent = jnp.zeros((count * slots + 1, width), HALF).at[where].set(jnp.repeat(x, 2, 0))[:-1]
        got = jax.lax.all_to_all(sent.reshape(count, slots, width), "e", 0, 0, tiled=False).reshape(-1, width)
        done = jax.nn.gelu(got @ w_in[0].astype(HALF)) @ w_out[0].astype(HALF)
        back = jax.lax.all_to_all(done.reshape(count, slots, width), "e", 0, 0, tiled=False).reshape(-1, width)
        back = jnp.concatenate([back, jnp.zeros((1, width), HALF)])[where].reshape(n, 2, width)
        return (back * gate[..., None].astype(HALF)).sum(1)

    def layer(x, w):
        h = rms(x, w["ln1"])
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", h, w["wqkv"].astype(HALF)), 2, 0)
        s = jnp.einsum("bqhk,bthk->bhqt", q, k).astype(jnp.float32) * size**-0.5
        s = jnp.where(jnp.tril(jnp.ones((length, length), bool)), s, -1e30)
        o = jnp.einsum("bhqt,bthk->bqhk", jax.nn.softmax(s).astype(HALF), v)
        x = x + jnp.einsum("bqhk,hkd->bqd", o, w["wo"].astype(HALF))
        h = rms(x, w["ln2"])
        split = jax.shard_map(lambda h, *ws: moe(h.reshape(-1, width), *ws).reshape(h.shape), mesh=devices, in_specs=(P("e"), P(), P("e"), P("e")), out_specs=P("e"), check_vma=False)
        return x + split(h, w["router"], w["w_in"], w["w_out"]), None

    saved = {"none": lambda f: f, "full": jax.checkpoint, "dots": functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)}[policy]

    def loss_fn(params, tokens):
        x = params["embed"].astype(HALF)[tokens]
        x, _ = jax.lax.scan(saved(layer), x, params["layers"])
        x = rms(x, params["ln_f"])
        piece = lambda x, y: optax.softmax_cross_entropy_with_integer_labels((x @ params["embed"].astype(HALF).T).astype(jnp.float32), y).sum()
        labels = jnp.roll(tokens, -1, 1)
        if chunks == 1:
            return piece(x, labels) / labels.size
        cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
        return jax.lax.map(jax.checkpoint(lambda xs: piece(*xs)), (cut(x), cut(labels))).sum() / labels.size

    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4))
    opt = following(jax.eval_shape(transform.init, params), params, on())

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("e"))
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


def fused(topology, chips, batch, length=4096, width=3072, heads=24, kv=8, hidden=8192, depth=28, words=128256, remat=0, blocks=1, donate=True, state="float32"):
    """Llama 3.2 3B, fully sharded by a list of layers; the loss and its gradient made in one pass over pieces (custom_vjp), so whole logits never exist; AdEMAMix."""
    devices = mesh(topology, (chips,), ("fsdp",))
    on = lambda *s: NamedSharding(devices, P(*s))
    A = lambda spec, *s: jax.ShapeDtypeStruct(s, state, sharding=on(*spec))
    size = width // heads
    one = lambda: {"attn_norm": A((), width), "wq": A(("fsdp",), width, heads, size), "wk": A(("fsdp",), width, kv, size), "wv": A(("fsdp",), width, kv, size), "wo": A((None, None, "fsdp"), heads, size, width),
                   "mlp_norm": A((), width), "gate": A(("fsdp",), width, hidden), "up": A(("fsdp",), width, hidden), "down": A((None, "fsdp"), hidden, width)}
    params = {"embed": A(("fsdp",), words, width), "layers": [one() for _ in range(depth)], "norm": A((), width)}

    def attend(q, k, v, start, n):
        q = q.reshape(*q.shape[:2], kv, heads // kv, size)
        s = jnp.einsum("bqhgk,bthk->bhgqt", q, k).astype(jnp.float32) * size**-0.5
        s = jnp.where((start + jnp.arange(n))[:, None] >= jnp.arange(length), s, -1e30)
        return jnp.einsum("bhgqt,bthk->bqhgk", jax.nn.softmax(s).astype(HALF), v).reshape(*q.shape[:2], heads, size)

    def attention(q, k, v):
        if blocks == 1:
            return attend(q, k, v, 0, length)
        n = length // blocks
        parts = q.reshape(q.shape[0], blocks, n, heads, size).swapaxes(0, 1)
        out = jax.lax.map(jax.checkpoint(lambda a: attend(a[0], k, v, a[1] * n, n)), (parts, jnp.arange(blocks)))
        return out.swapaxes(0, 1).reshape(q.shape)

    def layer(x, w):
        w = jax.tree.map(lambda a: a.astype(HALF), w)
        h = rms(x, w["attn_norm"])
        q, k, v = [jnp.einsum("btd,dhk->bthk", h, w[n]) for n in ("wq", "wk", "wv")]
        x = x + jnp.einsum("bthk,hkd->btd", attention(q, k, v), w["wo"])
        h = rms(x, w["mlp_norm"])
        return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]

    @jax.custom_vjp
    def entropy(x, table, labels):
        return entropy_fwd(x, table, labels)[0]

    def entropy_fwd(x, table, labels, pieces=16):
        cut = lambda a: a.reshape(a.shape[0], pieces, -1, *a.shape[2:]).swapaxes(0, 1)
        half = table.astype(HALF)

        def body(carry, piece):
            total, dtable = carry
            x, y = piece
            logits = jnp.einsum("btd,vd->btv", x, half).astype(jnp.float32)
            lse = jax.nn.logsumexp(logits, -1)
            right = jnp.take_along_axis(logits, y[..., None], -1)[..., 0]
            d = ((jnp.exp(logits - lse[..., None]) - jax.nn.one_hot(y, words)) / labels.size).astype(HALF)
            return (total + (lse - right).sum() / labels.size, dtable + jnp.einsum("btv,btd->vd", d, x).astype(jnp.float32)), jnp.einsum("btv,vd->btd", d, half)

        start = (jnp.zeros(()), jax.lax.with_sharding_constraint(jnp.zeros((words, width), jnp.float32), on("fsdp")))
        (loss, dtable), dx = jax.lax.scan(body, start, (cut(x), cut(labels)))
        return loss, (dx.swapaxes(0, 1).reshape(x.shape), dtable)

    def entropy_bwd(saved, g):
        dx, dtable = saved
        return (dx * g).astype(HALF), (dtable * g).astype(state), None

    entropy.defvjp(entropy_fwd, entropy_bwd)

    def loss_fn(params, tokens):
        x = params["embed"].astype(HALF)[tokens[:, :-1]]
        x = jax.lax.with_sharding_constraint(x, on("fsdp"))
        for i, w in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{i}"):
                x = (jax.checkpoint(layer) if i < remat else layer)(x, w)
        return entropy(rms(x, params["norm"]), params["embed"], tokens[:, 1:])

    transform = optax.contrib.ademamix(1e-4)
    opt = following(jax.eval_shape(transform.init, params), params, on())

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=on("fsdp"))
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


def generate(topology, chips, batch, context, steps=128, width=5120, heads=40, kv=8, hidden=13824, depth=40, words=32000, donate=True, kept="bfloat16"):
    """A 13B decoder by tensor parallelism: the cache [layers, batch, heads, time, size] goes through a scan over layers as xs and ys, inside a fori_loop over words."""
    devices = mesh(topology, (chips,), ("tp",))
    on = lambda *s: NamedSharding(devices, P(*s))
    W = lambda spec, *s: jax.ShapeDtypeStruct(s, "bfloat16", sharding=on(*spec))
    size = width // heads
    params = {"embed": W((None, "tp"), words, width), "head": W((None, "tp"), width, words), "norm": W((), width),
              "blocks": {"n1": W((), depth, width), "n2": W((), depth, width), "q": W((None, None, "tp"), depth, width, heads, size), "kv": W((None, None, None, "tp"), depth, width, 2, kv, size), "o": W((None, "tp"), depth, heads, size, width),
                         "gate": W((None, None, "tp"), depth, width, hidden), "up": W((None, None, "tp"), depth, width, hidden), "down": W((None, "tp"), depth, hidden, width)}}
    C = lambda: jax.ShapeDtypeStruct((depth, batch, kv, context, size), kept, sharding=on(None, None, "tp"))
    cache = {"k": C(), "v": C()}

    def decode(params, cache, prompt_end, first):
        def word(i, state):
            cache, token, out = state
            place = prompt_end + i

            def block(x, xs):
                w, k, v = xs
                h = rms(x, w["n1"])
                q = jnp.einsum("bd,dhk->bhk", h, w["q"]).reshape(batch, kv, heads // kv, size)
                new = jnp.einsum("bd,dchk->cbhk", h, w["kv"])[:, :, :, None].astype(kept)
                k = jax.lax.dynamic_update_slice(k, new[0], (0, 0, place, 0))
                v = jax.lax.dynamic_update_slice(v, new[1], (0, 0, place, 0))
                s = jnp.einsum("bhgk,bhtk->bhgt", q, k.astype(HALF)).astype(jnp.float32) * size**-0.5
                s = jnp.where(jnp.arange(context) <= place, s, -1e30)
                o = jnp.einsum("bhgt,bhtk->bhgk", jax.nn.softmax(s).astype(HALF), v.astype(HALF)).reshape(batch, heads, size)
                x = x + jnp.einsum("bhk,hkd->bd", o, w["o"])
                h = rms(x, w["n2"])
                return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], (k, v)

            x, (k, v) = jax.lax.scan(block, params["embed"][token], (params["blocks"], cache["k"], cache["v"]))
            token = (rms(x, params["norm"]) @ params["head"]).argmax(-1).astype(jnp.int32)
            return {"k": k, "v": v}, token, out.at[:, i].set(token)

        return jax.lax.fori_loop(0, steps, word, (cache, first, jnp.zeros((batch, steps), jnp.int32)))

    I = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=on())
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(decode, (params, cache, I(), I(batch)), classify, (1,) if donate else (), (shardings(cache), None, None))
