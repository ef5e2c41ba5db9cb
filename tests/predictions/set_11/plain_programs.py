"""JAX alone, or with jraph: experts under shard_map, nested scans, a tensor-parallel decoder, a quantised prefill, a
verifying step of speculative decoding, a graph network, a pipeline."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, rms
from recipe import Program, largest_dimension, mesh, placed

S = jax.ShapeDtypeStruct
F = lambda *shape: S(shape, jnp.float32)


def training(params, transform, grads, data, devices, where, split, donate=True):
    """`grads(params, *batch)` gives the loss and its gradients. The optimizer's state lies as the parameters do."""
    params = placed(params, where)
    state = placed(jax.eval_shape(transform.init, params), where)

    def update(params, opt_state, *batch):
        value, gradients = grads(params, *batch)
        updates, opt_state = transform.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    args = (params, state, *[placed(x, NamedSharding(devices, split)) for x in data])
    outs = (*[jax.tree.map(lambda a: a.sharding, x) for x in (params, state)], None)
    return Program(update, args, lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input"), (0, 1) if donate else (), outs)


def accumulated(loss, micro):
    """Gradients of the mean over `micro` parts of the batch, which follow each other in a scan."""
    if micro == 1:
        return jax.value_and_grad(loss)

    def grads(params, *batch):
        parts = [a.reshape(-1, micro, *a.shape[1:]).swapaxes(0, 1) for a in batch]
        add = lambda total, part: (jax.tree.map(lambda a, b: a + b / micro, total, jax.value_and_grad(loss)(params, *part)), None)
        return jax.lax.scan(add, (0.0, jax.tree.map(jnp.zeros_like, params)), tuple(parts))[0]

    return grads


def experts(topology, chips, batch, length, depth, width, heads, count, hidden, vocabulary, remat=False, chunks=1):
    """Each chip holds some of the experts and a part of the batch; tokens travel by all_to_all inside shard_map."""
    devices = mesh(topology, (chips,), ("x",))
    params = {"embed": F(vocabulary, width), "unembed": F(width, vocabulary), "stack": {
        "norm1": F(depth, width), "norm2": F(depth, width), "wqkv": F(depth, width, 3, heads, width // heads), "wo": F(depth, heads, width // heads, width),
        "router": F(depth, width, count), "w_in": F(depth, count, width, hidden), "w_out": F(depth, count, hidden, width)}}
    spec = lambda path: P(None, "x") if "w_in" in path or "w_out" in path else P()
    specs = jax.tree_util.tree_map_with_path(lambda path, _: spec(jax.tree_util.keystr(path)), params)

    def moe(w, y):
        flat = y.reshape(-1, width)
        capacity = flat.shape[0] * 2 * 5 // (4 * count)
        chance = jax.nn.softmax((flat @ w["router"].astype(HALF)).astype(jnp.float32))
        weight, chosen = jax.lax.top_k(chance, 2)
        chosen = chosen.reshape(-1)
        order = jnp.argsort(chosen)
        first = jnp.searchsorted(chosen[order], jnp.arange(count))
        rank = jnp.zeros_like(chosen).at[order].set(jnp.arange(chosen.size) - first[chosen[order]])
        slot = jnp.where(rank < capacity, chosen * capacity + rank, count * capacity)
        sent = jnp.zeros((count * capacity + 1, width), HALF).at[slot].set(jnp.repeat(flat, 2, 0))[:-1]
        sent = jax.lax.all_to_all(sent.reshape(count, capacity, width), "x", 0, 1, tiled=True)
        done = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", sent, w["w_in"].astype(HALF)))
        done = jnp.einsum("ecf,efd->ecd", done, w["w_out"].astype(HALF))
        done = jax.lax.all_to_all(done, "x", 1, 0, tiled=True).reshape(-1, width)
        back = jnp.concatenate([done, jnp.zeros((1, width), HALF)])[slot].reshape(-1, 2, width)
        return (back * weight[..., None].astype(HALF)).sum(1).reshape(y.shape)

    def body(x, w):
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", rms(x, w["norm1"]), w["wqkv"].astype(HALF)), 2, 0)
        x = x + jnp.einsum("bthk,hkd->btd", causal(q, k, v), w["wo"].astype(HALF))
        return x + moe(w, rms(x, w["norm2"])), None

    def local(params, tokens, labels):
        x = params["embed"].astype(HALF)[tokens]
        x, _ = jax.lax.scan(jax.checkpoint(body) if remat else body, x, params["stack"])
        return jax.lax.pmean(entropy(x, params["unembed"], labels, chunks), "x")

    loss = jax.shard_map(local, mesh=devices, in_specs=(specs, P("x"), P("x")), out_specs=P(), check_vma=False)
    where = lambda path, leaf: NamedSharding(devices, P(None, "x") if ("w_in" in path or "w_out" in path) and leaf.ndim == 4 else P())
    return training(params, optax.sgd(1e-2, momentum=0.9), jax.value_and_grad(loss), [S((batch, length), jnp.int32)] * 2, devices, where, P("x"))


def nested(topology, chips, batch, length, depth, width, heads, vocabulary, micro, remat=False):
    """Parameters and state divided (FSDP); a scan over parts of the batch, and a scan over layers within."""
    devices = mesh(topology, (chips,), ("fsdp",))
    size = width // heads
    params = {"wte": F(vocabulary, width), "head": F(width, vocabulary), "layers": {
        "ln1": F(depth, width), "ln2": F(depth, width), "qkv": F(depth, width, 3, heads, size), "o": F(depth, heads, size, width),
        "gate": F(depth, width, 3 * width), "up": F(depth, width, 3 * width), "down": F(depth, 3 * width, width)}}
    rows = NamedSharding(devices, P("fsdp"))

    def body(x, w):
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", rms(x, w["ln1"]), w["qkv"].astype(HALF)), 2, 0)
        x = x + jnp.einsum("bthk,hkd->btd", causal(q, k, v), w["o"].astype(HALF))
        y = rms(x, w["ln2"])
        y = jax.nn.silu(y @ w["gate"].astype(HALF)) * (y @ w["up"].astype(HALF))
        return jax.lax.with_sharding_constraint(x + y @ w["down"].astype(HALF), rows), None

    def loss(params, tokens, labels):
        x = jax.lax.with_sharding_constraint(params["wte"].astype(HALF)[tokens], rows)
        x, _ = jax.lax.scan(jax.checkpoint(body) if remat else body, x, params["layers"])
        return entropy(x, params["head"], labels, 1)

    return training(params, optax.adamw(1e-4), accumulated(loss, micro), [S((batch, length), jnp.int32)] * 2, devices, largest_dimension(devices, "fsdp"), P("fsdp"))


def tensor(topology, shape, batch, length, depth, width, heads, kv, inner, vocabulary, remat=False, kernel=False, chunks=1, micro=1):
    """Heads, hidden values and vocabulary over `tensor`, batch and the other dimension of weights over `fsdp`."""
    devices = mesh(topology, shape, ("fsdp", "tensor"))
    size = width // heads
    shapes = {"q": (width, heads, size), "k": (width, kv, size), "v": (width, kv, size), "o": (heads, size, width),
              "wi_0": (width, inner), "wi_1": (width, inner), "wo": (inner, width)}
    cuts = {"q": P(None, "fsdp", "tensor"), "k": P(None, "fsdp", "tensor"), "v": P(None, "fsdp", "tensor"), "o": P(None, "tensor", None, "fsdp"),
            "wi_0": P(None, "fsdp", "tensor"), "wi_1": P(None, "fsdp", "tensor"), "wo": P(None, "tensor", "fsdp"),
            "token_embedder": P("tensor", "fsdp"), "logits_dense": P("fsdp", "tensor")}
    params = {"token_embedder": F(vocabulary, width), "logits_dense": F(width, vocabulary), "decoder": {
        "pre": F(depth, width), "post": F(depth, width), **{n: F(depth, *s) for n, s in shapes.items()}}}

    def where(path, leaf):
        for name, cut in cuts.items():
            if f"['{name}']" in path:
                return NamedSharding(devices, cut)
        return NamedSharding(devices, P())

    put = lambda a, *cut: jax.lax.with_sharding_constraint(a, NamedSharding(devices, P(*cut)))
    heads_cut = P("fsdp", None, "tensor")
    attention = jax.shard_map(flash, mesh=devices, in_specs=(heads_cut,) * 3, out_specs=heads_cut, check_vma=False) if kernel else causal

    def body(x, w):
        y = rms(x, w["pre"])
        q, k, v = [put(jnp.einsum("btd,dhk->bthk", y, w[n].astype(HALF)), *heads_cut) for n in "qkv"]
        k, v = [jnp.repeat(a, heads // kv, 2) for a in (k, v)]
        x = x + put(jnp.einsum("bthk,hkd->btd", attention(q, k, v), w["o"].astype(HALF)), "fsdp")
        y = rms(x, w["post"])
        y = put(jax.nn.silu(y @ w["wi_0"].astype(HALF)) * (y @ w["wi_1"].astype(HALF)), "fsdp", None, "tensor")
        return x + put(y @ w["wo"].astype(HALF), "fsdp"), None

    def loss(params, tokens, labels):
        x = put(params["token_embedder"].astype(HALF)[tokens], "fsdp")
        x, _ = jax.lax.scan(jax.checkpoint(body) if remat else body, x, params["decoder"])
        return entropy(x, params["logits_dense"], labels, chunks)

    return training(params, optax.adamw(1e-4), accumulated(loss, micro), [S((batch, length), jnp.int32)] * 2, devices, where, P("fsdp"))


def prefill(topology, chips, batch, length, room, depth, width, heads, kv, inner, vocabulary, kernel=False, donate=False):
    """Fills the cache from whole prompts; weights are int8 with a scale per column; heads over the chips."""
    devices = mesh(topology, (chips,), ("model",))
    size = width // heads
    W = lambda *shape: {"q8": S((depth, *shape), jnp.int8), "scale": S((depth, 1, *shape[1:]), HALF)}
    weights = {"embed": S((vocabulary, width), HALF), "head": S((width, vocabulary), HALF), "layers": {
        "norm1": S((depth, width), HALF), "norm2": S((depth, width), HALF), "wq": W(width, heads * size), "wk": W(width, kv * size), "wv": W(width, kv * size),
        "wo": W(heads * size, width), "w1": W(width, inner), "w3": W(width, inner), "w2": W(inner, width)}}

    def where(path, leaf):
        if any(f"['{n}']" in path for n in ("wq", "wk", "wv", "w1", "w3")):
            return NamedSharding(devices, P(None, None, "model"))
        if "['wo']['q8']" in path or "['w2']['q8']" in path:
            return NamedSharding(devices, P(None, "model"))
        return NamedSharding(devices, P(None, "model") if "head" in path else P())

    cut = P(None, None, "model")
    attention = jax.shard_map(flash, mesh=devices, in_specs=(cut,) * 3, out_specs=cut, check_vma=False) if kernel else causal
    put = lambda a: jax.lax.with_sharding_constraint(a, NamedSharding(devices, cut))
    real = lambda w: w["q8"].astype(HALF) * w["scale"]

    def step(weights, cache, tokens):
        def body(x, layer):
            w, k_old, v_old = layer
            y = rms(x, w["norm1"])
            q, k, v = [put((y @ real(w[n])).reshape(*y.shape[:2], -1, size)) for n in ("wq", "wk", "wv")]
            new = [jax.lax.dynamic_update_slice(old, a, (0, 0, 0, 0)) for old, a in ((k_old, k), (v_old, v))]
            k, v = [jnp.repeat(a, heads // kv, 2) for a in (k, v)]
            x = x + attention(q, k, v).reshape(*y.shape[:2], -1) @ real(w["wo"])
            y = rms(x, w["norm2"])
            return x + (jax.nn.silu(y @ real(w["w1"])) * (y @ real(w["w3"]))) @ real(w["w2"]), new

        x, (k, v) = jax.lax.scan(body, weights["embed"][tokens], (weights["layers"], cache["k"], cache["v"]))
        return (x[:, -1] @ weights["head"]).astype(jnp.float32), {"k": k, "v": v}

    cache = placed({n: S((depth, batch, room, kv, size), HALF) for n in "kv"}, NamedSharding(devices, P(None, None, None, "model")))
    args = (placed(weights, where), cache, placed(S((batch, length), jnp.int32), NamedSharding(devices, P())))
    rule = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(step, args, rule, (1,) if donate else (), (None, jax.tree.map(lambda a: a.sharding, cache)))


def verify(topology, chips, batch, length, drafted, depth, width, heads, vocabulary, donate=False, cache="bfloat16"):
    """One verifying step of speculative decoding: `drafted` tokens at once against a cache per layer."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    H = lambda *shape: S(shape, HALF)
    size = width // heads
    weights = {"embed": H(vocabulary, width), "layers": [
        {"norm1": H(width), "norm2": H(width), "wqkv": H(width, 3, heads, size), "wo": H(heads, size, width), "w1": H(width, 4 * width), "w2": H(4 * width, width)}
        for _ in range(depth)]}
    kind = jnp.dtype(cache)
    caches = [{n: S((batch, length, heads, size), kind) for n in ("keys", "values")} for _ in range(depth)]

    def step(weights, kv_cache, draft, position):
        x, out = weights["embed"][draft], []
        row = jnp.arange(draft.shape[0])[:, None]
        place = position[:, None] + jnp.arange(drafted)
        for w, old in zip(weights["layers"], kv_cache):
            q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", rms(x, w["norm1"]), w["wqkv"]), 2, 0)
            new = {n: old[n].at[row, place].set(a.astype(kind)) for n, a in (("keys", k), ("values", v))}
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, new["keys"].astype(HALF)).astype(jnp.float32) * size**-0.5
            scores = jnp.where((jnp.arange(length) <= place[..., None])[:, None], scores, -1e30)
            y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(HALF), new["values"].astype(HALF))
            x = x + jnp.einsum("bthk,hkd->btd", y, w["wo"])
            x = x + jax.nn.gelu(rms(x, w["norm2"]) @ w["w1"]) @ w["w2"]
            out.append(new)
        best = (x @ weights["embed"].T).astype(jnp.float32).argmax(-1)
        accepted = jnp.cumprod(best[:, :-1] == draft[:, 1:], 1).sum(1)
        return best, position + accepted + 1, out

    args = (placed(weights, whole), placed(caches, split), placed(S((batch, drafted), jnp.int32), split), placed(S((batch,), jnp.int32), split))
    rule = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(step, args, rule, (1,) if donate else ())


def graphs(topology, nodes, edges, width, depth, remat=False, half=False):
    """jraph's GraphNetwork, several times over one large graph, on one chip."""
    import jraph

    devices = mesh(topology, (1,), ("data",))
    whole = NamedSharding(devices, P())
    mlp = lambda a: {"w1": F(a, width), "b1": F(width), "w2": F(width, width), "b2": F(width)}
    params = {"encode_nodes": F(100, width), "encode_edges": F(8, width), "predict": F(width, 47),
              "steps": [{"edge": mlp(3 * width), "node": mlp(3 * width)} for _ in range(depth)]}

    def run(w, *parts):
        y = jnp.concatenate(parts, -1)
        return jax.nn.relu(y @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]

    def one(w, graph):
        net = jraph.GraphNetwork(
            update_edge_fn=lambda e, sent, received, g: e + run(w["edge"], e, sent, received),
            update_node_fn=lambda n, sent, received, g: n + run(w["node"], n, sent, received))
        return net(graph)

    def loss(params, features, edge_features, senders, receivers, labels):
        if half:
            params, features, edge_features = jax.tree.map(lambda a: a.astype(HALF), (params, features, edge_features))
        graph = jraph.GraphsTuple(nodes=features @ params["encode_nodes"], edges=edge_features @ params["encode_edges"], senders=senders,
                                  receivers=receivers, globals=None, n_node=jnp.array([nodes]), n_edge=jnp.array([edges]))
        for w in params["steps"]:
            graph = (jax.checkpoint(one) if remat else one)(w, graph)
        return optax.softmax_cross_entropy_with_integer_labels((graph.nodes @ params["predict"]).astype(jnp.float32), labels).mean()

    i = lambda n: S((n,), jnp.int32)
    data = [F(nodes, 100), F(edges, 8), i(edges), i(edges), i(nodes)]
    return training(params, optax.adam(1e-3), jax.value_and_grad(loss), data, devices, whole, P())


def pipeline(topology, stages, batch, length, per_stage, width, heads, vocabulary, micro, remat=""):
    """Each chip is one stage of `per_stage` layers; a scan over ticks hands parts of the batch on by ppermute."""
    devices = mesh(topology, (stages,), ("stage",))
    size = width // heads
    layer = {"norm1": F(stages, width), "norm2": F(stages, width), "wqkv": F(stages, width, 3, heads, size), "wo": F(stages, heads, size, width),
             "w1": F(stages, width, 4 * width), "w2": F(stages, 4 * width, width)}
    params = {"embed": F(vocabulary, width), "head": F(width, vocabulary), "layers": [dict(layer) for _ in range(per_stage)]}
    cut = lambda path, leaf: P("stage") if "layers" in path and leaf.ndim > 1 else P()
    specs = jax.tree_util.tree_map_with_path(lambda path, leaf: cut(jax.tree_util.keystr(path), leaf), params)

    def one(w, x):
        w = jax.tree.map(lambda a: a[0], w)
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", rms(x, w["norm1"]), w["wqkv"].astype(HALF)), 2, 0)
        x = x + jnp.einsum("bthk,hkd->btd", causal(q, k, v), w["wo"].astype(HALF))
        return x + jax.nn.gelu(rms(x, w["norm2"]) @ w["w1"].astype(HALF)) @ w["w2"].astype(HALF)

    def local(params, tokens, labels):
        parts = params["embed"].astype(HALF)[tokens].reshape(micro, -1, length, width)
        stage = jax.lax.axis_index("stage")

        def tick(x, number):
            x = jnp.where(stage == 0, parts[jnp.minimum(number, micro - 1)], x)
            for w in params["layers"]:
                x = (jax.checkpoint(one) if remat == "layers" else one)(w, x)
            return jax.lax.ppermute(x, "stage", [(i, (i + 1) % stages) for i in range(stages)]), x

        first = jnp.zeros_like(parts[0])
        _, out = jax.lax.scan(jax.checkpoint(tick) if remat == "tick" else tick, first, jnp.arange(micro + stages - 1))
        out = out[stages - 1:].reshape(-1, length, width)
        value = entropy(out, params["head"], labels, 8)
        return jax.lax.psum(jnp.where(stage == stages - 1, value, 0.0), "stage")

    loss = jax.shard_map(local, mesh=devices, in_specs=(specs, P(), P()), out_specs=P(), check_vma=False)
    where = lambda path, leaf: NamedSharding(devices, cut(path, leaf))
    return training(params, optax.adamw(1e-4), jax.value_and_grad(loss), [S((batch, length), jnp.int32)] * 2, devices, where, P())
