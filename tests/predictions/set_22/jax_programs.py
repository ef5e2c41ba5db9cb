"""JAX alone: second-order MAML; Llama 70B served with int8 weights and cache; DLRM with its tables cut by rows; a decoder of pairs of layers, dense and experts, with weights averaged."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def maml(topology, chips, tasks, ways=5, shots=5, queries=15, size=84, filters=64, steps=5, remat=False, half=False, donate=True):
    """Mini-ImageNet, four convolutions; images are [shot, task, height, width, colour], labels [shot, task]."""
    devices = mesh(topology, (chips,), ("tasks",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P(None, "tasks"))
    dtype = HALF if half else jnp.float32
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    theta = {f"conv{i}": {"w": F(3, 3, 3 if i == 0 else filters, filters), "b": F(filters), "gamma": F(filters), "beta": F(filters)} for i in range(4)}
    theta["out"] = {"w": F((size // 16) ** 2 * filters, ways), "b": F(ways)}
    alpha = jax.tree.map(lambda a: a, theta)  # Meta-SGD: a learning rate of every weight
    meta = {"theta": theta, "alpha": alpha}
    transform = optax.adam(1e-3)
    opt = placed(jax.eval_shape(transform.init, meta), whole)

    def net(w, x):
        x = x.astype(dtype)
        for i in range(4):
            with jax.named_scope(f"conv{i}"):
                p = w[f"conv{i}"]
                x = jax.lax.conv_general_dilated(x, p["w"].astype(dtype), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"].astype(dtype)
                m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
                x = (x - m) * jax.lax.rsqrt(v + 1e-5) * p["gamma"].astype(dtype) + p["beta"].astype(dtype)
                x = jax.nn.relu(x)
                x = jax.lax.reduce_window(x, -jnp.inf if dtype == jnp.float32 else __import__("numpy").array(-jnp.inf, dtype), jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = x.reshape(x.shape[0], -1)
        return x.astype(jnp.float32) @ w["out"]["w"] + w["out"]["b"]

    def loss(w, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(net(w, x), y).mean()

    def adapted(meta, xs, ys, xq, yq):
        def inner(w, _):
            g = jax.grad(loss)(w, xs, ys)
            return jax.tree.map(lambda w, a, g: w - a * g, w, meta["alpha"], g), None

        w, _ = jax.lax.scan(jax.checkpoint(inner) if remat else inner, meta["theta"], None, length=steps)
        return loss(w, xq, yq)

    def meta_step(meta, opt_state, support, support_labels, query, query_labels):
        def outer(meta):
            return jax.vmap(adapted, (None, 1, 1, 1, 1))(meta, support, support_labels, query, query_labels).mean()

        value, grads = jax.value_and_grad(outer)(meta)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(meta, updates), opt_state, value

    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=split)
    data = (S("float32", ways * shots, tasks, size, size, 3), S("int32", ways * shots, tasks), S("float32", ways * queries, tasks, size, size, 3), S("int32", ways * queries, tasks))
    return Program(meta_step, (meta, opt, *data), kind_of_step, (0, 1) if donate else ())


def serve_int8(topology, chips, batch, context, width=8192, heads=64, kv=8, hidden=28672, depth=80, vocabulary=128256, steps=32, donate=True):
    """Weights and cache in int8 with scales; cut by heads; 32 tokens at a call; the layers are a fori_loop that carries the whole cache."""
    devices = mesh(topology, (chips,), ("t",))
    size = width // heads
    on = lambda *spec: NamedSharding(devices, P(*spec))
    A = lambda dtype, spec, *s: jax.ShapeDtypeStruct(s, dtype, sharding=on(*spec))
    cut_out = lambda a, b: {"q": A("int8", (None, None, "t"), depth, a, b), "s": A("float32", (None, "t"), depth, b)}
    cut_in = lambda a, b: {"q": A("int8", (None, "t", None), depth, a, b), "s": A("float32", (), depth, b)}
    weights = {"embed": A("bfloat16", (None, "t"), vocabulary, width), "head": A("bfloat16", (None, "t"), width, vocabulary), "final": A("float32", (), width),
               "wq": cut_out(width, heads * size), "wk": cut_out(width, kv * size), "wv": cut_out(width, kv * size), "wo": cut_in(heads * size, width),
               "w1": cut_out(width, hidden), "w3": cut_out(width, hidden), "w2": cut_in(hidden, width), "n1": A("float32", (), depth, width), "n2": A("float32", (), depth, width)}
    C = lambda: {"q": A("int8", (None, None, "t"), depth, batch, kv, context, size), "s": A("float32", (None, None, "t"), depth, batch, kv, context)}
    kv_cache = {"k": C(), "v": C()}

    def at(tree, i):
        return jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, i, 0, False), tree)

    def matmul(x, w):
        return ((x @ w["q"].astype(HALF)).astype(jnp.float32) * w["s"]).astype(HALF)

    def quantized(x):
        s = jnp.abs(x.astype(jnp.float32)).max(-1) / 127 + 1e-8
        return jnp.round(x.astype(jnp.float32) / s[..., None]).astype(jnp.int8), s

    def rope(x, place):
        f = 5e5 ** (-jnp.arange(0, size, 2) / size)
        a = place[:, None, None].astype(jnp.float32) * f
        x1, x2 = jnp.split(x.astype(jnp.float32), 2, -1)
        return jnp.concatenate([x1 * jnp.cos(a) - x2 * jnp.sin(a), x1 * jnp.sin(a) + x2 * jnp.cos(a)], -1).astype(HALF)

    def generate(weights, kv_cache, tokens, lengths, key):
        layers = {k: v for k, v in weights.items() if k not in ("embed", "head", "final")}

        def token(n, carry):
            kv_cache, last, lengths, out = carry
            x = weights["embed"][last]
            rows = jnp.arange(batch)

            def layer(i, carry):
                x, cache = carry
                w = at(layers, i)
                h = rms(x, w["n1"])
                q = rope(matmul(h, w["wq"]).reshape(batch, heads, size), lengths)
                k = rope(matmul(h, w["wk"]).reshape(batch, kv, size), lengths)
                v = matmul(h, w["wv"]).reshape(batch, kv, size)
                new = {"k": k, "v": v}
                put = {}
                for name in ("k", "v"):
                    a, s = quantized(new[name])
                    put[name] = {"q": cache[name]["q"].at[i, rows, :, lengths].set(a), "s": cache[name]["s"].at[i, rows, :, lengths].set(s)}
                mine = at(put, i)
                q = q.reshape(batch, kv, heads // kv, size)
                scores = jnp.einsum("bkgd,bktd->bkgt", q, mine["k"]["q"].astype(HALF)).astype(jnp.float32) * mine["k"]["s"][:, :, None] * size**-0.5
                scores = jnp.where(jnp.arange(context) <= lengths[:, None, None, None], scores, -1e30)
                p = jax.nn.softmax(scores) * mine["v"]["s"][:, :, None]
                o = jnp.einsum("bkgt,bktd->bkgd", p.astype(HALF), mine["v"]["q"].astype(HALF)).reshape(batch, heads * size)
                x = x + matmul(o, w["wo"])
                h = rms(x, w["n2"])
                return x + matmul(jax.nn.silu(matmul(h, w["w1"])) * matmul(h, w["w3"]), w["w2"]), put

            x, kv_cache = jax.lax.fori_loop(0, depth, layer, (x, kv_cache))
            logits = (rms(x, weights["final"]) @ weights["head"]).astype(jnp.float32)
            last = jax.random.categorical(jax.random.fold_in(key, n), logits / 0.7)
            return kv_cache, last, lengths + 1, out.at[:, n].set(last)

        out = jnp.zeros((batch, steps), jnp.int32)
        kv_cache, last, lengths, out = jax.lax.fori_loop(0, steps, token, (kv_cache, tokens, lengths, out))
        return kv_cache, last, lengths, out

    I = A("int32", (), batch)
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    args = (weights, kv_cache, I, I, A("uint32", (), 2))
    return Program(generate, args, classify, (1,) if donate else (), (shardings(kv_cache), None, None, None))


def dlrm(topology, chips, batch, rows=60_000_000, width=128, features=26, hot=20, dense=13, dtype="float32", donate=True):
    """Criteo: 26 bags of 20 rows of one table that is cut by rows; every device looks up all the batch in its rows, a feature at a time."""
    devices = mesh(topology, (chips,), ("d",))
    whole, split, by_row = NamedSharding(devices, P()), NamedSharding(devices, P("d")), NamedSharding(devices, P("d"))
    W = lambda where, *s: jax.ShapeDtypeStruct(s, dtype, sharding=where)
    mlp = lambda *sizes: [{"w": W(whole, a, b), "b": W(whole, b)} for a, b in zip(sizes, sizes[1:])]
    pairs = (features + 1) * features // 2
    params = {"table": W(by_row, rows, width), "bottom": mlp(dense, 512, 256, width), "top": mlp(pairs + width, 1024, 1024, 512, 256, 1)}
    transform = optax.adagrad(0.01)
    opt = following(jax.eval_shape(transform.init, params), params, whole)
    share = rows // chips

    def bags(table, ids):  # table: my rows; ids: [my batch, features, hot]
        ids = jax.lax.all_gather(ids, "d", axis=0, tiled=True) - jax.lax.axis_index("d") * share

        def one(_, ids):  # [batch, hot]
            mine = (ids >= 0) & (ids < share)
            found = jnp.take(table, jnp.clip(ids, 0, share - 1), axis=0) * mine[..., None].astype(table.dtype)
            return None, jax.lax.psum_scatter(found.sum(1), "d", scatter_dimension=0, tiled=True)

        return jax.lax.scan(one, None, ids.swapaxes(0, 1))[1].swapaxes(0, 1)

    lookup = jax.shard_map(bags, mesh=devices, in_specs=(P("d"), P("d")), out_specs=P("d"), check_vma=False)

    def run(layers, x):
        for i, p in enumerate(layers):
            x = x @ p["w"] + p["b"]
            x = jax.nn.relu(x) if i < len(layers) - 1 else x
        return x

    def train_step(params, opt_state, numbers, ids, clicks):
        def loss_fn(params):
            low = run(params["bottom"], numbers.astype(dtype))
            vectors = jnp.concatenate([low[:, None], lookup(params["table"], ids)], 1)
            dots = jnp.einsum("bid,bjd->bij", vectors, vectors)
            i, j = jnp.tril_indices(features + 1, -1)
            top = run(params["top"], jnp.concatenate([low, dots[:, i, j]], -1))[:, 0]
            return optax.sigmoid_binary_cross_entropy(top.astype(jnp.float32), clicks).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=split)
    args = (params, opt, S("float32", batch, dense), S("int32", batch, features, hot), S("float32", batch))
    return Program(train_step, args, kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


def pairs(topology, chips, batch, length=2048, count=12, width=2048, heads=16, hidden=8192, experts=32, small=1408, vocabulary=65536, remat=False, chunks=1, donate=True):
    """A scan over pairs of layers, one dense, one of experts (all_to_all by shard_map); tokens are [time, batch]; weights cast to bfloat16 once; AdamW with a short first moment; an average of the weights."""
    devices = mesh(topology, (chips,), ("x",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda spec, *s: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    size = width // heads
    attn = lambda: {"norm": F((), count, width), "qkv": F((None, "x"), count, width, 3, heads, size), "out": F((None, None, None, "x"), count, heads, size, width)}
    weights = {
        "tok": F(("x",), vocabulary, width), "unembed": F(("x",), width, vocabulary), "ln": F((), width),
        "pair": {"a": attn(), "ffn": {"norm": F((), count, width), "in": F((None, "x"), count, width, 2, hidden), "out": F((None, "x"), count, hidden, width)},
                 "b": attn(), "moe": {"norm": F((), count, width), "router": F((), count, width, experts), "in": F((None, "x"), count, experts, width, 2, small), "out": F((None, "x"), count, experts, small, width)}}}
    transform = optax.adamw(3e-4, b2=0.95, mu_dtype=HALF)
    opt = following(jax.eval_shape(transform.init, weights), weights, on())
    opt = jax.tree.map(lambda a: a, opt)
    ema = jax.tree.map(lambda a: a, weights)

    def attention(x, w):  # [time, batch, width]
        h = rms(x, w["norm"])
        q, k, v = jnp.moveaxis(jnp.einsum("tbd,dnhk->tbnhk", h, w["qkv"]), 2, 0)
        s = jnp.einsum("qbhk,sbhk->bhqs", q, k, preferred_element_type=jnp.float32) * size**-0.5
        s = jnp.where(jnp.tril(jnp.ones((length, length), bool)), s, -jnp.inf)
        o = jnp.einsum("bhqs,sbhk->qbhk", jax.nn.softmax(s).astype(HALF), v)
        return x + jnp.einsum("tbhk,hkd->tbd", o, w["out"])

    def glu(h, w_in, w_out):
        a, b = jnp.moveaxis(jnp.einsum("...d,dnf->...nf", h, w_in), -2, 0)
        return (jax.nn.silu(a) * b) @ w_out

    def spread(h, router, w_in, w_out):  # my tokens [time, my batch, width]; my experts
        shape = h.shape
        h = h.reshape(-1, width)
        n = h.shape[0]
        room = int(n * 2 * 1.25) // experts
        gates, chosen = jax.lax.top_k(jax.nn.softmax((h @ router).astype(jnp.float32)), 2)
        flat = chosen.T.reshape(-1)
        onehot = jax.nn.one_hot(flat, experts, dtype=jnp.int32)
        place = (jnp.cumsum(onehot, 0) * onehot).sum(-1) - 1
        ok = place < room
        slot = jnp.where(ok, flat * room + place, experts * room)
        sent = jnp.zeros((experts * room, width), HALF).at[slot].set(jnp.tile(h, (2, 1)), mode="drop")
        sent = jax.lax.all_to_all(sent.reshape(chips, experts // chips, room, width), "x", 0, 0)
        mine = sent.swapaxes(0, 1).reshape(experts // chips, chips * room, width)
        done = jax.vmap(glu)(mine, w_in, w_out)
        back = jax.lax.all_to_all(done.reshape(experts // chips, chips, room, width).swapaxes(0, 1), "x", 0, 0).reshape(-1, width)
        got = back[jnp.minimum(slot, experts * room - 1)] * (ok[:, None] * gates.T.reshape(-1, 1)).astype(HALF)
        return got.reshape(2, n, width).sum(0).reshape(shape)

    moe = jax.shard_map(spread, mesh=devices, in_specs=(P(None, "x"), P(), P("x"), P("x")), out_specs=P(None, "x"), check_vma=False)

    def pair(x, w):
        with jax.named_scope("dense"):
            x = attention(x, w["a"])
            x = x + glu(rms(x, w["ffn"]["norm"]), w["ffn"]["in"], w["ffn"]["out"])
        with jax.named_scope("sparse"):
            x = attention(x, w["b"])
            x = x + moe(rms(x, w["moe"]["norm"]), w["moe"]["router"], w["moe"]["in"], w["moe"]["out"])
        return x, None

    def loss_fn(weights, tokens):
        w = jax.tree.map(lambda a: a.astype(HALF), weights)
        x = jax.lax.with_sharding_constraint(w["tok"][tokens], on(None, "x"))
        x, _ = jax.lax.scan(jax.checkpoint(pair) if remat else pair, x, w["pair"])
        x, labels = rms(x, w["ln"]), jnp.roll(tokens, -1, 0)

        def piece(x, y):
            logits = (x @ w["unembed"]).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).sum()

        if chunks == 1:
            return piece(x, labels) / labels.size
        cut = lambda a: a.reshape(chunks, -1, *a.shape[1:])
        return jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, (cut(x), cut(labels)))[0] / labels.size

    def train(weights, average, opt, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(weights, tokens)
        updates, opt = transform.update(grads, opt, weights)
        weights = optax.apply_updates(weights, updates)
        average = optax.incremental_update(weights, average, 1e-3)
        return weights, average, opt, loss

    tokens = jax.ShapeDtypeStruct((length, batch), "int32", sharding=on(None, "x"))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    outs = (shardings(weights), shardings(ema), shardings(opt), None)
    return Program(train, (weights, ema, opt, tokens), classify, (0, 1, 2) if donate else (), outs)
