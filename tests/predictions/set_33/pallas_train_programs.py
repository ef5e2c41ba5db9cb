"""JAX alone: ModernBERT large, packed documents, its attention by the splash kernel with segments (one layer of three sees all, two a window); groups of three scanned; masked words; data parallel."""

import jax
import jax.numpy as jnp
import optax
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as K, splash_attention_mask as M
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def turn(a):  # [batch, heads, time, size]
    half = a.shape[-1] // 2
    angle = jnp.arange(a.shape[2])[:, None] * 160000.0 ** (-jnp.arange(half) / half)
    s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
    return jnp.concatenate([x * c - y * s, y * c + x * s], -1)


def norm(x, scale):
    y = x.astype(jnp.float32)
    y = y - y.mean(-1, keepdims=True)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5)).astype(HALF) * scale.astype(HALF)


def modernbert(topology, chips, batch, length=4096, words=50368, width=1024, heads=16, hidden=2624, groups=9, window=64, remat=False, chunks=1, zero=False, donate=True):
    devices, size = mesh(topology, (chips,), ("data",)), width // heads
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    layer_of = lambda *n: {"Wqkv": F(*n, width, 3 * width), "Wo": F(*n, width, width), "Wi": F(*n, width, 2 * hidden), "mlp_Wo": F(*n, hidden, width), "attn_norm": F(*n, width), "mlp_norm": F(*n, width)}
    params = {"tok_embeddings": F(words, width), "embed_norm": F(width), "first": layer_of(), "layers": layer_of(groups, 3), "head": F(width, width), "head_norm": F(width), "final_norm": F(width), "decoder_bias": F(words)}
    transform = optax.adamw(5e-4, b2=0.98, weight_decay=1e-5)
    opt = following(jax.eval_shape(transform.init, params), params, whole)
    if zero:
        opt = placed(opt, largest_dimension(devices, "data"))
    full = lambda: M.FullMask((length, length))
    near = lambda: M.LocalMask((length, length), (window, window), 0)
    kernels = [K.make_splash_mha(M.MultiHeadMask([m() for _ in range(heads)]), head_shards=1, q_seq_shards=1) for m in (full, near)]

    def attend(kernel):
        one = jax.vmap(lambda q, k, v, s: kernel(q, k, v, segment_ids=K.SegmentIds(s, s)))
        return jax.shard_map(one, mesh=devices, in_specs=P("data"), out_specs=P("data"), check_vma=False)

    def layer(local):
        def run(x, w, segments):
            h = norm(x, w["attn_norm"]) @ w["Wqkv"].astype(HALF)
            q, k, v = (a.reshape(*a.shape[:2], heads, size).swapaxes(1, 2) for a in jnp.split(h, 3, -1))
            o = attend(kernels[local])(turn(q) * HALF(size**-0.5), turn(k), v, segments)
            x = x + o.swapaxes(1, 2).reshape(x.shape) @ w["Wo"].astype(HALF)
            up, gate = jnp.split(norm(x, w["mlp_norm"]) @ w["Wi"].astype(HALF), 2, -1)
            return x + (jax.nn.gelu(up) * gate) @ w["mlp_Wo"].astype(HALF)

        return jax.checkpoint(run) if remat else run

    def loss_fn(params, batch):
        segments = batch["segments"]
        x = norm(params["tok_embeddings"].astype(HALF)[batch["tokens"]], params["embed_norm"])
        x = layer(0)(x, params["first"], segments)

        def group(x, w):
            for i, local in enumerate((1, 1, 0)):
                x = layer(local)(x, jax.tree.map(lambda a: a[i], w), segments)
            return x, None

        x, _ = jax.lax.scan(group, x, params["layers"])
        x = norm(jax.nn.gelu(norm(x, params["final_norm"]) @ params["head"].astype(HALF)), params["head_norm"])

        def piece(x, labels):
            logits = (x @ params["tok_embeddings"].T.astype(HALF)).astype(jnp.float32) + params["decoder_bias"]
            each = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(labels, 0))
            return jnp.where(labels >= 0, each, 0.0).sum()

        labels = batch["labels"]
        if chunks == 1:
            total = piece(x, labels)
        else:
            parts = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
            total = jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, (parts(x), parts(labels)))[0]
        return total / (labels >= 0).sum()

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(train_step, (params, opt, {"tokens": S(), "segments": S(), "labels": S()}), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
