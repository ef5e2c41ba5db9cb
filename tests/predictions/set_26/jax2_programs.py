"""JAX alone: a pipeline of stages side by side under vmap, microbatches shifted from stage to stage by a scan; distillation of Llama 3 8B into 1B on whole distributions."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, rms, shardings
from recipe import Program, mesh, placed

keep = jax.lax.with_sharding_constraint


def decoder_layer(x, w, heads, kv):
    h = rms(x, w["norm1"])
    lin = lambda n, count: (h @ w[n].astype(HALF)).reshape(*h.shape[:2], count, -1)
    x = x + jax.nn.dot_product_attention(lin("wq", heads), lin("wk", kv), lin("wv", kv), is_causal=True).reshape(*h.shape[:2], -1) @ w["wo"].astype(HALF)
    h = rms(x, w["norm2"])
    return x + (jax.nn.silu(h @ w["w1"].astype(HALF)) * (h @ w["w3"].astype(HALF))) @ w["w2"].astype(HALF)


def sizes(width, heads, kv, size, hidden):
    return {"wq": (width, heads * size), "wk": (width, kv * size), "wv": (width, kv * size), "wo": (heads * size, width), "w1": (width, hidden), "w3": (width, hidden), "w2": (hidden, width)}


def pipe(topology, shape, micro, batch, length=4096, depth=40, width=5120, heads=40, hidden=13824, words=32000, donate=True):
    """Llama 2 13B in stages; `micro` parts of `batch` sequences."""
    devices = mesh(topology, shape, ("stage", "data"))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    stages, each = devices.shape["stage"], depth // devices.shape["stage"]
    F = lambda s, *spec: jax.ShapeDtypeStruct(s, "float32", sharding=on(*spec))
    layers = {n: F((stages, each, *s), "stage", None, "data") for n, s in sizes(width, heads, heads, width // heads, hidden).items()}
    layers |= {n: F((stages, each, width), "stage") for n in ("norm1", "norm2")}
    params = {"embed": F((words, width), ("stage", "data")), "head": F((width, words), ("stage", "data")), "norm": F((width,)), "layers": layers}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.1))
    state = following(jax.eval_shape(transform.init, params), params, on())

    def stage(w, x):
        layer = jax.checkpoint(lambda x, w: (decoder_layer(x, w, heads, heads), None))
        return jax.lax.scan(layer, x, w)[0]

    def loss_fn(params, tokens):
        x = keep(params["embed"].astype(HALF)[tokens], on(None, "data"))
        first = keep(jnp.zeros((stages, batch, length, width), HALF), on("stage", "data"))

        def turn(carry, i):
            now, out = carry
            fresh = jax.lax.dynamic_index_in_dim(x, jnp.minimum(i, micro - 1), 0, keepdims=False)
            now = keep(jnp.roll(now, 1, 0).at[0].set(fresh), on("stage", "data"))
            now = keep(jax.vmap(stage)(params["layers"], now), on("stage", "data"))
            out = jax.lax.dynamic_update_index_in_dim(out, now[-1], jnp.maximum(i - stages + 1, 0), 0)
            return (now, keep(out, on(None, "data"))), None

        (_, out), _ = jax.lax.scan(turn, (first, jnp.zeros_like(x)), jnp.arange(micro + stages - 1))
        labels = jnp.roll(tokens, -1, -1)
        one = jax.checkpoint(lambda total, xs: (total + entropy(rms(xs[0], params["norm"]), params["head"], xs[1], 1), None))
        return jax.lax.scan(one, 0.0, (out, labels))[0] / micro

    def train_step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((micro, batch, length), "int32", sharding=on(None, "data"))
    return Program(train_step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def distil(topology, chips, batch, length=2048, words=128256, chunks=1, remat=True, donate=True):
    devices = mesh(topology, (chips,), ("fsdp",))
    on = lambda *spec: NamedSharding(devices, P(*spec))

    def model(kind, depth, width, heads, kv, size, hidden):
        S = lambda s, *spec: jax.ShapeDtypeStruct(s, kind, sharding=on(*spec))
        layers = {n: S((depth, *s), None, "fsdp") for n, s in sizes(width, heads, kv, size, hidden).items()} | {n: S((depth, width)) for n in ("norm1", "norm2")}
        return {"embed": S((words, width), "fsdp"), "head": S((width, words), "fsdp"), "norm": S((width,)), "layers": layers}

    student, teacher = model("float32", 16, 2048, 32, 8, 64, 8192), model("bfloat16", 32, 4096, 32, 8, 128, 14336)
    transform = optax.adamw(1e-4)
    state = following(jax.eval_shape(transform.init, student), student, on())

    def hidden_of(params, tokens, remat):
        layer = lambda x, w: (decoder_layer(x, w, 32, 8), None)
        x = keep(params["embed"].astype(HALF)[tokens], on("fsdp"))
        return rms(jax.lax.scan(jax.checkpoint(layer) if remat else layer, x, params["layers"])[0], params["norm"])

    def distill_step(student, teacher, opt_state, tokens):
        goal = jax.lax.stop_gradient(hidden_of(teacher, tokens, False))

        def loss_fn(student):
            x = hidden_of(student, tokens, remat)

            def piece(x, goal):
                mine = jax.nn.log_softmax((x @ student["head"].astype(HALF)).astype(jnp.float32))
                theirs = jax.nn.log_softmax((goal @ teacher["head"]).astype(jnp.float32))
                return (jnp.exp(theirs) * (theirs - mine)).sum()

            if chunks == 1:
                return piece(x, goal) / tokens.size
            parts = lambda a: a.reshape(a.shape[0], chunks, -1, a.shape[-1]).swapaxes(0, 1)
            return jax.lax.scan(jax.checkpoint(lambda total, xs: (total + piece(*xs), None)), 0.0, (parts(x), parts(goal)))[0] / tokens.size

        loss, grads = jax.value_and_grad(loss_fn)(student)
        updates, opt_state = transform.update(grads, opt_state, student)
        return optax.apply_updates(student, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on("fsdp"))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(distill_step, (student, teacher, state, tokens), classify, (0, 2) if donate else (), (shardings(student), shardings(state), None))
