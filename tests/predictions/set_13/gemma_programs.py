"""The gemma library's own models: Gemma 2's sampler, Gemma 3 fine-tuned on images and text."""
import dataclasses
import gemma_names  # noqa: F401
import jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, largest_dimension, mesh, placed


def sampler(topology, chips, batch, length, answer, donate=False):
    """SamplerLoop._sample_step, as a stream is sampled."""
    from gemma import gm
    from gemma.gm.text import _sampler_loop as L
    m = mesh(topology, (chips,), ("x",)); R, B = NamedSharding(m, P()), NamedSharding(m, P("x"))
    model = gm.nn.Gemma2_2B()
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "bfloat16"), params), largest_dimension(m, "x", 1 << 16))
    loop = L.SamplerLoop(model=model, end_tokens=(1, 107), forbidden_tokens=None, sampling=gm.text.RandomSampling(temperature=0.7), cache_length=length, special_tokens=gm.text.Gemma2Tokenizer.special_tokens)
    cache = placed(jax.eval_shape(lambda: model.init_cache(batch_size=batch, dtype=jnp.bfloat16, cache_length=length)), B)
    S = lambda s, d, where=B: jax.ShapeDtypeStruct(s, d, sharding=where)
    state = L.SamplingState(step=S((), "int32", R), done=S((batch,), "bool"), last_token=S((batch,), "int32"), last_token_pos=S((batch,), "int32"), predicted_tokens=S((batch, answer), "int32"),
                            cache=cache, rng=S((), jax.random.key(0).dtype, R), init_cache_length=S((), "int32", R), full_attention_mask=S((batch, length), "bool"))

    def sample_step(params, state):
        return L.SamplerLoop._sample_step.__wrapped__(loop, state, params=params)

    classify = lambda path: "weight" if path.startswith("[0]") else "cache" if ".cache" in path else "input"
    return Program(sample_step, (params, state), classify, (1,) if donate else ())


def images(topology, chips, batch, length, remat=None, dtype=None, model="Gemma3_4B", depth=6):
    """Fine-tuning of Gemma 3 with one image in each sequence; `remat` is the image tower's, text's or both layers'. The text model has `depth` of its layers, to compile in time."""
    import flax.linen as nn
    from gemma import gm
    from gemma.multimodal import vision_utils as V
    from gemma.gm.nn import _modules as M, _transformer as T
    if remat in ("vision", "both"):
        V.Encoder1DBlock = nn.remat(V.Encoder1DBlock, static_argnums=(2,))
    if remat in ("text", "both"):
        M.Block = nn.remat(M.Block)
    m = mesh(topology, (chips,), ("fsdp",)); B = NamedSharding(m, P("fsdp"))
    cls = getattr(gm.nn, model)
    config = dataclasses.replace(cls.config, attention_types=cls.config.attention_types[:depth])
    net = cls(config=config, **({"dtype": dtype} if dtype else {}))
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    tx = optax.adafactor(1e-4)
    where = largest_dimension(m, "fsdp", 1 << 16)
    params = placed(params, where); opt = placed(jax.eval_shape(tx.init, params), where)
    data = {"input": jax.ShapeDtypeStruct((batch, length), "int32", sharding=B), "images": jax.ShapeDtypeStruct((batch, 896, 896, 3), "uint8", sharding=B),
            "target": jax.ShapeDtypeStruct((batch, length), "int32", sharding=B), "loss_mask": jax.ShapeDtypeStruct((batch, length), "bool", sharding=B)}

    def train_step(params, opt_state, batch):
        def loss_fn(params):
            out = net.apply({"params": params}, tokens=batch["input"], images=batch["images"])
            loss = optax.softmax_cross_entropy_with_integer_labels(out.logits, batch["target"])
            return jnp.sum(loss * batch["loss_mask"]) / jnp.sum(batch["loss_mask"])
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    out = lambda t: jax.tree.map(lambda a: a.sharding, t)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (params, opt, data), classify, (0, 1), (out(params), out(opt), None))
