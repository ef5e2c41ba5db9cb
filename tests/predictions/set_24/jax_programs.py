"""JAX alone: serving with JAX's ragged paged attention kernel (a Llama 3.1 8B by tensor parallelism); a Llama-like decoder, layers in a Python loop, FSDP, with dropout-free attention; JAX's splash attention comes from scanned_decoder."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed
from scanned_decoder import decoder  # noqa: F401


def ragged(topology, chips, tokens, seqs, pages, page=32, per_seq=128, depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336, words=128256, donate=True):
    """One step of a server: `tokens` rows, prefilled and decoded together."""
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

    devices = mesh(topology, (chips,), ("model",))
    sd = lambda s, d, *p: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*p)))
    H = "bfloat16"
    layer = lambda: dict(
        q_proj=sd((width, heads, size), H, None, "model"), kv_proj=sd((width, kv, 2, size), H, None, "model"), o_proj=sd((heads, size, width), H, "model"),
        gate_proj=sd((width, hidden), H, None, "model"), up_proj=sd((width, hidden), H, None, "model"), down_proj=sd((hidden, width), H, "model"),
        input_norm=sd((width,), H), post_norm=sd((width,), H))
    params = dict(embed=sd((words, width), H, "model"), norm=sd((width,), H), lm_head=sd((width, words), H, None, "model"), layers=[layer() for _ in range(depth)])
    caches = [sd((pages, page, 2 * kv, size), H, None, None, "model") for _ in range(depth)]
    meta = dict(kv_lens=sd((seqs,), "int32"), block_tables=sd((seqs, per_seq), "int32"), query_start=sd((seqs + 1,), "int32"), num_seqs=sd((1,), "int32"), slots=sd((tokens,), "int32"))
    attend = jax.shard_map(
        lambda q, c, n, i, u, k: ragged_paged_attention(q, c, n, i, u, k, sm_scale=size**-0.5, num_kv_pages_per_block=16, num_queries_per_block=32), mesh=devices,
        in_specs=(P(None, "model"), P(None, None, "model"), P(), P(), P(), P()), out_specs=P(None, "model"), check_vma=False)

    def model_step(params, kv_caches, input_ids, meta):
        x, out = params["embed"][input_ids], []
        for w, c in zip(params["layers"], kv_caches):
            h = rms(x, w["input_norm"])
            q = jnp.einsum("sd,dhk->shk", h, w["q_proj"])
            new = jnp.einsum("sd,dnjk->snjk", h, w["kv_proj"]).reshape(tokens, 2 * kv, size)
            c = c.at[meta["slots"] // page, meta["slots"] % page].set(new)
            out.append(c)
            o = attend(q, c, meta["kv_lens"], meta["block_tables"], meta["query_start"], meta["num_seqs"])
            x = x + jnp.einsum("shk,hkd->sd", o.astype(HALF), w["o_proj"])
            h = rms(x, w["post_norm"])
            x = x + (jax.nn.silu(h @ w["gate_proj"]) * (h @ w["up_proj"])) @ w["down_proj"]
        last = rms(x, params["norm"])[meta["query_start"][1:] - 1]
        return jnp.argmax(last @ params["lm_head"], -1).astype(jnp.int32), out

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    outs = (None, [c.sharding for c in caches])
    return Program(model_step, (params, caches, sd((tokens,), "int32"), meta), classify, (1,) if donate else (), outs)


def loop(topology, chips, batch, length=2048, words=32000, depth=22, width=2048, heads=32, kv=4, hidden=5632, remat=0, policy=None, kernel=False, chunks=1, micro=1, donate=True):
    """TinyLlama 1.1B, fully sharded by its largest dimensions; causal attention with whole scores or JAX's flash attention."""
    devices, size = mesh(topology, (chips,), ("fsdp",)), width // heads
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    one = lambda: {"attn": {"wq": F(width, heads, size), "wk": F(width, kv, size), "wv": F(width, kv, size), "wo": F(heads, size, width), "norm": F(width)},
                   "mlp": {"w1": F(width, hidden), "w2": F(hidden, width), "w3": F(width, hidden), "norm": F(width)}}
    params = {"tok_embeddings": F(words, width), "layers": [one() for _ in range(depth)], "norm": F(width), "output": F(width, words)}
    params = placed(params, largest_dimension(devices, "fsdp"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(4e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    on = lambda a: jax.lax.with_sharding_constraint(a, NamedSharding(devices, P("fsdp")))
    attend = jax.shard_map(flash, mesh=devices, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False) if kernel else causal

    def attention(x, w):
        h = rms(x, w["norm"])
        q, k, v = (jnp.einsum("btd,dhk->bthk", h, w[n].astype(HALF)) for n in ("wq", "wk", "wv"))
        k, v = (jnp.repeat(a, heads // kv, 2) for a in (k, v))
        return x + jnp.einsum("bthk,hkd->btd", attend(q, k, v), w["wo"].astype(HALF))

    def mlp(x, w):
        h = rms(x, w["norm"])
        return x + (jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF))) @ w["w2"].astype(HALF)

    def layer(x, w):
        with jax.named_scope("attention"):
            x = attention(x, w["attn"])
        with jax.named_scope("feed_forward"):
            return on(mlp(x, w["mlp"]))

    def loss_fn(params, tokens):
        x = on(params["tok_embeddings"].astype(HALF)[tokens[:, :-1]])
        for i, w in enumerate(params["layers"]):
            with jax.named_scope(f"layers_{i}"):
                x = (jax.checkpoint(layer) if i < remat else layer)(x, w)
        return entropy(rms(x, params["norm"]), params["output"], tokens[:, 1:], chunks)

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length + 1), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return Program(train_step, (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
