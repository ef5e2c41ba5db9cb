"""The gemma library: the prompt of Gemma 2 9B through the model with its cache, divided by heads; Gemma 3 270M fine-tuned on one device."""

import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import entropy, gradients, kind_of_step, training_step
from recipe import Program, mesh, placed


def prefill(topology, tp, batch, length, donate=False):
    """Transformer.apply with return_last_only, as gm.text' prefill calls it; weights as Megatron divides them."""
    from gemma import gm

    devices = mesh(topology, (tp,), ("model",))
    on = lambda *spec: NamedSharding(devices, P(*spec))
    net = gm.nn.Gemma2_9B(dtype=jnp.bfloat16)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "bfloat16"), params)

    def where(path, leaf):
        if "kv_einsum" in path or "gating_einsum" in path:
            return on(None, "model")
        if "q_einsum" in path or "attn_vec_einsum" in path or "linear" in path or "input_embedding" in path:
            return on("model")
        return on()

    cache = jax.eval_shape(lambda: net.init_cache(batch_size=batch, dtype=jnp.bfloat16, cache_length=length))
    cache = placed(cache, lambda path, leaf: on(None, None, "model") if leaf.ndim == 4 else on())
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=on())

    def prefill(params, cache, tokens, positions, attention_mask):
        out = net.apply(
            {"params": params}, tokens=tokens, cache=cache, positions=positions, attention_mask=attention_mask,
            return_last_only=True)
        return out.logits, out.cache

    classify = lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input")
    args = (placed(params, where), cache, S("int32", batch, length), S("int32", batch, length), S("bool", batch, length, length))
    return Program(prefill, args, classify, (1,) if donate else ())


def single(topology, batch, length, chunks=1, micro=1, donate=True):
    """Gemma 3 270M, float32 weights, bfloat16 within, on one device."""
    from gemma import gm

    devices = mesh(topology, (1,), ("x",))
    whole = NamedSharding(devices, P())
    net = gm.nn.Gemma3_270M(dtype=jnp.bfloat16)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "float32"), params)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5, weight_decay=0.01))

    def loss_fn(params, tokens):
        target = jnp.roll(tokens, -1, 1)
        out = net.apply({"params": params}, tokens=tokens, return_hidden_states=chunks > 1)
        if chunks > 1:
            return entropy(out.hidden_states, params["embedder"]["input_embedding"].T, target, chunks)
        return optax.softmax_cross_entropy_with_integer_labels(out.logits.astype(jnp.float32), target).mean()

    step = training_step(gradients(loss_fn, devices, micro), transform, "finetune")
    args = (placed(params, whole), placed(jax.eval_shape(transform.init, params), whole), jax.ShapeDtypeStruct((batch, length), "int32", sharding=whole))
    return Program(step, args, kind_of_step, (0, 1) if donate else ())
