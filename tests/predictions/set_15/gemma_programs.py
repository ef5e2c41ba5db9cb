"""The gemma library: Gemma 3 1B fine-tuned with Lion, the model whole on every device; and its sampler's loop."""

import flax.linen as nn
import gemma_names  # noqa: F401
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import entropy, kind_of_step, shardings
from recipe import Program, largest_dimension, mesh, placed


def lion(topology, chips, batch, length, remat=False, chunks=1, shard=False, donate=True):
    from gemma import gm
    from gemma.gm.nn import _modules as M

    if remat:
        M.Block = nn.remat(M.Block)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp"))
    net = gm.nn.Gemma3_1B(dtype=jnp.bfloat16)
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-5))
    where = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    params = placed(params, where)
    state = placed(jax.eval_shape(transform.init, params), where)
    S = lambda dtype: jax.ShapeDtypeStruct((batch, length), dtype, sharding=split)
    data = {"input": S("int32"), "target": S("int32"), "loss_mask": S("bool")}

    def loss_fn(params, batch):
        out = net.apply({"params": params}, tokens=batch["input"], return_hidden_states=chunks > 1)
        if chunks > 1:
            return entropy(out.hidden_states, params["embedder"]["input_embedding"].T, batch["target"], chunks)
        loss = optax.softmax_cross_entropy_with_integer_labels(out.logits.astype(jnp.float32), batch["target"])
        return jnp.sum(loss * batch["loss_mask"]) / jnp.sum(batch["loss_mask"])

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    outs = (shardings(params), shardings(state), None)
    return Program(train_step, (params, state, data), kind_of_step, (0, 1) if donate else (), outs)


def loop(topology, chips, batch, length, answer, donate=False):
    """SamplerLoop._sample_loop: the whole answer in one while loop."""
    from gemma import gm
    from gemma.gm.text import _sampler_loop as L

    devices = mesh(topology, (chips,), ("x",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("x"))
    net = gm.nn.Gemma3_1B()
    params = jax.eval_shape(lambda: net.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    params = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, "bfloat16"), params), whole)
    sampler = L.SamplerLoop(
        model=net, end_tokens=(1, 106), forbidden_tokens=None, sampling=gm.text.Greedy(), cache_length=length,
        special_tokens=gm.text.Gemma3Tokenizer.special_tokens)
    cache = placed(jax.eval_shape(lambda: net.init_cache(batch_size=batch, dtype=jnp.bfloat16, cache_length=length)), split)
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=split if s else whole)
    state = L.SamplingState(
        step=S("int32"), done=S("bool", batch), last_token=S("int32", batch), last_token_pos=S("int32", batch),
        predicted_tokens=S("int32", batch, answer), cache=cache, rng=S(jax.random.key(0).dtype), init_cache_length=S("int32"),
        full_attention_mask=S("bool", batch, length))

    def sample_loop(params, state, max_new_tokens):
        return L.SamplerLoop._sample_loop.__wrapped__(sampler, params=params, state=state, max_new_tokens=max_new_tokens)

    classify = lambda path: "weight" if path.startswith("[0]") else "cache" if ".cache" in path else "input"
    return Program(sample_loop, (params, state, S("int32")), classify, (1,) if donate else ())
