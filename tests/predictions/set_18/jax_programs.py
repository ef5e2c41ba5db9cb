"""JAX alone: Ulysses sequence parallelism by all_to_all; decoding with a latent cache (MLA); ZeRO 3 written by hand inside shard_map; a two-tower recommender."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, following, gradients, kind_of_step, rms, shardings, training_step
from recipe import Program, largest_dimension, mesh, placed


def ulysses(topology, shape, batch, length, depth, width, heads, hidden, vocabulary, kernel=None, remat=False, chunks=1, donate=True):
    """The sequence is divided; for attention all_to_all exchanges it with the heads. Weights divided over every device."""
    devices = mesh(topology, shape, ("data", "seq"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    size, cut = width // heads, ("data", "seq")
    F = lambda *s, where=(): jax.ShapeDtypeStruct(s, "float32", sharding=on(*where))
    blocks = {"norm1": F(depth, width), "norm2": F(depth, width), "qkv": F(depth, width, 3, heads, size, where=(None, cut)),
              "out": F(depth, heads, size, width, where=(None, None, None, cut)), "gate": F(depth, width, hidden, where=(None, cut)),
              "up": F(depth, width, hidden, where=(None, cut)), "down": F(depth, hidden, width, where=(None, None, cut))}
    params = {"embed": F(vocabulary, width, where=(None, cut)), "blocks": blocks, "norm": F(width), "head": F(width, vocabulary, where=(cut,))}
    transform = optax.adamw(1e-4)
    state = following(jax.eval_shape(transform.init, params), params, on())

    def attend(q, k, v):
        there = functools.partial(jax.lax.all_to_all, axis_name="seq", split_axis=2, concat_axis=1, tiled=True)
        out = (flash if kernel == "flash" else causal)(there(q), there(k), there(v))
        return jax.lax.all_to_all(out, "seq", split_axis=1, concat_axis=2, tiled=True)

    spec = P("data", "seq")
    attention = jax.shard_map(attend, mesh=devices, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)

    def block(x, w):
        x = jax.lax.with_sharding_constraint(x, on("data", "seq"))
        qkv = jnp.einsum("btd,dnhk->nbthk", rms(x, w["norm1"]), w["qkv"].astype(HALF))
        x = x + jnp.einsum("bthk,hkd->btd", attention(*qkv), w["out"].astype(HALF))
        h = rms(x, w["norm2"])
        return x + (jax.nn.silu(h @ w["gate"].astype(HALF)) * (h @ w["up"].astype(HALF))) @ w["down"].astype(HALF), None

    body = jax.checkpoint(block) if remat else block

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(HALF)[tokens], on("data", "seq"))
        x, _ = jax.lax.scan(body, x, params["blocks"])
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    update = training_step(jax.value_and_grad(loss_fn), transform)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("data", "seq"))
    return Program(update, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def mla_decode(topology, chips, batch, length, depth=27, width=2048, heads=16, rank=512, rope=64, head=128, hidden=10944, vocabulary=102400,
               cache_type="bfloat16", shard=False, donate=False, carry=False):
    """One token for every sequence, widths of DeepSeek V2 Lite without experts; the scan over layers takes and gives the latent cache."""
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "bfloat16")
    params = {"embed": F(vocabulary, width), "head": F(width, vocabulary), "norm": F(width), "layers": {
        "norm1": F(depth, width), "norm2": F(depth, width), "q": F(depth, width, heads, head + rope), "down": F(depth, width, rank + rope),
        "up_k": F(depth, rank, heads, head), "up_v": F(depth, rank, heads, head), "o": F(depth, heads, head, width),
        "gate": F(depth, width, hidden), "up": F(depth, width, hidden), "mlp_out": F(depth, hidden, width)}}
    params = placed(params, largest_dimension(devices, "batch", 1 << 16) if shard else whole)
    cache = jax.ShapeDtypeStruct((depth, batch, length, rank + rope), cache_type, sharding=NamedSharding(devices, P(None, "batch")))

    def decode_step(params, cache, tokens, position):
        x = params["embed"][tokens]
        rows = jnp.arange(tokens.shape[0])

        def layer(x, given):
            w, latent = given
            h = rms(x, w["norm1"])
            q = jnp.einsum("bd,dhk->bhk", h, w["q"])
            new = (h @ w["down"]).astype(latent.dtype)
            latent = latent.at[rows, position].set(new)
            seen = latent.astype(HALF)
            q = jnp.concatenate([jnp.einsum("bhk,rhk->bhr", q[..., :head], w["up_k"]), q[..., head:]], -1)
            scores = jnp.einsum("bhr,btr->bht", q, seen).astype(jnp.float32) * (head + rope) ** -0.5
            scores = jnp.where(jnp.arange(length)[None, None] <= position[:, None, None], scores, -1e30)
            mixed = jnp.einsum("bht,btr->bhr", jax.nn.softmax(scores).astype(HALF), seen[..., :rank])
            x = x + jnp.einsum("bhr,rhk,hkd->bd", mixed, w["up_v"], w["o"])
            h = rms(x, w["norm2"])
            return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["mlp_out"], latent

        if carry:
            def one(given, w):
                x, cache, i = given
                x, latent = layer(x, (w, jax.lax.dynamic_index_in_dim(cache, i, 0, False)))
                return (x, jax.lax.dynamic_update_index_in_dim(cache, latent, i, 0), i + 1), None

            (x, cache, _), _ = jax.lax.scan(one, (x, cache, 0), params["layers"])
        else:
            x, cache = jax.lax.scan(layer, x, (params["layers"], cache))
        logits = (rms(x, params["norm"]) @ params["head"]).astype(jnp.float32)
        return cache, logits.argmax(-1), position + 1

    I = jax.ShapeDtypeStruct((batch,), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = (cache.sharding, split, split)
    return Program(decode_step, (params, cache, I, I), classify, (1,) if donate else (), outs)


def zero3(topology, chips, batch, length, depth, width, heads, hidden, vocabulary, remat=False, chunks=1, micro=1, donate=True):
    """Every weight is flat and divided; a layer gathers its own inside shard_map. Attention by the flash kernel."""
    devices = mesh(topology, (chips,), ("fsdp",))
    size = width // heads
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda *s, where=(): jax.ShapeDtypeStruct(s, "float32", sharding=on(*where))
    layers = {"qkv": F(depth, width, 3 * width, where=(None, "fsdp")), "out": F(depth, width, width, where=(None, "fsdp")),
              "gate": F(depth, width, hidden, where=(None, "fsdp")), "up": F(depth, width, hidden, where=(None, "fsdp")),
              "down": F(depth, hidden, width, where=(None, "fsdp")), "norm1": F(depth, width), "norm2": F(depth, width)}
    params = {"embed": F(vocabulary, width, where=("fsdp",)), "head": F(width, vocabulary, where=("fsdp",)), "norm": F(width), "layers": layers}
    transform = optax.adamw(3e-4)
    state = following(jax.eval_shape(transform.init, params), params, on())
    specs = jax.tree.map(lambda a: a.sharding.spec, params)
    gather = lambda a: jax.lax.all_gather(a.astype(HALF), "fsdp", axis=0, tiled=True)

    def layer(x, w):
        b, t, _ = x.shape
        q, k, v = jnp.split(rms(x, w["norm1"]) @ gather(w["qkv"]), 3, -1)
        heads_of = lambda a: a.reshape(b, t, heads, size)
        x = x + flash(heads_of(q), heads_of(k), heads_of(v)).reshape(b, t, width) @ gather(w["out"])
        h = rms(x, w["norm2"])
        return x + (jax.nn.silu(h @ gather(w["gate"])) * (h @ gather(w["up"]))) @ gather(w["down"]), None

    body = jax.checkpoint(layer) if remat else layer

    def local(params, tokens):
        def loss_fn(params, tokens):
            x = gather(params["embed"])[tokens]
            x, _ = jax.lax.scan(body, x, params["layers"])
            return entropy(rms(x, params["norm"]), gather(params["head"]), jnp.roll(tokens, -1, 1), chunks) / chips

        if micro == 1:
            loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        else:
            def one(total, part):
                loss, grads = jax.value_and_grad(loss_fn)(params, part)
                return jax.tree.map(jnp.add, total, grads), loss

            grads, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), tokens.reshape(micro, -1, length))
            loss = losses.mean()
        grads = jax.tree.map(lambda g, s: g if "fsdp" in s else jax.lax.psum(g, "fsdp"), grads, specs)
        return jax.lax.psum(loss, "fsdp"), grads

    both = jax.shard_map(local, mesh=devices, in_specs=(specs, P("fsdp")), out_specs=(P(), specs), check_vma=False)
    update = training_step(both, transform, "zero3_step")
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("fsdp"))
    return Program(update, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def two_tower(topology, chips, batch, users=4_000_000, items=1_000_000, width=64, hidden=1024, history=50, table_type="float32", shard=False, chunks=1, donate=True):
    """Retrieval: a user's id and the items it has seen against the batch's items (in-batch softmax over the whole batch); Adagrad on dense tables."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s, d="float32": jax.ShapeDtypeStruct(s, d)
    params = {"tables": {"user": F(users, width, d=table_type), "item": F(items, width, d=table_type)},
              "query": {"w1": F(2 * width, hidden), "w2": F(hidden, hidden), "w3": F(hidden, 256)},
              "candidate": {"w1": F(width, hidden), "w2": F(hidden, hidden), "w3": F(hidden, 256)}}
    rows = lambda path, leaf: NamedSharding(devices, P("data")) if shard and "table" in path and leaf.ndim == 2 and leaf.shape[0] > 100000 else whole
    transform = optax.adagrad(0.05)
    state = placed(jax.eval_shape(transform.init, params), rows)
    params = placed(params, rows)

    def tower(x, w):
        return jax.nn.relu(jax.nn.relu(x @ w["w1"]) @ w["w2"]) @ w["w3"]

    def loss_fn(params, user, seen, item):
        t = params["tables"]
        past = t["item"][seen].astype(jnp.float32).mean(1)
        query = tower(jnp.concatenate([t["user"][user].astype(jnp.float32), past], -1), params["query"])
        candidate = tower(t["item"][item].astype(jnp.float32), params["candidate"])
        labels = jnp.arange(batch)

        def piece(query, labels):
            return optax.softmax_cross_entropy_with_integer_labels(query @ candidate.T * 20, labels).sum()

        if chunks == 1:
            return piece(query, labels) / batch
        parts = lambda a: jax.lax.with_sharding_constraint(a.reshape(chips, chunks, -1, *a.shape[1:]).swapaxes(0, 1), NamedSharding(devices, P(None, "data")))
        one = jax.checkpoint(lambda total, xs: (total + piece(xs[0].reshape(-1, 256), xs[1].reshape(-1)), None))
        return jax.lax.scan(one, 0.0, (parts(query), parts(labels)))[0] / batch

    def train_step(params, opt_state, user, seen, item):
        loss, grads = jax.value_and_grad(loss_fn)(params, user, seen, item)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    I = lambda *s: jax.ShapeDtypeStruct(s, "int32", sharding=split)
    outs = (shardings(params), shardings(state), None)
    return Program(train_step, (params, state, I(batch), I(batch, history), I(batch)), kind_of_step, (0, 1) if donate else (), outs)
