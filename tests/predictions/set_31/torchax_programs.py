"""Hugging Face transformers (PyTorch) through torchax: one token of Llama 3.1 8B with its StaticCache, by tensor parallelism; Depth Anything large, whole; Phi 1.5 with micro-batches."""

import jax
import torch_names  # noqa: F401
import torch
import torchax
import transformers
from jax.sharding import NamedSharding, PartitionSpec as P
from torchax import interop

from pieces import shardings
from recipe import Program, mesh
from torchax_pieces import NAMES


def decode(topology, chips, batch, length=8192, donate=True):
    config = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072,
        rope_parameters={"rope_type": "default", "rope_theta": 5e5}, rms_norm_eps=1e-5, tie_word_embeddings=False, attn_implementation="sdpa")
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).eval()
    env = torchax.default_env()
    devices = mesh(topology, (chips,), ("model",))
    A = lambda dtype, s, *spec: jax.ShapeDtypeStruct(tuple(s), dtype, sharding=NamedSharding(devices, P(*spec)))

    def spec(name, a):
        if a.ndim > 1 and any(n in name for n in ("o_proj", "down_proj")):
            return (None, "model")
        if any(n in name for n in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head", "embed_tokens")):
            return ("model",)
        return ()

    abstract = lambda named: {n: A(NAMES[a.dtype], a.shape, *spec(n, a)) for n, a in named}
    weights, buffers = abstract(model.named_parameters()), abstract(model.named_buffers())
    size = config.hidden_size // config.num_attention_heads
    kv = lambda: [A("bfloat16", (batch, config.num_key_value_heads, length, size), None, "model") for _ in range(config.num_hidden_layers)]
    cache = {"keys": kv(), "values": kv(), "length": A("int32", (1,))}

    def one(weights, buffers, cache, tokens):
        past = transformers.StaticCache(config=config, max_cache_len=length)
        for layer, k, v in zip(past.layers, cache["keys"], cache["values"]):
            layer.keys, layer.values, layer.cumulative_length, layer.is_initialized = k, v, cache["length"] + 0, True
            layer.dtype, layer.device, layer.max_batch_size, layer.num_heads, layer.k_head_dim, layer.v_head_dim = torch.bfloat16, k.device, batch, config.num_key_value_heads, size, size
        places = cache["length"].reshape(1, 1).expand(batch, 1)
        out = torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=dict(input_ids=tokens, past_key_values=past, position_ids=places, use_cache=True))
        new = {"keys": [l.keys for l in past.layers], "values": [l.values for l in past.layers], "length": past.layers[0].cumulative_length}
        return torch.argmax(out.logits[:, -1], -1)[:, None], new

    viewed = interop.jax_view(one)

    def decode_one_token(weights, buffers, cache, tokens):
        with env, torch.no_grad():
            return viewed(weights, buffers, cache, tokens)

    classify = lambda path: "input" if path.startswith("[3]") else "weight" if path[:3] in ("[0]", "[1]") else "other" if "length" in path else "cache"
    return Program(decode_one_token, (weights, buffers, cache, A("int32", (batch, 1))), classify, (2,) if donate else (), (None, shardings(cache)))


def depth(topology, chips, batch, side=518, dtype="float32", remat=0, donate=True, shard=False):
    """Depth Anything large, fine-tuned whole by the scale-invariant loss of metric depths."""
    import optax

    from torchax_pieces import build

    backbone = transformers.Dinov2Config(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, image_size=518, patch_size=14, out_indices=[5, 12, 18, 24], apply_layernorm=True, reshape_hidden_states=False, attn_implementation="eager")
    config = transformers.DepthAnythingConfig(backbone_config=backbone, reassemble_hidden_size=1024, neck_hidden_sizes=[256, 512, 1024, 1024], fusion_hidden_size=256, head_hidden_size=32, depth_estimation_type="metric", max_depth=20)
    with torch.device("meta"):
        model = transformers.DepthAnythingForDepthEstimation(config).to(getattr(torch, dtype))
    plain = model.forward

    def forward(pixel_values):
        out = plain(pixel_values=pixel_values)
        out.logits = out.predicted_depth
        return out

    model.forward = forward

    def silog(predicted, y):
        g = torch.log(predicted.float() + 1e-6) - torch.log(y + 1e-6)
        return torch.sqrt((g**2).mean() - 0.5 * g.mean() ** 2 + 1e-6)

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=NamedSharding(devices, P("fsdp")))
    to = (lambda a: a.to(torch.bfloat16)) if dtype == "bfloat16" else (lambda a: a)
    return build(model, dtype, lambda n: list(n.backbone.encoder.layer), lambda a: dict(pixel_values=to(a)), silog, devices, S(batch, 3, side, side), S(batch, side, side), optax.adamw(5e-6), donate, shard, remat)


def phi(topology, chips, batch, micro=4, length=1024, dtype="bfloat16", remat=0, donate=True):
    """Phi 1.5, fully sharded; gradients summed in float32 over micro-batches in a lax.scan."""
    import jax.numpy as jnp
    import optax

    from recipe import largest_dimension, placed
    from torchax_pieces import checkpointed

    config = transformers.PhiConfig(vocab_size=51200, hidden_size=2048, intermediate_size=8192, num_hidden_layers=24, num_attention_heads=32, max_position_embeddings=2048, partial_rotary_factor=0.5, attn_implementation="sdpa", use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0)
    with torch.device("meta"):
        model = transformers.PhiForCausalLM(config).to(getattr(torch, dtype))
    env = torchax.default_env()
    for layer in list(model.model.layers)[:remat]:
        checkpointed(layer)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, split, where = NamedSharding(devices, P()), NamedSharding(devices, P("fsdp")), largest_dimension(devices, "fsdp", 1 << 16)
    abstract = lambda named: {name: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for name, a in named}
    weights, buffers = placed(abstract(model.named_parameters()), where), placed(abstract(model.named_buffers()), whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-5))
    state = placed(jax.eval_shape(transform.init, weights), where)

    def loss_of(weights, buffers, tokens):
        logits = torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=dict(input_ids=tokens)).logits
        return torch.nn.functional.cross_entropy(logits[:, :-1].float().reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))

    viewed = interop.jax_view(loss_of)

    def train_step(weights, opt_state, buffers, tokens):
        parts = tokens.reshape(chips, micro, -1, length).swapaxes(0, 1).reshape(micro, -1, length)
        parts = jax.lax.with_sharding_constraint(parts, NamedSharding(devices, P(None, "fsdp")))

        def one(total, part):
            with env:
                loss, grads = jax.value_and_grad(viewed)(weights, buffers, part)
            return jax.tree.map(lambda a, g: a + g.astype(a.dtype), total, grads), loss

        zeros = jax.tree.map(lambda w, a: jax.lax.with_sharding_constraint(jnp.zeros(w.shape, "float32"), a.sharding), weights, dict(placed_weights))
        grads, losses = jax.lax.scan(one, zeros, parts)
        grads = jax.tree.map(lambda g, w: (g / micro).astype(w.dtype), grads, weights)
        updates, opt_state = transform.update(grads, opt_state, weights)
        return optax.apply_updates(weights, updates), opt_state, losses.mean()

    placed_weights = weights
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(train_step, (weights, state, buffers, tokens), classify, (0, 1) if donate else (), (shardings(weights), shardings(state), None))
