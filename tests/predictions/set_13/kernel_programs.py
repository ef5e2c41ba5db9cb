"""JAX's own attention: splash and flash kernels and `jax.nn.dot_product_attention` in a scan over layers, ragged paged attention while serving (the layers around them put together by us)."""
import jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from pieces import entropy, rms
from recipe import Program, mesh

HALF = jnp.bfloat16


def follow(tree, params, default):
    """An optimizer's state, placed as the parameters whose path ends its own."""
    by_name = {jax.tree_util.keystr(p): a for p, a in jax.tree_util.tree_flatten_with_path(params)[0]}

    def one(path, a):
        found = next((s for q, s in by_name.items() if jax.tree_util.keystr(path).endswith(q) and s.shape == a.shape), None)
        return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=found.sharding if found is not None else default)

    return jax.tree_util.tree_map_with_path(one, tree)


def decoder(topology, chips, batch, length, depth, width, heads, kv, hidden, vocabulary, kernel, policy=None, optimizer="adamw", chunks=1, micro=1, donate=True, fsdp=True, block=None):
    """A Llama-like decoder, its layers scanned; `policy` is what jax.checkpoint of a layer saves."""
    m = mesh(topology, (chips,), ("fsdp",)); N = lambda *p: NamedSharding(m, P(*p)); size = width // heads
    F = "fsdp" if fsdp else None
    sd = lambda shape, *p: jax.ShapeDtypeStruct(shape, "float32", sharding=N(*p))
    params = {"embed": sd((vocabulary, width), None, F), "head": sd((width, vocabulary), F), "final_norm": sd((width,)), "layers": {
        "norm1": sd((depth, width)), "norm2": sd((depth, width)), "q": sd((depth, width, heads, size), None, F), "kv": sd((depth, width, 2, kv, size), None, F),
        "o": sd((depth, heads, size, width), None, None, None, F), "gate": sd((depth, width, hidden), None, F), "up": sd((depth, width, hidden), None, F), "down": sd((depth, hidden, width), None, None, F)}}
    tx = {"adamw": lambda: optax.adamw(1e-4), "lamb": lambda: optax.lamb(1e-3), "sgdm": lambda: optax.sgd(0.1, momentum=0.9)}[optimizer]()
    opt = follow(jax.eval_shape(tx.init, params), params, N())
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=N("fsdp"))

    if kernel == "splash":
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as K, splash_attention_mask as M
        made = K.make_splash_mqa(M.MultiHeadMask([M.CausalMask((length, length)) for _ in range(heads // kv)]), head_shards=1, q_seq_shards=1)
        def one(q, k, v):  # grouped: the queries of one key-value head together
            q = (q * size ** -0.5).reshape(q.shape[0], kv, heads // kv, *q.shape[2:])
            return jax.vmap(jax.vmap(made))(q, k, v).reshape(q.shape[0], heads, *q.shape[3:])
    elif kernel == "flash":
        from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
        one = lambda q, k, v: flash_attention(q, jnp.repeat(k, heads // kv, 1), jnp.repeat(v, heads // kv, 1), causal=True, sm_scale=size ** -0.5)
    else:
        one = None

    def attention(q, k, v):  # [batch, time, heads, size]
        if one is None:
            return jax.nn.dot_product_attention(q, k, v, is_causal=True)
        f = jax.shard_map(one, mesh=m, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False)
        return f(*[a.swapaxes(1, 2) for a in (q, k, v)]).swapaxes(1, 2)

    def layer(x, w):
        h = rms(x, w["norm1"])
        q = jnp.einsum("btd,dhk->bthk", h, w["q"].astype(HALF))
        k, v = jnp.moveaxis(jnp.einsum("btd,dnhk->btnhk", h, w["kv"].astype(HALF)), 2, 0)
        x = x + jnp.einsum("bthk,hkd->btd", attention(q, k, v), w["o"].astype(HALF))
        h = rms(x, w["norm2"])
        return x + (jax.nn.silu(h @ w["gate"].astype(HALF)) * (h @ w["up"].astype(HALF))) @ w["down"].astype(HALF), None

    body = jax.checkpoint(layer, policy=getattr(jax.checkpoint_policies, policy)) if policy else layer

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(HALF)[tokens], N("fsdp"))
        x, _ = jax.lax.scan(body, x, params["layers"])
        return entropy(rms(x, params["final_norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    def update(params, opt_state, tokens):
        if micro == 1:
            loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        else:
            parts = tokens.reshape(chips, micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
            parts = jax.lax.with_sharding_constraint(parts, N(None, "fsdp"))
            def step(total, part):
                loss, grads = jax.value_and_grad(loss_fn)(params, part)
                return jax.tree.map(jnp.add, total, grads), loss
            grads, losses = jax.lax.scan(step, jax.tree.map(jnp.zeros_like, params), parts)
            loss = losses.mean()
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    where = lambda t: jax.tree.map(lambda a: a.sharding, t)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(update, (params, opt, tokens), classify, (0, 1) if donate else (), (where(params), where(opt), None))


def serving(topology, tp, depth, width, heads, kv, size, hidden, pages, page, seqs, toks, vocabulary, cache="bfloat16", donate=False):
    """Layers as of a large Qwen 2.5 over jax's ragged_paged_attention; prefill and decode mixed."""
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
    m = mesh(topology, (tp,), ("model",)); sd = lambda s, d, *p: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(m, P(*p))); H = "bfloat16"
    layer = lambda: dict(q_proj=sd((width, heads, size), H, None, "model"), k_proj=sd((width, kv, size), H, None, "model"), v_proj=sd((width, kv, size), H, None, "model"), o_proj=sd((heads, size, width), H, "model"),
                         gate=sd((width, hidden), H, None, "model"), up=sd((width, hidden), H, None, "model"), down=sd((hidden, width), H, "model"), norm1=sd((width,), H), norm2=sd((width,), H))
    weights = dict(embed=sd((vocabulary, width), H, "model"), layers=[layer() for _ in range(depth)], lm_head=sd((width, vocabulary), H, None, "model"))
    caches = [sd((pages, page, 2 * kv, size), cache, None, None, "model") for _ in range(depth)]
    meta = dict(kv_lens=sd((seqs,), "int32"), page_indices=sd((seqs, pages // seqs), "int32"), cu_q_lens=sd((seqs + 1,), "int32"), num_seqs=sd((1,), "int32"), slot_mapping=sd((toks,), "int32"))
    scale = {} if cache == H else {"k_scale": 1.0, "v_scale": 1.0}
    attend = jax.shard_map(lambda q, c, a, b, d, e: ragged_paged_attention(q, c, a, b, d, e, sm_scale=size ** -0.5, num_kv_pages_per_block=4, num_queries_per_block=32, vmem_limit_bytes=48 << 20, **scale), mesh=m,
                           in_specs=(P(None, "model"), P(None, None, "model"), P(), P(), P(), P()), out_specs=P(None, "model"), check_vma=False)

    def step(weights, kv_caches, input_ids, metadata):
        x = weights["embed"][input_ids]; out = []
        for w, c in zip(weights["layers"], kv_caches):
            h = rms(x, w["norm1"])
            q, k, v = (jnp.einsum("td,dhk->thk", h, w[n]) for n in ("q_proj", "k_proj", "v_proj"))
            new = jnp.stack([k, v], 2).reshape(toks, 2 * kv, size).astype(c.dtype)
            c = c.reshape(-1, 2 * kv, size).at[metadata["slot_mapping"]].set(new).reshape(c.shape); out.append(c)
            x = x + jnp.einsum("thk,hkd->td", attend(q, c, *(metadata[n] for n in ("kv_lens", "page_indices", "cu_q_lens", "num_seqs"))), w["o_proj"])
            h = rms(x, w["norm2"]); x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
        last = x[metadata["cu_q_lens"][1:] - 1]
        return out, jnp.argmax(last @ weights["lm_head"], -1)

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    return Program(step, (weights, caches, sd((toks,), "int32"), meta), classify, (1,) if donate else ())
