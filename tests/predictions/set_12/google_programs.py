"""penzai's Llama-like transformer, google-tunix' PeftTrainer on its Llama 3.2, the gemma library's Gemma 3, Flax's own examples lm1b and wmt."""
import dataclasses, importlib.machinery, os, sys, types
import importlib.abc
from unittest import mock as _mock


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that are not installed and that nothing here calls."""
    NAMES = ("lark", "perfetto", "metrax", "datasets", "grain", "hf_transfer", "numba", "omegaconf", "pylatexenc", "dotenv", "qwix", "tenacity", "tensorflow_datasets", "importlib_resources", "kauldron", "tensorboardX", "sympy", "dialog_adapters", "mediapy", "tensorboard", "typeguard_", "array_record", "seqio", "dill", "fiddle", "konfig")
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.NAMES else None
    def create_module(self, spec):
        module = types.ModuleType(spec.name); module.__path__ = []
        module.__getattr__ = lambda name: (_ for _ in ()).throw(AttributeError(name)) if name.startswith("__") else stand_in(name)
        return module
    def exec_module(self, module):
        pass


def stand_in(name):
    class Any(_mock.MagicMock):
        pass
    return Any(name=name) if not name[:1].isupper() else type(name, (), {"__init__": lambda self, *a, **k: None, "__class_getitem__": classmethod(lambda c, i: c)})


sys.meta_path.append(StandIns())
HERE = os.path.dirname(os.path.abspath(__file__))
import jax, jax.numpy as jnp, optax
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, largest_dimension, mesh, placed


def penzai_lm(topology, chips, batch, length, remat=False, donate=True):
    from penzai import pz
    from penzai.models.transformer import model_parts
    from penzai.models.transformer.variants import llamalike_common as L
    from penzai.toolshed import gradient_checkpointing as G
    m = mesh(topology, (chips,), ("data",)); R, B = NamedSharding(m, P()), NamedSharding(m, P("data"))
    config = L.LlamalikeTransformerConfig(num_kv_heads=4, query_head_multiplier=4, embedding_dim=1024, projection_dim=64, mlp_hidden_dim=2816, num_decoder_blocks=8, vocab_size=32000, mlp_variant="swiglu", tie_embedder_and_logits=False, use_layer_stack=True)
    model = L.build_llamalike_transformer(config, init_base_rng=jax.random.key(0), name="transformer")
    if remat:
        model = pz.select(model).at_instances_of(model_parts.TransformerBlock).apply(lambda b: G.Checkpointed(b))
    model, frozen = pz.unbind_params(model, freeze=True)
    held = {str(v.label): v for v in frozen}
    params = jax.eval_shape(lambda: {k: v.value for k, v in held.items()})
    tx = optax.contrib.schedule_free_adamw(3e-4)
    opt = jax.eval_shape(tx.init, params)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=B)

    def train_step(params, opt_state, tokens):
        def loss_fn(params):
            bound = pz.bind_variables(model, [dataclasses.replace(held[k], value=v) for k, v in params.items()])
            named = pz.nx.wrap(tokens).tag("batch", "seq")
            logits = bound(named, token_positions=pz.nx.arange("seq", tokens.shape[1])).unwrap("batch", "seq", "vocabulary")
            return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(train_step, (placed(params, R), placed(opt, R), tokens), classify, (0, 1) if donate else ())


def tunix_llama(topology, shape, batch, length, remat=None, donate_model=False, constrain=False):
    from flax import nnx
    from tunix.models.llama3 import model as M
    from tunix.sft import peft_trainer as T
    if constrain:  # tunix leaves its own constraints out where the first device is a CPU, as here
        M.shard = lambda x, s: jax.lax.with_sharding_constraint(x, NamedSharding(m, P(*s)))
    config = M.ModelConfig.llama3p2_1b()
    if remat:
        config = dataclasses.replace(config, remat_config=getattr(M.RematConfig, remat))
    m = mesh(topology, shape, ("fsdp", "tp"))
    m.__enter__()
    model = nnx.eval_shape(lambda: M.Llama3(config, rngs=nnx.Rngs(0)))
    optimizer = nnx.eval_shape(lambda net: nnx.Optimizer(net, optax.adamw(1e-5), wrt=nnx.Param), model)

    def spec(tree):
        one = lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(m, s if isinstance(s, P) else P()))
        return jax.tree.map(one, tree, nnx.get_partition_spec(tree))

    (gm, sm), (go, so) = nnx.split(model), nnx.split(optimizer)
    sm, so = spec(sm), spec(so)
    B = NamedSharding(m, P("fsdp")); S = lambda shape, dtype: jax.ShapeDtypeStruct(shape, dtype, sharding=B)
    inputs = dict(input_tokens=S((batch, length), "int32"), input_mask=S((batch, length), "bool"), positions=S((batch, length), "int32"), attention_mask=S((batch, length, length), "bool"))
    trainer = types.SimpleNamespace(gen_model_input_fn=lambda x: x, loss_fn=T._default_loss_fn, _lora_enabled=False, _has_aux=False)

    def _train_step(model, optimizer, inputs):
        net, opt = nnx.merge(gm, model), nnx.merge(go, optimizer)
        loss, aux, norm = T.PeftTrainer._train_step(trainer, net, opt, inputs)
        return nnx.state(net), nnx.state(opt), loss, norm

    where = lambda t: jax.tree.map(lambda a: a.sharding, t)
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    return Program(_train_step, (sm, so, inputs), classify, (0, 1) if donate_model else (1,), (where(sm), where(so), None, None))


def gemma_muon(topology, chips, batch, length, chunks=1):
    from flax.training.train_state import TrainState
    import kauldron.checkpoints
    for name in ("AbstractPartialLoader", "PartialLoader", "InitTransform"):
        if not hasattr(kauldron.checkpoints, name):
            setattr(kauldron.checkpoints, name, type(name, (), {}))
    from gemma import gm
    m = mesh(topology, (chips,), ("fsdp",)); B = NamedSharding(m, P("fsdp"))
    model = gm.nn.Gemma3_270M()
    params = jax.eval_shape(lambda: model.init(jax.random.key(0), tokens=jnp.zeros((1, 32), "int32")))["params"]
    tx = optax.contrib.muon(1e-3)
    state = jax.eval_shape(lambda p: TrainState.create(apply_fn=model.apply, params=p, tx=tx), params)
    state = placed(state, largest_dimension(m, "fsdp", 1 << 16))
    data = {k: jax.ShapeDtypeStruct((batch, length), d, sharding=B) for k, d in (("input", "int32"), ("target", "int32"), ("loss_mask", "bool"))}

    def train_step(state, batch):
        def loss_fn(params):
            out = state.apply_fn({"params": params}, tokens=batch["input"], return_hidden_states=chunks > 1)
            mask = batch["loss_mask"]
            if chunks == 1:
                loss = optax.softmax_cross_entropy_with_integer_labels(out.logits, batch["target"])
                return jnp.sum(loss * mask) / jnp.sum(mask)
            table = params["embedder"]["input_embedding"]
            def piece(x, y, w):
                logits = jnp.dot(x, table.astype(x.dtype).T)
                return jnp.sum(optax.softmax_cross_entropy_with_integer_labels(logits, y) * w)
            cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
            total, _ = jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, jax.tree.map(cut, (out.hidden_states, batch["target"], mask)))
            return total / jnp.sum(mask)
        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    def classify(path):
        return "weight" if ".params" in path else "opt" if "opt_state" in path else "input" if path.startswith("[1]") else "other"

    return Program(train_step, (state, data), classify, (0,), (jax.tree.map(lambda a: a.sharding, state), None))


def lm1b(topology, chips, batch, length, remat=False, half=False, donate=True):
    sys.path.insert(0, HERE + "/repos/flax/examples/lm1b")
    from unittest import mock
    for name in ("clu", "clu.metric_writers", "clu.periodic_actions", "input_pipeline", "temperature_sampler"):
        sys.modules[name] = mock.MagicMock()
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    import flax.linen as nn
    from flax.training.train_state import TrainState
    import models, train
    if remat:
        models.EncoderDecoder1DBlock = nn.remat(models.EncoderDecoder1DBlock)
    m = mesh(topology, (chips,), ("data",)); R, B = NamedSharding(m, P()), NamedSharding(m, P("data"))
    config = models.TransformerConfig(vocab_size=30000, output_vocab_size=30000, dtype=jnp.bfloat16 if half else jnp.float32, emb_dim=1024, num_heads=16, num_layers=6, qkv_dim=1024, mlp_dim=4096, max_len=length)
    params = jax.eval_shape(lambda: nn.meta.unbox(models.TransformerLM(dataclasses.replace(config, deterministic=True)).init(jax.random.key(0), jnp.ones((1, length), "float32"))["params"]))
    schedule = train.create_learning_rate_schedule(learning_rate=1e-3, warmup_steps=1000)
    tx = optax.adamw(learning_rate=schedule, b1=0.9, b2=0.98, eps=1e-9, weight_decay=0.1)
    state = placed(jax.eval_shape(lambda p: TrainState.create(apply_fn=None, params=p, tx=tx), params), R)
    batch_ = {k: jax.ShapeDtypeStruct((batch, length), "int32", sharding=B) for k in ("inputs", "inputs_position", "inputs_segmentation")}
    key = jax.eval_shape(lambda: jax.random.key(0)); key = jax.ShapeDtypeStruct(key.shape, key.dtype, sharding=R)

    def train_step(state, batch, dropout_rng):
        return train.train_step(state, batch, config, schedule, 0.0, dropout_rng)

    def classify(path):
        return "weight" if ".params" in path else "opt" if "opt_state" in path else "input" if path.startswith("[1]") else "other"

    return Program(train_step, (state, batch_, key), classify, (0,) if donate else ())


def wmt_beam(topology, batch, length, decoded, half=False, donate=False):
    sys.path.insert(0, HERE + "/repos/flax/examples/wmt")
    from unittest import mock
    for name in ("clu", "clu.metric_writers", "clu.periodic_actions", "input_pipeline", "bleu"):
        sys.modules[name] = mock.MagicMock()
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    import flax.linen as nn
    import models, train
    m = mesh(topology, (1,), ("data",)); R = NamedSharding(m, P())
    config = models.TransformerConfig(vocab_size=32000, output_vocab_size=32000, share_embeddings=True, logits_via_embedding=True, dtype=jnp.bfloat16 if half else jnp.float32, emb_dim=1024, num_heads=16, num_layers=6, qkv_dim=1024, mlp_dim=4096, max_len=256, deterministic=True, decode=True)
    inputs = jax.ShapeDtypeStruct((batch, length), "int32", sharding=R)
    cache = jax.eval_shape(lambda: nn.meta.unbox(train.initialize_cache(jnp.ones((batch, length), "int32"), decoded, config)))
    params = jax.eval_shape(lambda: nn.meta.unbox(models.Transformer(dataclasses.replace(config, decode=False)).init(jax.random.key(0), jnp.ones((1, length), "float32"), jnp.ones((1, decoded), "float32"))["params"]))

    def predict_step(inputs, params, cache):
        return train.predict_step(inputs, params, cache, 2, decoded, config, 4)

    classify = lambda path: {"[1]": "weight", "[2]": "cache"}.get(path[:3], "input")
    return Program(predict_step, (inputs, placed(params, R), placed(cache, R)), classify, (2,) if donate else ())
