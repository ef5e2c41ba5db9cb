"""big_vision (google-research): SigLIP's two towers, and ViT So400m with its own scan and remat policy; models as shipped."""
import contextlib, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/repos/big_vision")
import flax.linen as nn
import jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from big_vision.models import vit
from big_vision.models.proj.image_text import two_towers
from recipe import Program, largest_dimension, mesh, placed

CLASSES = {"[0]": "weight", "[1]": "opt", "[2]": "input"}
classify = lambda path: CLASSES[path[:3]]


def constraining(m, axis):
    """big_vision's trainers run under `with mesh, nn.logical_axis_rules([("act_batch", "data")])`; flax ignores that mesh here, so it is given."""
    import flax.linen.spmd as spmd
    spmd._with_sharding_constraint = lambda x, axes, mesh=None: x if axes is None else jax.lax.with_sharding_constraint(x, NamedSharding(m, axes))
    return nn.logical_axis_rules([("act_batch", axis)])


def siglip(topology, chips, batch, remat=False, zero=False, gradients=False):
    if remat:
        vit.Encoder1DBlock = nn.remat(vit.Encoder1DBlock, static_argnums=(2,))
    m = mesh(topology, (chips,), ("data",))
    R, B = NamedSharding(m, P()), NamedSharding(m, P("data"))
    model = two_towers.Model(image={"variant": "B/16", "pool_type": "map"}, text={"variant": "B", "vocab_size": 32000}, out_dim=(None, 768), temperature_init=10.0, bias_init=-10.0)
    image, text = jax.ShapeDtypeStruct((batch, 256, 256, 3), "float32", sharding=B), jax.ShapeDtypeStruct((batch, 64), "int32", sharding=B)
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), jnp.zeros((1, 256, 256, 3)), jnp.zeros((1, 64), "int32")))["params"]
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, mu_dtype=jnp.bfloat16))
    opt = jax.eval_shape(tx.init, params)
    params = placed(params, R)
    opt = placed(opt, largest_dimension(m, "data") if zero else R)

    def update_fn(params, opt_state, batch):
        def loss_fn(params):
            zimg, ztxt, extras = model.apply({"params": params}, batch["image"], batch["labels"], train=True)
            logits = jnp.dot(zimg, ztxt.T) * extras["t"] + extras["b"]
            m1 = -jnp.ones_like(logits) + 2 * jnp.eye(zimg.shape[0])
            return -jnp.mean(jnp.sum(jax.nn.log_sigmoid(m1 * logits), axis=-1))
        loss, grads = jax.value_and_grad(loss_fn)(params)
        if gradients:  # as the report advises
            grads = jax.tree_util.tree_map_with_path(lambda path, g: jax.lax.with_sharding_constraint(g, largest_dimension(m, "data")(path, g)), grads)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    where = lambda t: jax.tree.map(lambda a: a.sharding, t)
    return Program(update_fn, (params, opt, {"image": image, "labels": text}), classify, (0, 1), (where(params), where(opt), None))


def so400m(topology, chips, batch, policy="dots_with_no_batch_dims_saveable", fsdp=False, rules=False):
    m = mesh(topology, (chips,), ("data",))
    R, B = NamedSharding(m, P()), NamedSharding(m, P("data"))
    model = vit.Model(1000, variant="So400m/14", pool_type="map", scan=True, remat_policy=policy, dtype_mm="bfloat16")
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), jnp.zeros((1, 224, 224, 3))))["params"]
    tx = optax.adamw(1e-3)
    where = largest_dimension(m, "data") if fsdp else R
    params, opt = placed(params, where), placed(jax.eval_shape(tx.init, params), where)
    inputs = {"image": jax.ShapeDtypeStruct((batch, 224, 224, 3), "float32", sharding=B), "labels": jax.ShapeDtypeStruct((batch, 1000), "float32", sharding=B)}

    def update_fn(params, opt_state, batch):
        def loss_fn(params):
            with constraining(m, "data") if rules else contextlib.nullcontext():
                logits, _ = model.apply({"params": params}, batch["image"], train=True)
            return optax.sigmoid_binary_cross_entropy(logits, batch["labels"]).sum(-1).mean()
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    shardings = lambda t: jax.tree.map(lambda a: a.sharding, t)
    return Program(update_fn, (params, opt, inputs), classify, (0, 1), (shardings(params), shardings(opt), None))


