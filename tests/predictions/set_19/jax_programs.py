"""JAX alone: NeRF by pmap, a physics-informed net by L-BFGS, generation with int8 weights, HSTU with Adagrad."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, flash, following, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def nerf(topology, chips, rays, coarse=64, fine=128, depth=8, width=256, half=False, remat=False, donate=True):
    """jaxnerf's training step, replicated by pmap: every argument has the devices as its first dimension."""
    devices = mesh(topology, (chips,), ("batch",))
    split = NamedSharding(devices, P("batch"))
    dtype = HALF if half else jnp.float32

    def mlp_shapes():
        w, n = {}, 63
        for i in range(depth):
            w[f"Dense_{i}"] = {"kernel": (n if i == 0 else width + 63 if i == 5 else width, width), "bias": (width,)}
        w["sigma"] = {"kernel": (width, 1), "bias": (1,)}
        w["bottleneck"] = {"kernel": (width, width), "bias": (width,)}
        w["view"] = {"kernel": (width + 27, width // 2), "bias": (width // 2,)}
        w["rgb"] = {"kernel": (width // 2, 3), "bias": (3,)}
        return w

    S = lambda *s, d="float32": jax.ShapeDtypeStruct(s, d)
    params = jax.tree.map(lambda s: S(*s), {"MLP_0": mlp_shapes(), "MLP_1": mlp_shapes()}, is_leaf=lambda x: isinstance(x, tuple))
    transform = optax.adam(5e-4)
    state = jax.eval_shape(transform.init, params)

    def encode(x, deg):
        xb = (x[..., None, :] * 2.0 ** jnp.arange(deg)[:, None]).reshape(*x.shape[:-1], deg * 3)
        return jnp.concatenate([x, jnp.sin(xb), jnp.cos(xb)], -1)

    dense = lambda w, x: x @ w["kernel"].astype(dtype) + w["bias"].astype(dtype)

    def mlp(w, x, view):
        x = inputs = x.astype(dtype)
        for i in range(depth):
            x = jnp.concatenate([x, inputs], -1) if i == 5 else x
            x = jax.nn.relu(dense(w[f"Dense_{i}"], x))
        sigma = dense(w["sigma"], x)
        h = dense(w["bottleneck"], x)
        v = jnp.broadcast_to(view[:, None], (*x.shape[:2], view.shape[-1])).astype(dtype)
        h = jax.nn.relu(dense(w["view"], jnp.concatenate([h, v], -1)))
        return jax.nn.sigmoid(dense(w["rgb"], h)).astype(jnp.float32), jax.nn.relu(sigma).astype(jnp.float32)[..., 0]

    net = jax.checkpoint(mlp) if remat else mlp

    def render(rgb, sigma, t):
        delta = jnp.concatenate([t[:, 1:] - t[:, :-1], jnp.full_like(t[:, :1], 1e10)], -1)
        alpha = 1 - jnp.exp(-sigma * delta)
        trans = jnp.concatenate([jnp.ones_like(alpha[:, :1]), jnp.cumprod(1 - alpha[:, :-1] + 1e-10, -1)], -1)
        weights = alpha * trans
        return (weights[..., None] * rgb).sum(1), weights

    def resample(key, t, weights):
        mids = 0.5 * (t[:, 1:] + t[:, :-1])
        pdf = weights[:, 1:-1] + 1e-5
        cdf = jnp.cumsum(pdf / pdf.sum(-1, keepdims=True), -1)
        cdf = jnp.concatenate([jnp.zeros_like(cdf[:, :1]), cdf], -1)
        u = jnp.sort(jax.random.uniform(key, (t.shape[0], fine)), -1)
        mask = u[:, None, :] >= cdf[..., None]
        low = jnp.max(jnp.where(mask, mids[..., None], mids[:, :1, None]), 1)
        return jax.lax.stop_gradient(jnp.sort(jnp.concatenate([t, low], -1), -1))

    def train_step(params, opt_state, key, origins, directions, pixels):
        key, k1, k2 = jax.random.split(jax.random.fold_in(key, 1), 3)

        def loss_fn(params):
            view = encode(directions, 4)
            t = jnp.linspace(2.0, 6.0, coarse) + jax.random.uniform(k1, (origins.shape[0], coarse)) / coarse
            points = lambda t: encode(origins[:, None] + t[..., None] * directions[:, None], 10)
            rgb, weights = render(*net(params["MLP_0"], points(t), view), t)
            t = resample(k2, t, weights)
            rgb2, _ = render(*net(params["MLP_1"], points(t), view), t)
            return ((rgb - pixels) ** 2).mean() + ((rgb2 - pixels) ** 2).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        grads, loss = jax.lax.pmean((grads, loss), "batch")
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, key, loss

    @functools.wraps(train_step)
    def each(*values):
        squeeze = lambda tree: jax.tree.map(lambda a: a[0], tree)
        return jax.tree.map(lambda a: a[None], train_step(*squeeze(values)))

    step = jax.shard_map(each, mesh=devices, in_specs=P("batch"), out_specs=P("batch"), check_vma=False)
    lead = lambda tree: jax.tree.map(lambda a: jax.ShapeDtypeStruct((chips, *a.shape), a.dtype, sharding=split), tree)
    ray = S(rays // chips, 3)
    args = (*lead((params, state, S(2, d="uint32"))), *lead((ray, ray, ray)))
    return Program(step, args, kind_of_step, (0, 1) if donate else ())


def pinn(topology, chips, points, depth=8, width=512, memory=10, remat=False, chunks=1, donate=True):
    """Steady Navier-Stokes: residuals by nested forward derivatives of each point, optax' L-BFGS with its line search."""
    devices = mesh(topology, (chips,), ("points",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("points"))
    sizes = [2] + [width] * depth + [3]
    params = [{"w": jax.ShapeDtypeStruct((a, b), "float32"), "b": jax.ShapeDtypeStruct((b,), "float32")} for a, b in zip(sizes, sizes[1:])]
    transform = optax.lbfgs(memory_size=memory)
    state = jax.eval_shape(transform.init, params)

    def net(params, x):
        for i, w in enumerate(params):
            x = x @ w["w"] + w["b"]
            x = jnp.tanh(x) if i < depth else x
        return x

    def residual(params, x):
        f = lambda x: net(params, x)
        (u, v, p), J, H = f(x), jax.jacfwd(f)(x), jax.jacfwd(jax.jacfwd(f))(x)
        lap = H[:2, 0, 0] + H[:2, 1, 1]
        momentum = jnp.stack([u * J[0, 0] + v * J[0, 1] + J[2, 0], u * J[1, 0] + v * J[1, 1] + J[2, 1]]) - 0.01 * lap
        return jnp.sum(momentum**2) + (J[0, 0] + J[1, 1]) ** 2

    each = jax.checkpoint(residual) if remat else residual

    def loss_fn(params, interior, border, values):
        inside = jax.vmap(each, (None, 0))(params, interior).mean()
        return inside + ((jax.vmap(net, (None, 0))(params, border) - values) ** 2).mean()

    def train_step(params, opt_state, interior, border, values):
        fn = lambda p: loss_fn(p, interior, border, values)
        value, grad = optax.value_and_grad_from_state(fn)(params, state=opt_state)
        updates, opt_state = transform.update(grad, opt_state, params, value=value, grad=grad, value_fn=fn)
        return optax.apply_updates(params, updates), opt_state, value

    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=split)
    args = (placed(params, whole), placed(state, whole), F(points, 2), F(points // 16, 2), F(points // 16, 3))
    return Program(train_step, args, kind_of_step, (0, 1) if donate else (), (jax.tree.map(lambda a: whole, params), jax.tree.map(lambda a: whole, state), None))


def generate(topology, chips, batch, prompt, new, depth=32, width=4096, heads=32, kv=8, hidden=14336, vocabulary=128256, attention="dot", weights="int8", cache="bfloat16"):
    """A prompt read and `new` tokens made by one program; tensor parallel, weights int8 with scales of columns, layers scanned."""
    devices, size = mesh(topology, (chips,), ("tp",)), width // heads
    on = lambda *spec: NamedSharding(devices, P(*spec))
    A = lambda s, *spec, d=weights: jax.ShapeDtypeStruct(s, d, sharding=on(*spec))
    def matrix(i, o, *spec):
        return {"q": A((depth, i, o), None, *spec), "scale": A((depth, o), None, spec[1], d="float32")}
    layers = {"wq": matrix(width, heads * size, None, "tp"), "wk": matrix(width, kv * size, None, "tp"), "wv": matrix(width, kv * size, None, "tp"),
              "wo": matrix(heads * size, width, "tp", None), "gate": matrix(width, hidden, None, "tp"), "up": matrix(width, hidden, None, "tp"),
              "down": matrix(hidden, width, "tp", None), "norm1": A((depth, width), d="bfloat16"), "norm2": A((depth, width), d="bfloat16")}
    params = {"embed": A((vocabulary, width), None, "tp", d="bfloat16"), "head": A((width, vocabulary), None, "tp", d="bfloat16"), "norm": A((width,), d="bfloat16"), "layers": layers}
    total = prompt + new
    mul = lambda x, w: (x @ w["q"].astype(HALF)) * w["scale"].astype(HALF)

    def attend(q, k, v, mask):
        q = q.reshape(*q.shape[:2], kv, heads // kv, size)
        s = jnp.einsum("bqghd,bkgd->bghqk", q, k).astype(jnp.float32) * size**-0.5
        s = jnp.where(mask, s, -1e30)
        return jnp.einsum("bghqk,bkgd->bqghd", jax.nn.softmax(s).astype(HALF), v).reshape(*q.shape[:2], heads * size)

    def whole_flash(q, k, v):
        local = lambda q, k, v: flash(q, jnp.repeat(k, heads // kv, 2), jnp.repeat(v, heads // kv, 2))
        spec = P(None, None, "tp")
        return jax.shard_map(local, mesh=devices, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)(q, k, v).reshape(*q.shape[:2], heads * size)

    def block(x, w, keys, values, at):
        h = rms(x, w["norm1"])
        part = lambda m, n: mul(h, m).reshape(*h.shape[:2], n, size)
        q, k, v = part(w["wq"], heads), part(w["wk"], kv), part(w["wv"], kv)
        put = lambda c, new: jax.lax.dynamic_update_slice(c, new.astype(c.dtype), (0, at, 0, 0))
        keys, values = put(keys, k), put(values, v)
        if x.shape[1] > 1:
            if attention == "flash":
                o = whole_flash(q, k, v)
            else:
                o = attend(q, k, v, jnp.tril(jnp.ones((x.shape[1],) * 2, bool)))
        else:
            o = attend(q, keys.astype(HALF), values.astype(HALF), jnp.arange(total) <= at)
        x = x + mul(o, w["wo"])
        h = rms(x, w["norm2"])
        return x + mul(jax.nn.silu(mul(h, w["gate"])) * mul(h, w["up"]), w["down"]), keys, values

    def generate(params, prompts):
        shape = (depth, batch, total, kv, size)
        empty = jax.lax.with_sharding_constraint(jnp.zeros(shape, cache), on(None, None, None, "tp"))

        def over_layers(x, keys, values, at):
            def one(x, xs):
                x, k, v = block(x, *xs, at)
                return x, (k, v)
            x, (keys, values) = jax.lax.scan(one, x, (params["layers"], keys, values))
            logits = rms(x[:, -1], params["norm"]) @ params["head"]
            return jnp.argmax(logits, -1).astype(jnp.int32), keys, values

        token, keys, values = over_layers(params["embed"][prompts], empty, empty, 0)

        def step(carry, i):
            token, keys, values = carry
            new, keys, values = over_layers(params["embed"][token[:, None]], keys, values, prompt + i)
            return (new, keys, values), token

        _, tokens = jax.lax.scan(step, (token, keys, values), jnp.arange(new))
        return tokens.T

    prompts = jax.ShapeDtypeStruct((batch, prompt), "int32", sharding=on())
    return Program(generate, (params, prompts), lambda path: "weight" if path.startswith("[0]") else "input")


def hstu(topology, chips, batch, length, items, width=512, depth=8, heads=8, negatives=512, half=False, remat=False, micro=1, shard=True, donate=True):
    """Generative recommenders: pointwise attention without a softmax, the items' table divided by rows, Adagrad."""
    devices = mesh(topology, (chips,), ("x",))
    whole, rows, split = NamedSharding(devices, P()), NamedSharding(devices, P("x")), NamedSharding(devices, P("x"))
    dtype = HALF if half else jnp.float32
    size = width // heads
    F = lambda *s, where=whole: jax.ShapeDtypeStruct(s, "float32", sharding=where)
    params = {"items": F(items, width, where=rows if shard else whole), "positions": F(length, width),
              "layers": [{"uvqk": F(width, 4 * width), "out": F(width, width), "bias": F(heads, 2 * length - 1), "norm": F(width), "norm2": F(width)} for _ in range(depth)]}
    transform = optax.adagrad(0.05)
    state = following(jax.eval_shape(transform.init, params), params, whole)

    def norm(x, scale):
        y = x.astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-6)
        return (y * scale).astype(dtype)

    def layer(x, w):
        u, v, q, k = jnp.split(jax.nn.silu(norm(x, w["norm"]) @ w["uvqk"].astype(dtype)), 4, -1)
        cut = lambda a: a.reshape(*a.shape[:2], heads, size)
        place = jnp.arange(length)
        bias = w["bias"][:, place[:, None] - place[None] + length - 1]
        scores = jnp.einsum("bqhd,bkhd->bhqk", cut(q), cut(k)) + bias.astype(dtype)
        scores = jax.nn.silu(scores) / length
        scores = jnp.where(place[:, None] >= place[None], scores, 0)
        out = jnp.einsum("bhqk,bkhd->bqhd", scores, cut(v)).reshape(x.shape)
        return x + (u * norm(out, w["norm2"])) @ w["out"].astype(dtype)

    body = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, seen, sampled):
        x = (params["items"][seen] + params["positions"]).astype(dtype)
        x = jax.lax.with_sharding_constraint(x, split)
        for i, w in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{i}"):
                x = body(x, w)
        target = params["items"][jnp.roll(seen, -1, 1)].astype(dtype)
        other = params["items"][sampled].astype(dtype)
        positive = (x * target).sum(-1, keepdims=True).astype(jnp.float32)
        logits = jnp.concatenate([positive, jnp.einsum("btd,nd->btn", x, other).astype(jnp.float32)], -1)
        return -jax.nn.log_softmax(logits / 0.05)[..., 0].mean()

    def grads_of(params, seen, sampled):
        if micro == 1:
            return jax.value_and_grad(loss_fn)(params, seen, sampled)
        parts = seen.reshape(chips, micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
        parts = jax.lax.with_sharding_constraint(parts, NamedSharding(devices, P(None, "x")))
        def one(total, part):
            loss, g = jax.value_and_grad(loss_fn)(params, part, sampled)
            return jax.tree.map(jnp.add, total, g), loss
        g, losses = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, params), parts)
        return losses.mean(), g

    def train_step(params, opt_state, seen, sampled):
        loss, grads = grads_of(params, seen, sampled)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    I = lambda where, *s: jax.ShapeDtypeStruct(s, "int32", sharding=where)
    return Program(train_step, (params, state, I(split, batch, length), I(whole, negatives)), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
