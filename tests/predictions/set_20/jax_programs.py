"""JAX alone: Qwen3 0.6B with splash attention and tokamax' fused loss; Hyena by FFT with NovoGrad; an inverse problem of a lattice-Boltzmann flow."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, following, kind_of_step, rms, shardings, training_step
from recipe import Program, largest_dimension, mesh, placed
from scanned_decoder import splash


def rope(x):
    half = x.shape[-1] // 2
    f = jnp.arange(x.shape[1])[:, None] * 1e6 ** (-jnp.arange(half) / half)
    c, s = jnp.cos(f)[:, None].astype(HALF), jnp.sin(f)[:, None].astype(HALF)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1)


def kernels(topology, chips, batch, length, depth=28, width=1024, heads=16, kv=8, size=128, hidden=3072, vocabulary=151936, remat=0, weights="float32", donate=True, constrain=False):
    """Qwen3 0.6B: the first `remat` layers in jax.checkpoint."""
    from jax._src.pallas.mosaic import tpu_info
    from tokamax import linear_softmax_cross_entropy_loss
    from tokamax._src.ops.linear_softmax_cross_entropy_loss import pallas_mosaic_tpu as T

    devices = mesh(topology, (chips,), ("fsdp",))
    # There is no TPU here: tokamax asks the default device what it is.
    tpu_info.get_device_kind = lambda: devices.devices.flat[0].device_kind
    tpu_info.get_num_device_cores = lambda: devices.devices.flat[0].num_cores
    for kind in vars(T).values():
        if isinstance(kind, type) and "supported_on" in vars(kind):
            kind.supported_on = lambda self, device: True
    split = NamedSharding(devices, P("fsdp"))
    S = lambda *s: jax.ShapeDtypeStruct(s, weights)
    layer_shapes = lambda: {"norm1": S(width), "norm2": S(width), "q_norm": S(size), "k_norm": S(size), "q": S(width, heads, size), "k": S(width, kv, size),
                            "v": S(width, kv, size), "o": S(heads, size, width), "gate": S(width, hidden), "up": S(width, hidden), "down": S(hidden, width)}
    params = {"embed": S(vocabulary, width), "norm": S(width), "layers": [layer_shapes() for _ in range(depth)]}
    params = placed(params, largest_dimension(devices, "fsdp"))
    transform = optax.adamw(1e-5)
    state = following(jax.eval_shape(transform.init, params), params, NamedSharding(devices, P()))
    attend = jax.shard_map(splash(length, heads, kv, size), mesh=devices, in_specs=(P("fsdp"),) * 3, out_specs=P("fsdp"), check_vma=False)
    h_ = lambda w: w.astype(HALF)

    def layer(x, w):
        h = rms(x, w["norm1"])
        q = rope(rms(jnp.einsum("btd,dhk->bthk", h, h_(w["q"])), w["q_norm"]))
        k = rope(rms(jnp.einsum("btd,dhk->bthk", h, h_(w["k"])), w["k_norm"]))
        v = jnp.einsum("btd,dhk->bthk", h, h_(w["v"]))
        o = attend(*[a.swapaxes(1, 2) for a in (q, k, v)]).swapaxes(1, 2)
        x = x + jnp.einsum("bthk,hkd->btd", o, h_(w["o"]))
        h = rms(x, w["norm2"])
        return x + (jax.nn.silu(h @ h_(w["gate"])) * (h @ h_(w["up"]))) @ h_(w["down"])

    def fused(x, labels, table):
        one = lambda x, y, w: jax.lax.pmean(linear_softmax_cross_entropy_loss(
            x.reshape(-1, width), y.reshape(-1), w, reduction="mean", implementation="mosaic_tpu"), "fsdp")
        return jax.shard_map(one, mesh=devices, in_specs=(P("fsdp"), P("fsdp"), P()), out_specs=P(), check_vma=False)(x, labels, table)

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(h_(params["embed"])[tokens], split)
        for i, w in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{i}"):
                x = (jax.checkpoint(layer) if i < remat else layer)(x, w)
                x = jax.lax.with_sharding_constraint(x, split) if constrain else x
        return fused(rms(x, params["norm"]).astype(jnp.float32), jnp.roll(tokens, -1, 1), params["embed"].T)  # the kernel's gradients are float32

    step = training_step(jax.value_and_grad(loss_fn), transform)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def hyena(topology, chips, batch, length, depth=18, width=864, vocabulary=50304, remat=0, half=False, donate=True, shard=False):
    """Hyena of order 2, 153 million weights: implicit filters, long convolutions by FFT."""
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32")
    dtype = HALF if half else jnp.float32
    block = lambda: {"norm1": F(width), "norm2": F(width), "inward": F(width, 3 * width), "short": F(3, 3 * width), "outward": F(width, width),
                     "f1": F(33, 64), "f2": F(64, 64), "f3": F(64, width), "decay": F(width), "skip": F(width), "up": F(width, 4 * width), "down": F(4 * width, width)}
    params = placed({"embed": F(vocabulary, width), "norm": F(width), "layers": [block() for _ in range(depth)]}, largest_dimension(devices, "data") if shard else whole)
    transform = optax.novograd(1e-3)
    state = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if shard else whole)

    def norm(x, s):
        y = x.astype(jnp.float32)
        return ((y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5) * s).astype(dtype)

    def filters(w):
        t = jnp.linspace(0, 1, length)[:, None]
        z = jnp.concatenate([t, jnp.sin(2 * jnp.pi * t * jnp.arange(1, 17)), jnp.cos(2 * jnp.pi * t * jnp.arange(1, 17))], -1)
        h = jnp.sin(jnp.sin(z @ w["f1"]) @ w["f2"]) @ w["f3"]
        return h * jnp.exp(-jnp.abs(w["decay"]) * t * 10)

    def long_conv(u, h, skip):
        u = u.astype(jnp.float32)
        a, b = jnp.fft.rfft(u, 2 * length, axis=1), jnp.fft.rfft(h, 2 * length, axis=0)
        return (jnp.fft.irfft(a * b, 2 * length, axis=1)[:, :length] + u * skip).astype(dtype)

    def layer(x, w):
        p = norm(x, w["norm1"]) @ w["inward"].astype(dtype)
        short = w["short"].astype(dtype)
        p = sum(jnp.pad(p, ((0, 0), (i, 0), (0, 0)))[:, :length] * short[i] for i in range(3))
        a, b, v = jnp.split(p, 3, -1)
        y = a * long_conv(b * v, filters(w), w["skip"])
        x = x + y @ w["outward"].astype(dtype)
        return x + jax.nn.gelu(norm(x, w["norm2"]) @ w["up"].astype(dtype)) @ w["down"].astype(dtype)

    def loss_fn(params, tokens):
        x = jax.lax.with_sharding_constraint(params["embed"].astype(dtype)[tokens], split)
        for i, w in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{i}"):
                x = (jax.checkpoint(layer) if i < remat else layer)(x, w)
                x = jax.lax.with_sharding_constraint(x, split) if shard != "plain" else x
        logits = (norm(x, params["norm"]) @ params["embed"].T.astype(dtype)).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.roll(tokens, -1, 1)).mean()

    step = training_step(jax.value_and_grad(loss_fn), transform)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    return Program(step, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))


def lattice(topology, chips, steps, nx=256, ny=64, nz=128, remat=False, donate=True):
    """D3Q19: which porosity gives the wanted outflow; the gradient goes through all steps. The grid is divided along x."""
    import numpy as np

    devices = mesh(topology, (chips,), ("x",))
    where, over = NamedSharding(devices, P("x")), NamedSharding(devices, P(None, "x"))
    c = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if abs(x) + abs(y) + abs(z) <= 2])
    weight = np.array([{0: 1 / 3, 1: 1 / 18, 2: 1 / 36}[int(abs(v).sum())] for v in c], "float32")
    opposite = np.array([int(np.where((c == -v).all(1))[0][0]) for v in c])
    transform = optax.adam(1e-2)

    def collide(f, porosity):
        rho = f.sum(0)
        u = jnp.einsum("qd,qxyz->dxyz", c.astype("float32"), f) / rho
        cu = jnp.einsum("qd,dxyz->qxyz", c.astype("float32"), u)
        eq = weight[:, None, None, None] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(0))
        out = f - (f - eq) / 0.6
        return (1 - porosity) * out + porosity * f[opposite]

    def one(f, _, porosity):
        f = collide(f, porosity)
        f = jnp.stack([jnp.roll(f[q], tuple(int(i) for i in c[q]), (0, 1, 2)) for q in range(19)])
        f = jax.lax.with_sharding_constraint(f, over)
        return f, (f[:, -1] * c[:, 0].astype("float32")[:, None, None]).sum()

    def design_step(design, opt_state, start, wanted):
        def loss_fn(design):
            porosity = jax.nn.sigmoid(design["porosity"])
            body = lambda f, t: one(f, t, porosity)
            _, flux = jax.lax.scan(jax.checkpoint(body) if remat else body, start, None, length=steps)
            return ((flux - wanted) ** 2).mean()

        loss, grads = jax.value_and_grad(loss_fn)(design)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(design, updates), opt_state, loss

    design = {"porosity": jax.ShapeDtypeStruct((nx, ny, nz), "float32", sharding=where)}
    state = following(jax.eval_shape(transform.init, design), design, NamedSharding(devices, P()))
    start = jax.ShapeDtypeStruct((19, nx, ny, nz), "float32", sharding=over)
    wanted = jax.ShapeDtypeStruct((steps,), "float32", sharding=NamedSharding(devices, P()))
    return Program(design_step, (design, state, start, wanted), kind_of_step, (0, 1) if donate else ())
