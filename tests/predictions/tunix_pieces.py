"""google-tunix' own training step, its Sampler's decoding loop, and its own constraints."""

import types

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import kind_of_step, shardings
from recipe import Program


def step(build, transform, devices, make_inputs, loss_fn, has_aux, donate_model):
    """PeftTrainer's step of the model that `build` makes; the mesh stays entered."""
    from tunix.sft import peft_trainer as T

    devices.__enter__()
    model = nnx.eval_shape(build)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.Param), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())
        one = lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where(spec))
        return jax.tree.map(one, tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=loss_fn, _lora_enabled=False, _has_aux=has_aux)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        # The loss, and as much more as its version tells.
        told = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), told

    outs = (shardings(net_state), shardings(opt_state), None)
    return Program(_train_step, (net_state, opt_state, make_inputs()), kind_of_step, (0, 1) if donate_model else (1,), outs)


def constrained(module, devices):
    """tunix leaves its own constraints out where the first device is a CPU, as here: put back."""
    from tunix.utils import sharding_utils

    put = lambda x, spec, *args, **kwargs: jax.lax.with_sharding_constraint(x, NamedSharding(devices, P(*spec)))
    if hasattr(module, "shard"):
        module.shard = put
    sharding_utils.shard = put


def halved(net):
    """Its weights in bfloat16."""
    nnx.update(net, jax.tree.map(lambda a: a.astype("bfloat16") if a.dtype == "float32" else a, nnx.state(net)))
    return net


def decoding(build, config, devices, size, words, temperature, donate):
    """The Sampler's loop (nucleus sampling) of the model that `build` makes, for a `size` of sequences and positions; `words` are those
    that pad and end a sequence. The mesh stays entered."""
    from tunix.generate import sampler as T

    (batch, length), (pad, end) = size, words
    devices.__enter__()
    model = nnx.eval_shape(build)
    on = lambda *spec: NamedSharding(devices, P(*spec))

    class Tokens:
        pad_id = staticmethod(lambda: pad)
        eos_id = staticmethod(lambda: end)

    made = object.__new__(T.Sampler)
    made.tokenizer, made.cache_config, made.eos_ids, made.image_processor = Tokens(), T.CacheConfig(length, config.num_layers, config.num_kv_heads, config.head_dim), jnp.array([end]), None
    graph, state = nnx.split(model)
    made._transformer_graphdef = graph
    where = lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=on(*spec) if isinstance(spec, P) else on())
    params = jax.tree.map(where, state, nnx.get_partition_spec(state))
    make = getattr(model, "init_cache", None) or (lambda b, n, dtype: T._init_cache(config.num_layers, n, b, config.num_kv_heads, config.head_dim, dtype))
    cache = jax.eval_shape(lambda: make(batch, length, jnp.bfloat16))
    cache = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=on(None, None, "tp") if a.ndim == 4 else on()), cache)
    A = lambda d, *s: jax.ShapeDtypeStruct(s, d, sharding=on())
    sampling = T._SamplingState(
        decoding_step=A("int32"), num_input_tokens=512, token_buffer=A("int32", batch, length), positions=A("int32", batch, length), logits_buffer=None, logprobs_buffer=A("float32", batch, length), cache=cache, done=A("bool", batch),
        total_sampling_steps=A("int32"), forbidden_token_ids=None, temperature=temperature, sampling_parameters={"top_p": 0.95, "top_k": 64}, seed=A("uint32", 2), sampling_mode="top_p", beam_search_sampling_state=None)

    def _decode_fn(params, sampling_state):
        return T.Sampler._decode_fn(made, params, sampling_state)

    classify = lambda path: "weight" if path.startswith("[0]") else "cache" if ".cache" in path else "input"
    return Program(_decode_fn, (params, sampling), classify, (1,) if donate else (), shardings(sampling))


def adapters(build, transform, devices, batch, length, donate):
    """PeftTrainer's step of the model with LoRA that `build` makes; what a spec does not divide stays whole."""
    from tunix.sft import peft_trainer as T

    model = nnx.eval_shape(build)
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, transform, wrt=nnx.LoRAParam), model)

    def abstract(tree):
        where = lambda spec: NamedSharding(devices, spec if isinstance(spec, P) else P())

        def one(leaf, spec):
            sharding = where(spec)
            try:
                sharding.shard_shape(leaf.shape)
            except ValueError:
                sharding = where(None)
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

        return jax.tree.map(one, tree, nnx.get_partition_spec(tree))

    (net_graph, net_state), (opt_graph, opt_state) = nnx.split(model), nnx.split(optimizer)
    net_state, opt_state = abstract(net_state), abstract(opt_state)
    S = lambda dtype, *s: jax.ShapeDtypeStruct(s, dtype, sharding=NamedSharding(devices, P("fsdp")))
    inputs = dict(input_tokens=S("int32", batch, length), input_mask=S("bool", batch, length), positions=S("int32", batch, length), attention_mask=S("bool", batch, length, length))
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=T._default_loss_fn, _lora_enabled=True, _has_aux=False)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(net_graph, model), nnx.merge(opt_graph, optimizer)
        # The loss, and as much more as its version tells.
        told = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), told

    outs = (shardings(net_state), shardings(opt_state), None)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input") if "rngs" not in path else "other"
    return Program(_train_step, (net_state, opt_state, inputs), classify, (0, 1) if donate else (1,), outs)
