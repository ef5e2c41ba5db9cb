"""JAX alone: AlphaZero for five in a row (15 by 15) on one chip: a move of every game by a search whose trees lie in arrays, a replay memory in the step, one update; a step of a server of Mistral 7B with a ring of the last 4096 places and forty LoRA adapters, tensor parallel; DLRM with dense Adagrad, data parallel."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def selfplay(topology, chips, games, searches=256, memory=1 << 22, side=15, width=128, depth=10, policies="float32", donate=True):
    devices = mesh(topology, (chips,), ("data",))
    on = NamedSharding(devices, P())
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on)
    moves, nodes = side * side, searches + 1
    F = lambda *s: A("float32", *s)
    params = {"first": F(3, 3, 2, width), "blocks": [{"conv1": F(3, 3, width, width), "shift1": F(width), "conv2": F(3, 3, width, width), "shift2": F(width)} for _ in range(depth)],
              "policy_conv": F(1, 1, width, 32), "policy": F(moves * 32, moves), "value1": F(moves * 32, 256), "value2": F(256, 1)}
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    opt = following(jax.eval_shape(transform.init, params), params, on)
    replay = {"boards": A("int8", memory, moves), "policies": A(policies, memory, moves), "values": A("float32", memory), "place": A("int32")}

    def network(params, boards):
        """Boards [rows, moves], 1 the mover's stones and -1 the other's: logits and the mover's value."""
        conv = lambda x, w: jax.lax.conv_general_dilated(x, w.astype(HALF), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jnp.stack([boards == 1, boards == -1], -1).astype(HALF).reshape(-1, side, side, 2)
        x = jax.nn.relu(conv(x, params["first"]))
        for b in params["blocks"]:
            y = jax.nn.relu(conv(x, b["conv1"]) + b["shift1"].astype(HALF))
            x = jax.nn.relu(x + conv(y, b["conv2"]) + b["shift2"].astype(HALF))
        x = jax.nn.relu(conv(x, params["policy_conv"])).reshape(x.shape[0], -1)
        value = jnp.tanh(jax.nn.relu(x @ params["value1"].astype(HALF)) @ params["value2"].astype(HALF))[:, 0]
        return (x @ params["policy"].astype(HALF)).astype(jnp.float32), value.astype(jnp.float32)

    def won(boards):
        """Whether the one who has just moved has five in a row."""
        x = (boards == -1).astype(HALF).reshape(-1, side, side, 1)
        line = jnp.arange(5)
        kernels = jnp.zeros((5, 5, 1, 4), HALF).at[2, line, 0, 0].set(1).at[line, 2, 0, 1].set(1).at[line, line, 0, 2].set(1).at[line, 4 - line, 0, 3].set(1)
        found = jax.lax.conv_general_dilated(x, kernels, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return (found > 4.5).any((1, 2, 3))

    def search(params, boards):
        g = jnp.arange(boards.shape[0])
        rows = boards.shape[0]

        def evaluated(boards):
            logits, value = network(params, boards)
            return jax.nn.softmax(jnp.where(boards == 0, logits, -1e9)), value

        prior, value = evaluated(boards)
        big = lambda d, fill: jnp.full((rows, nodes, moves), fill, d)
        tree = {"boards": big("int8", 0).at[:, 0].set(boards), "prior": big("float32", 0).at[:, 0].set(prior), "visits": big("float32", 0), "total": big("float32", 0), "child": big("int32", -1),
                "parent": jnp.full((rows, nodes), -1), "action": jnp.zeros((rows, nodes), "int32"), "over": jnp.zeros((rows, nodes), bool)}

        def best(tree, node):
            visits = tree["visits"][g, node]
            q = tree["total"][g, node] / jnp.maximum(visits, 1)
            bound = 1.5 * tree["prior"][g, node] * jnp.sqrt(visits.sum(-1, keepdims=True) + 1) / (1 + visits)
            return jnp.argmax(jnp.where(tree["boards"][g, node] == 0, q + bound, -1e9), -1)

        def one(i, tree):
            def down(state):
                node, action, going = state
                after = tree["child"][g, node, action]
                going = going & (after >= 0) & ~tree["over"][g, jnp.maximum(after, 0)]
                node = jnp.where(going, after, node)
                return node, jnp.where(going, best(tree, node), action), going

            root = jnp.zeros(rows, "int32")
            node, action, _ = jax.lax.while_loop(lambda s: s[2].any(), down, (root, best(tree, root), jnp.ones(rows, bool)))
            board = -tree["boards"][g, node].at[g, action].set(1)
            prior, value = evaluated(board)
            done = won(board)
            value = jnp.where(done, -1.0, value)
            tree = tree | {
                "boards": tree["boards"].at[:, i].set(board), "prior": tree["prior"].at[:, i].set(prior), "child": tree["child"].at[g, node, action].set(i),
                "parent": tree["parent"].at[:, i].set(node), "action": tree["action"].at[:, i].set(action), "over": tree["over"].at[:, i].set(done)}

            def up(state):
                visits, total, node, action, value, going = state
                visits = visits.at[g, node, action].add(jnp.where(going, 1.0, 0.0))
                total = total.at[g, node, action].add(jnp.where(going, -value, 0.0))
                above = tree["parent"][g, node]
                return visits, total, jnp.maximum(above, 0), tree["action"][g, node], -value, going & (above >= 0)

            visits, total, *_ = jax.lax.while_loop(lambda s: s[5].any(), up, (tree["visits"], tree["total"], node, action, value, jnp.ones(rows, bool)))
            return tree | {"visits": visits, "total": total}

        tree = jax.lax.fori_loop(1, nodes, one, tree)
        visits = tree["visits"][:, 0]
        return visits / visits.sum(-1, keepdims=True), tree["total"][:, 0].sum(-1) / visits.sum(-1)

    def selfplay_step(params, opt_state, replay, boards, seed):
        policy, value = search(params, boards)
        k1, k2 = jax.random.split(jax.random.key(seed))
        place = replay["place"]
        replay = {
            "boards": jax.lax.dynamic_update_slice(replay["boards"], boards, (place, 0)), "policies": jax.lax.dynamic_update_slice(replay["policies"], policy.astype(policies), (place, 0)),
            "values": jax.lax.dynamic_update_slice(replay["values"], value, (place,)), "place": (place + boards.shape[0]) % memory}
        move = jax.random.categorical(k1, jnp.log(policy + 1e-9))
        after = -boards.at[jnp.arange(boards.shape[0]), move].set(1)
        ended = won(after) | (after != 0).all(-1)
        rows = jax.random.randint(k2, (boards.shape[0],), 0, memory)
        seen = {n: replay[n][rows] for n in ("boards", "policies", "values")}

        def loss_fn(params):
            logits, value = network(params, seen["boards"])
            named = -(seen["policies"].astype(jnp.float32) * jax.nn.log_softmax(logits)).sum(-1)
            return (named + jnp.square(value - seen["values"])).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, replay, jnp.where(ended[:, None], 0, after), loss

    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[4]": "input"}.get(path[:3], "other")
    args = (params, opt, replay, A("int8", games, moves), A("int32"))
    return Program(selfplay_step, args, classify, (0, 1, 2, 3) if donate else (), None)


def adapters(topology, chips, slots, count=40, rank=16, window=4096, words=32000, depth=32, width=4096, heads=32, kv=8, size=128, hidden=14336, kept="bfloat16", donate=True):
    devices = mesh(topology, (chips,), ("model",))
    A = lambda d, s, *spec: jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(devices, P(*spec)))
    W = lambda s, *spec: A("bfloat16", s, *spec)
    layers = {"wq": W((depth, width, heads * size), None, None, "model"), "wk": W((depth, width, kv * size), None, None, "model"), "wv": W((depth, width, kv * size), None, None, "model"), "wo": W((depth, heads * size, width), None, "model"),
              "gate": W((depth, width, hidden), None, None, "model"), "up": W((depth, width, hidden), None, None, "model"), "down": W((depth, hidden, width), None, "model"), "norm1": W((depth, width)), "norm2": W((depth, width))}
    params = {"embed": W((words, width), "model"), "head": W((width, words), None, "model"), "norm": W((width,)), "layers": layers}
    lora = {}
    for n, out in (("q", heads * size), ("k", kv * size), ("v", kv * size)):
        lora[n] = {"a": W((depth, count, rank, width)), "b": W((depth, count, rank, out), None, None, None, "model")}
    lora["o"] = {"a": W((depth, count, rank, heads * size), None, None, None, "model"), "b": W((depth, count, rank, width))}
    cache = {n: A(kept, (depth, slots, kv, window, size), None, None, "model") for n in ("keys", "values")}

    def put(a):
        return jnp.clip(jnp.round(a * 16), -127, 127).astype(kept) if kept == "int8" else a.astype(kept)

    def got(a):
        return a.astype(HALF) / 16 if kept == "int8" else a.astype(HALF)

    def turn(a, where):
        angle = where[:, None, None] * 10000.0 ** (-jnp.arange(size // 2) / (size // 2))
        s, c, (x, y) = jnp.sin(angle).astype(HALF), jnp.cos(angle).astype(HALF), jnp.split(a, 2, -1)
        return jnp.concatenate([x * c - y * s, y * c + x * s], -1)

    def decode_step(params, lora, cache, tokens, where, adapter):
        rows = jnp.arange(slots)
        there = jnp.arange(window) <= where[:, None]  # all of the ring once it is full

        def on(x, w, l):
            a, b = l["a"][adapter], l["b"][adapter]
            return x @ w + jnp.einsum("sr,sro->so", jnp.einsum("sd,srd->sr", x, a), b)

        def layer(carry, xs):
            x, cache = carry
            i, w, l = xs
            h = rms(x, w["norm1"])
            q, k, v = (on(h, w[f"w{n}"], l[n]).reshape(slots, -1, size) for n in "qkv")
            new = {"keys": put(turn(k, where)), "values": put(v)}
            cache = {n: cache[n].at[i, rows, :, where % window].set(new[n]) for n in cache}
            q = turn(q, where).reshape(slots, kv, heads // kv, size)
            s = jnp.einsum("shgd,shcd->shgc", q, got(cache["keys"][i])).astype(jnp.float32) * size**-0.5
            p = jax.nn.softmax(jnp.where(there[:, None, None], s, -1e30)).astype(HALF)
            o = jnp.einsum("shgc,shcd->shgd", p, got(cache["values"][i])).reshape(slots, heads * size)
            x = x + on(o, w["wo"], l["o"])
            h = rms(x, w["norm2"])
            return (x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], cache), None

        (x, cache), _ = jax.lax.scan(layer, (params["embed"][tokens], cache), (jnp.arange(depth), params["layers"], lora))
        logits = (rms(x, params["norm"]) @ params["head"]).astype(jnp.float32)
        return cache, jnp.argmax(logits, -1).astype(jnp.int32), where + 1

    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "cache"}.get(path[:3], "input")
    S = lambda: A("int32", (slots,))
    return Program(decode_step, (params, lora, cache, S(), S(), S()), classify, (2,) if donate else (), (shardings(cache), None, None))


CRITEO = (39884407, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532952, 2953546, 403346, 10, 2208, 11938, 155, 4, 976, 14, 39979772, 25641295, 39664985, 585935, 12972, 108, 36)


def dlrm(topology, chips, batch, most=2500000, width=128, zero=False, fsdp=False, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    rows = [min(-(-n // 64) * 64, most) for n in CRITEO]
    mlp = lambda *sizes: [{"w": F(a, b), "b": F(b)} for a, b in zip(sizes, sizes[1:])]
    pairs = 27 * 26 // 2
    params = {"tables": [F(n, width) for n in rows], "bottom": mlp(13, 512, 256, width), "top": mlp(pairs + width, 1024, 1024, 512, 256, 1)}
    if fsdp:
        params = placed(params, largest_dimension(devices, "data", 1 << 16))
    transform = optax.adagrad(0.005)
    opt = following(jax.eval_shape(transform.init, params), params, whole)
    if zero:
        opt = placed(opt, largest_dimension(devices, "data", 1 << 16))

    def through(layers, x, last):
        for i, l in enumerate(layers):
            x = x @ l["w"] + l["b"]
            x = x if last and i == len(layers) - 1 else jax.nn.relu(x)
        return x

    def loss_fn(params, data):
        dense = through(params["bottom"], jnp.log1p(data["numbers"]), False)
        found = [jnp.take(t, data["kinds"][:, i], 0) for i, t in enumerate(params["tables"])]
        x = jnp.stack([dense, *found], 1)
        x = jax.lax.with_sharding_constraint(x, split)
        i, j = jnp.tril_indices(27, -1)
        x = jnp.concatenate([dense, jnp.einsum("bid,bjd->bij", x, x)[:, i, j]], -1)
        return optax.sigmoid_binary_cross_entropy(through(params["top"], x, True)[:, 0], data["clicked"]).mean()

    def train_step(params, opt_state, data):
        loss, grads = jax.value_and_grad(loss_fn)(params, data)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    data = {"numbers": S("float32", 13), "kinds": S("int32", 26), "clicked": S("float32")}
    return Program(train_step, (params, opt, data), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
