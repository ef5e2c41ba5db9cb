"""JAX alone: Falcon 3 3B trained by tensor parallelism (heads, hidden units and words divided, Megatron's way, by NamedSharding), layers in a list; Uni-Mol, a transformer over atoms whose scores of one layer are the bias of the next, layers in a list, data parallel."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, entropy, following, kind_of_step, rms, shardings, training_step, turned
from recipe import Program, mesh


def falcon3(topology, chips, batch, length=2048, words=131072, width=3072, heads=12, kv=4, size=256, hidden=9216, depth=22, chunks=1, remat=False, donate=True):
    devices = mesh(topology, (chips,), ("model",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    F = lambda shape, *spec: jax.ShapeDtypeStruct(shape, "float32", sharding=on(*spec))
    layer_weights = lambda: {
        "wq": F((width, heads, size), None, "model"), "wk": F((width, kv, size), None, "model"), "wv": F((width, kv, size), None, "model"), "wo": F((heads, size, width), "model"),
        "gate": F((width, hidden), None, "model"), "up": F((width, hidden), None, "model"), "down": F((hidden, width), "model"), "norm1": F((width,)), "norm2": F((width,))}
    params = {"embed": F((words, width), "model"), "head": F((width, words), None, "model"), "norm": F((width,)), "layers": [layer_weights() for _ in range(depth)]}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.95, weight_decay=0.1))
    opt = following(jax.eval_shape(transform.init, params), params, on())
    keep = lambda x, *spec: jax.lax.with_sharding_constraint(x, on(*spec))

    def layer(x, w):
        rows, time = x.shape[:2]
        h = rms(x, w["norm1"])
        q, k, v = (keep(jnp.einsum("btd,dhk->bthk", h, w[n].astype(HALF)), None, None, "model") for n in ("wq", "wk", "wv"))
        q, k = turned(q, 1000042.0).reshape(rows, time, kv, heads // kv, size), turned(k, 1000042.0)
        s = jnp.einsum("bqhgk,bchk->bhgqc", q, k).astype(jnp.float32) * size**-0.5
        p = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((time, time), bool)), s, -1e30)).astype(HALF)
        o = jnp.einsum("bhgqc,bchk->bqhgk", p, v).reshape(rows, time, heads, size)
        x = x + keep(jnp.einsum("bthk,hkd->btd", o, w["wo"].astype(HALF)))
        h = rms(x, w["norm2"])
        return x + keep(keep(jax.nn.silu(h @ w["gate"].astype(HALF)) * (h @ w["up"].astype(HALF)), None, None, "model") @ w["down"].astype(HALF))

    call = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, tokens):
        x = keep(params["embed"].astype(HALF)[tokens])
        for w in params["layers"]:
            x = call(x, w)
        return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)

    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=on())
    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))


def unimol(topology, chips, batch, atoms=128, width=512, heads=64, hidden=2048, depth=15, kinds=31, kernels=128, compute="float32", remat=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *shape: jax.ShapeDtypeStruct(shape, "float32", sharding=whole)
    norm = lambda n: {"scale": F(n), "shift": F(n)}
    lin = lambda a, b: {"w": F(a, b), "b": F(b)}
    layer_weights = lambda: {"norm1": norm(width), "qkv": lin(width, 3 * width), "out": lin(width, width), "norm2": norm(width), "up": lin(width, hidden), "down": lin(hidden, width)}
    params = {
        "embed": F(kinds, width), "norm": norm(width), "pair_scale": F(kinds * kinds), "pair_shift": F(kinds * kinds), "means": F(kernels), "widths": F(kernels), "pair1": lin(kernels, kernels), "pair2": lin(kernels, heads),
        "layers": [layer_weights() for _ in range(depth)], "last": norm(width), "pair_norm": norm(heads), "words1": lin(width, width), "words2": lin(width, kinds), "move1": lin(heads, heads), "move2": lin(heads, 1), "far1": lin(heads, heads), "far2": lin(heads, 1)}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, b2=0.99, weight_decay=1e-4))
    opt = following(jax.eval_shape(transform.init, params), params, whole)
    on = lambda p, x: x @ p["w"].astype(compute) + p["b"].astype(compute)

    def normed(p, x):
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return (y * p["scale"] + p["shift"]).astype(compute)

    def layer(x, pair, w, there):
        """x [batch, atoms, width], pair [batch, heads, atoms, atoms]."""
        q, k, v = jnp.split(on(w["qkv"], normed(w["norm1"], x)).reshape(*x.shape[:2], heads, -1), 3, -1)
        pair = pair + jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        p = jax.nn.softmax(jnp.where(there[:, None, None], pair, -1e9).astype(jnp.float32)).astype(compute)
        x = x + on(w["out"], jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(x.shape))
        return x + on(w["down"], jax.nn.gelu(on(w["up"], normed(w["norm2"], x)))), pair

    call = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, data):
        there = data["kinds"] != 0
        x = normed(params["norm"], params["embed"].astype(compute)[data["kinds"]])
        edge = data["kinds"][:, :, None] * kinds + data["kinds"][:, None]
        far = jnp.sqrt(jnp.square(data["places"][:, :, None] - data["places"][:, None]).sum(-1) + 1e-6)
        far = params["pair_scale"][edge] * far + params["pair_shift"][edge]
        bells = jnp.exp(-0.5 * jnp.square((far[..., None] - params["means"]) / (jnp.abs(params["widths"]) + 1e-2))).astype(compute)
        start = pair = on(params["pair2"], jax.nn.gelu(on(params["pair1"], bells))).transpose(0, 3, 1, 2)
        for w in params["layers"]:
            x, pair = call(x, pair, w, there)
        change = normed(params["pair_norm"], (pair - start).transpose(0, 2, 3, 1))
        logits = on(params["words2"], jax.nn.gelu(on(params["words1"], normed(params["last"], x)))).astype(jnp.float32)
        named = optax.softmax_cross_entropy_with_integer_labels(logits, data["true_kinds"])
        weight = on(params["move2"], jax.nn.gelu(on(params["move1"], change)))[..., 0].astype(jnp.float32)
        moved = data["places"] + ((data["places"][:, :, None] - data["places"][:, None]) * weight[..., None]).mean(2)
        guess = on(params["far2"], jax.nn.gelu(on(params["far1"], change)))[..., 0].astype(jnp.float32)
        true_far = jnp.sqrt(jnp.square(data["true_places"][:, :, None] - data["true_places"][:, None]).sum(-1) + 1e-6)
        both = there[:, :, None] & there[:, None]
        hidden_ = data["hidden"].astype(jnp.float32)
        return ((named + 5 * jnp.abs(moved - data["true_places"]).sum(-1)) * hidden_).sum() / hidden_.sum() + 10 * jnp.where(both, jnp.abs(guess - true_far), 0).mean()

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, atoms, *s), d, sharding=split)
    data = {"kinds": S("int32"), "places": S("float32", 3), "true_kinds": S("int32"), "true_places": S("float32", 3), "hidden": S("bool")}
    return Program(training_step(jax.value_and_grad(loss_fn), transform), (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