def _paligemma(size):
    from big_vision.models.proj.paligemma import paligemma
    return paligemma.Model(img={"variant": "So400m/14", "pool_type": "none", "scan": True, "dtype_mm": "bfloat16"}, llm={"variant": "gemma_2b"})


def paligemma(topology, chips, batch, size, text, chunks=1, rules=False):
    m = mesh(topology, (chips,), ("fsdp",))
    B = NamedSharding(m, P("fsdp"))
    model = _paligemma(size)
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), jnp.zeros((1, size, size, 3)), jnp.zeros((1, text), "int32"), jnp.zeros((1, text), "int32")))["params"]
    tx = optax.adafactor(1e-3)
    state = {"params": params, "opt": jax.eval_shape(tx.init, params)}
    state = placed(state, largest_dimension(m, "fsdp"))
    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=B)
    data = {"image": S("float32", size, size, 3), "text": S("int32", text + 1), "mask_ar": S("int32", text + 1), "mask_loss": S("int32", text + 1)}

    def update_fn(train_state, rng, batch):
        if not rules:
            return plain(train_state, rng, batch)
        with constraining(m, "fsdp"):
            return plain(train_state, rng, batch)

    def plain(train_state, rng, batch):
        imgs, txts, mask_ar = batch["image"], batch["text"], batch["mask_ar"]
        def pplx(logits, txts, mask):
            logp = jax.nn.log_softmax(logits, axis=-1)
            targets = jax.nn.one_hot(txts, logits.shape[-1])
            return jnp.sum(logp * targets, axis=-1) * mask
        def loss_fn(params):
            logits, out = model.apply({"params": params}, imgs, txts[:, :-1], mask_ar[:, :-1], train=True, rngs={"dropout": rng})
            mask = batch["mask_loss"][:, 1:]
            if chunks == 1:
                token = pplx(logits, txts[:, 1:], mask)
            else:
                table = params["llm"]["embedder"]["input_embedding"]
                x = out["llm/pre_logits"][:, -text:]
                cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
                piece = jax.checkpoint(lambda c, xs: (c, pplx(jnp.dot(xs[0], table.T.astype(xs[0].dtype)), xs[1], xs[2])))
                token = jax.lax.scan(piece, 0.0, (cut(x), cut(txts[:, 1:]), cut(mask)))[1].swapaxes(0, 1).reshape(txts.shape[0], -1)
            loss = -jnp.sum(token, axis=-1) / jnp.clip(jnp.sum(mask, axis=-1), 1)
            return jnp.mean(loss)
        params, opt = train_state["params"], train_state["opt"]
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, loss

    key = jax.eval_shape(lambda: jax.random.key(0)); key = jax.ShapeDtypeStruct(key.shape, key.dtype, sharding=NamedSharding(m, P()))
    def classify(path):
        return "weight" if path.startswith("[0]['params']") else "opt" if path.startswith("[0]") else "input" if path.startswith("[2]") else "other"
    return Program(update_fn, (state, key, data), classify, (0,), (jax.tree.map(lambda a: a.sharding, state), None))


def paligemma_decode(topology, chips, batch, length, donate=False, cache_dtype="bfloat16"):
    m = mesh(topology, (chips,), ("data",))
    R, B = NamedSharding(m, P()), NamedSharding(m, P("data"))
    model = _paligemma(224)
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), jnp.zeros((1, 224, 224, 3)), jnp.zeros((1, 8), "int32"), jnp.zeros((1, 8), "int32")))["params"]
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, jnp.bfloat16), params)
    prompt = jax.ShapeDtypeStruct((batch, 8, 2048), "bfloat16"); ones = jax.ShapeDtypeStruct((batch, 8), "int32")
    cache = jax.eval_shape(lambda p, x, o: model.apply({"params": p}, x, o > 0, o, cache_size=length, method="prefill_cache", mutable=["cache"]), params, prompt, ones)[1]["cache"]
    cache = placed(cache, lambda path, leaf: NamedSharding(m, P(*[("data" if size == batch else None) for size in leaf.shape])))
    tokens = jax.ShapeDtypeStruct((batch, 1), "int32", sharding=B)

    def extend_step(params, cache, tokens):
        x, _ = model.apply({"params": params}, tokens, method="embed_text")
        logits, changed = model.apply({"params": params, "cache": cache}, x, method="extend_cache", mutable=["cache"])
        return jnp.argmax(logits, -1), changed["cache"]

    return Program(extend_step, (placed(params, R), cache, tokens), lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input"), (1,) if donate else ())
