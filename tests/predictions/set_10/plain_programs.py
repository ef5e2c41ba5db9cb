"""JAX and Optax alone: a scanned decoder, a mixture of experts, low-rank adapters, a network over volumes."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, rms
from recipe import Program, largest_dimension, mesh, placed

S = jax.ShapeDtypeStruct


def training(params, transform, loss, data, devices, where, donate=True, frozen=None, batch_spec=P("data")):
    split = NamedSharding(devices, batch_spec)
    params = placed(params, where)
    state = placed(jax.eval_shape(transform.init, params), where)

    if frozen is None:
        def update(params, opt_state, *batch):
            value, gradients = jax.value_and_grad(loss)(params, *batch)
            updates, opt_state = transform.update(gradients, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, value

        args = (params, state, *[placed(x, split) for x in data])
        rule = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
        outs = (*[jax.tree.map(lambda a: a.sharding, x) for x in (params, state)], None)
        return Program(update, args, rule, (0, 1) if donate else (), outs)

    def update(base, params, opt_state, *batch):
        value, gradients = jax.value_and_grad(loss)(params, base, *batch)
        updates, opt_state = transform.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    args = (placed(frozen, where), params, state, *[placed(x, split) for x in data])
    rule = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(update, args, rule, (1, 2) if donate else ())


def scanned(topology, chips, batch, length, depth, width, heads, vocabulary, remat=False, chunks=1, sharded=False):
    devices = mesh(topology, (chips,), ("data",))
    size = width // heads
    f = lambda *shape: S(shape, jnp.float32)
    params = {"wte": f(vocabulary, width), "unembed": f(width, vocabulary), "block": {
        "attn_norm": f(depth, width), "mlp_norm": f(depth, width), "wqkv": f(depth, width, 3, heads, size),
        "wo": f(depth, heads, size, width), "w1": f(depth, width, 4 * width), "w2": f(depth, 4 * width, width)}}
    where = largest_dimension(devices, "data") if sharded else NamedSharding(devices, P())
    rows = NamedSharding(devices, P("data"))

    def body(x, w):
        y = rms(x, w["attn_norm"])
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", y, w["wqkv"].astype(HALF)), 2, 0)
        x = x + jnp.einsum("bthk,hkd->btd", causal(q, k, v), w["wo"].astype(HALF))
        y = jax.nn.gelu(rms(x, w["mlp_norm"]) @ w["w1"].astype(HALF))
        return jax.lax.with_sharding_constraint(x + y @ w["w2"].astype(HALF), rows), None

    def loss(params, tokens, labels):
        x = jax.lax.with_sharding_constraint(params["wte"].astype(HALF)[tokens], rows)
        x, _ = jax.lax.scan(jax.checkpoint(body) if remat else body, x, params["block"])
        return entropy(x, params["unembed"], labels, chunks)

    return training(params, optax.adamw(1e-4), loss, [S((batch, length), jnp.int32)] * 2, devices, where)


def experts(topology, chips, batch, length, depth, width, heads, count, vocabulary, remat=None):
    """Every second layer routes each token to one of `count` experts, which are divided over the chips."""
    devices = mesh(topology, (chips,), ("data",))
    f = lambda *shape: S(shape, jnp.float32)
    layer = lambda moe: {"norm1": f(width), "norm2": f(width), "wqkv": f(width, 3, heads, width // heads), "wo": f(heads, width // heads, width),
        **({"router": f(width, count), "expert_in": f(count, width, 4 * width), "expert_out": f(count, 4 * width, width)} if moe
           else {"up": f(width, 4 * width), "down": f(4 * width, width)})}
    params = {"embedding": f(vocabulary, width), "layers": [layer(i % 2 == 1) for i in range(depth)]}
    rows, by_expert = NamedSharding(devices, P("data")), NamedSharding(devices, P("data"))
    where = lambda path, leaf: by_expert if "expert_" in path else NamedSharding(devices, P())

    def route(w, y):
        batch, time, _ = y.shape
        capacity = 2 * time // count
        chance = jax.nn.softmax((y @ w["router"].astype(HALF)).astype(jnp.float32))
        best = jax.nn.one_hot(chance.argmax(-1), count)
        place = (jnp.cumsum(best, 1) * best).astype(jnp.int32) - 1
        send = jax.nn.one_hot(place, capacity, dtype=HALF) * best[..., None].astype(HALF)
        sent = jnp.einsum("btec,btd->ebcd", send, y)
        sent = jax.lax.with_sharding_constraint(sent, by_expert)
        done = jax.nn.gelu(jnp.einsum("ebcd,edf->ebcf", sent, w["expert_in"].astype(HALF)))
        done = jnp.einsum("ebcf,efd->ebcd", done, w["expert_out"].astype(HALF))
        done = jax.lax.with_sharding_constraint(done, NamedSharding(devices, P(None, "data")))
        return jnp.einsum("btec,ebcd,bt->btd", send, done, chance.max(-1).astype(HALF))

    def one(w, x):
        y = rms(x, w["norm1"])
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", y, w["wqkv"].astype(HALF)), 2, 0)
        x = x + jnp.einsum("bthk,hkd->btd", causal(q, k, v), w["wo"].astype(HALF))
        y = rms(x, w["norm2"])
        y = route(w, y) if "router" in w else jax.nn.gelu(y @ w["up"].astype(HALF)) @ w["down"].astype(HALF)
        return jax.lax.with_sharding_constraint(x + y, rows)

    def loss(params, tokens, labels):
        x = jax.lax.with_sharding_constraint(params["embedding"].astype(HALF)[tokens], rows)
        for number, w in enumerate(params["layers"]):
            x = (jax.checkpoint(one) if remat == "all" else one)(w, x)
        return entropy(x, params["embedding"].T, labels, 1)

    return training(params, optax.adamw(1e-4), loss, [S((batch, length), jnp.int32)] * 2, devices, where)


def adapters(topology, batch, length, depth, width, heads, inner, vocabulary, rank=16, remat=0, chunks=1, kernel=False):
    """A frozen decoder in bfloat16 with low-rank adapters on every projection, on one chip."""
    devices = mesh(topology, (1,), ("data",))
    h = lambda *shape: S(shape, HALF)
    shapes = {"q_proj": (width, width), "k_proj": (width, width), "v_proj": (width, width), "o_proj": (width, width),
              "gate_proj": (width, inner), "up_proj": (width, inner), "down_proj": (inner, width)}
    base = {"embed_tokens": h(vocabulary, width), "lm_head": h(width, vocabulary),
            "layers": [{"input_norm": h(width), "post_norm": h(width), **{n: h(*s) for n, s in shapes.items()}} for _ in range(depth)]}
    lora = {"layers": [{n: {"a": S((s[0], rank), jnp.float32), "b": S((rank, s[1]), jnp.float32)} for n, s in shapes.items()} for _ in range(depth)]}

    def loss(lora, base, tokens, labels):
        x = base["embed_tokens"][tokens]

        def layer(x, w, l):
            project = lambda y, n: y @ w[n] + (y @ l[n]["a"].astype(HALF)) @ l[n]["b"].astype(HALF)
            y = rms(x, w["input_norm"])
            split = lambda n: project(y, n).reshape(*y.shape[:2], heads, -1)
            attended = (flash if kernel else causal)(split("q_proj"), split("k_proj"), split("v_proj"))
            x = x + project(attended.reshape(x.shape), "o_proj")
            y = rms(x, w["post_norm"])
            return x + project(jax.nn.silu(project(y, "gate_proj")) * project(y, "up_proj"), "down_proj")

        for number, (w, l) in enumerate(zip(base["layers"], lora["layers"])):
            x = (jax.checkpoint(layer) if number < remat else layer)(x, w, l)
        return entropy(x, base["lm_head"], labels, chunks)

    whole = NamedSharding(devices, P())
    return training(lora, optax.adamw(1e-4), loss, [S((batch, length), jnp.int32)] * 2, devices, whole, frozen=base)


def volumes(topology, chips, batch, size, channels, remat=False):
    """Residual blocks over volumes, three resolutions down and up, float32 weights, bfloat16 values."""
    devices = mesh(topology, (chips,), ("data",))
    f = lambda *shape: S(shape, jnp.float32)
    block = lambda i, o: {"conv1": f(3, 3, 3, i, o), "conv2": f(3, 3, 3, o, o), "skip": f(1, 1, 1, i, o), "scale": f(o)}
    c = channels
    params = {"stem": f(3, 3, 3, 4, c), "down": [block(c, c), block(c, 2 * c), block(2 * c, 4 * c)],
              "up": [block(6 * c, 2 * c), block(3 * c, c)], "head": f(1, 1, 1, c, 4)}

    def conv(x, w):
        return jax.lax.conv_general_dilated(x, w.astype(HALF), (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))

    def instance(x):
        y = x.astype(jnp.float32)
        mean, var = y.mean((1, 2, 3), keepdims=True), y.var((1, 2, 3), keepdims=True)
        return ((y - mean) * jax.lax.rsqrt(var + 1e-5)).astype(HALF)

    def residual(w, x):
        y = jax.nn.leaky_relu(instance(conv(x, w["conv1"])))
        return jax.nn.leaky_relu(instance(conv(y, w["conv2"])) * w["scale"].astype(HALF) + conv(x, w["skip"]))

    run = jax.checkpoint(residual) if remat else residual

    def half(x):
        b, d, h, w, ch = x.shape
        return x.reshape(b, d // 2, 2, h // 2, 2, w // 2, 2, ch).mean((2, 4, 6))

    def twice(x):
        for axis in (1, 2, 3):
            x = jnp.repeat(x, 2, axis)
        return x

    def loss(params, image, labels):
        x = conv(image.astype(HALF), params["stem"])
        a = run(params["down"][0], x)
        b = run(params["down"][1], half(a))
        x = run(params["down"][2], half(b))
        x = run(params["up"][0], jnp.concatenate([twice(x), b], -1))
        x = run(params["up"][1], jnp.concatenate([twice(x), a], -1))
        logits = conv(x, params["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    data = [S((batch, size, size, size, 4), jnp.float32), S((batch, size, size, size), jnp.int32)]
    return training(params, optax.adam(1e-3), loss, data, devices, NamedSharding(devices, P()))
