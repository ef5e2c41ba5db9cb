"""jax-ml/bonsai (NNX): DINOv3 and Mamba2 trained, Qwen3's prefill; models as shipped."""
import dataclasses, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/repos/bonsai")
import jax, jax.numpy as jnp, optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P
from recipe import Program, mesh, placed


def training(make, tx, loss_fn, m, inputs, donate=True):
    R = NamedSharding(m, P())
    model = nnx.eval_shape(make)
    optimizer = nnx.eval_shape(lambda model: nnx.Optimizer(model, tx, wrt=nnx.Param), model)
    (gm, sm), (go, so) = nnx.split(model), nnx.split(optimizer)

    def train_step(model, optimizer, batch):
        net, opt = nnx.merge(gm, model), nnx.merge(go, optimizer)
        loss, grads = nnx.value_and_grad(lambda net: loss_fn(net, batch))(net)
        opt.update(net, grads)
        return nnx.state(net), nnx.state(opt), loss

    def classify(path):
        if "rng" in path.lower():
            return "other"
        return {"[0]": "weight", "[1]": "opt", "[2]": "input"}[path[:3]]

    return Program(train_step, (placed(sm, R), placed(so, R), inputs), classify, (0, 1) if donate else ())


def dinov3(topology, chips, batch, size, remat=False):
    from bonsai.models.dinov3 import modeling as D
    if remat:
        D.Dinov3ViTLayer.__call__ = nnx.remat(D.Dinov3ViTLayer.__call__)
    m = mesh(topology, (chips,), ("data",)); B = NamedSharding(m, P("data"))
    config = dataclasses.replace(D.ModelConfig.dinov3_vitb16(), image_size=size)
    inputs = {"pixel_values": jax.ShapeDtypeStruct((batch, 3, size, size), "float32", sharding=B), "teacher": jax.ShapeDtypeStruct((batch, 768), "float32", sharding=B)}
    loss = lambda net, batch: optax.cosine_distance(net(batch["pixel_values"])["pooler_output"], batch["teacher"]).mean()
    return training(lambda: D.Dinov3ViTModel(config, rngs=nnx.Rngs(0)), optax.adamw(1e-4), loss, m, inputs)


def mamba2(topology, chips, batch, length, depth, width, remat=False, chunks=1):
    from bonsai.models.mamba2 import modeling as M
    if remat:
        plain = M.Mamba2Block.__call__
        first = config_depth if (config_depth := depth) and remat is True else remat
        M.Mamba2Block.__call__ = lambda self, hidden_states, conv_state=None, ssm_state=None: (nnx.remat(plain) if self.mixer.layer_idx < first else plain)(self, hidden_states, conv_state, ssm_state)
    m = mesh(topology, (chips,), ("data",)); B = NamedSharding(m, P("data"))
    config = M.ModelConfig(hidden_size=width, num_hidden_layers=depth)
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=B)

    def loss(net, batch):
        if chunks == 1:
            return net(batch["input_ids"], batch["labels"])["loss"]
        x, table = net.backbone(batch["input_ids"])["last_hidden_state"], net.backbone.embedder.embedding[:]
        def piece(x, y):
            return optax.softmax_cross_entropy_with_integer_labels(x @ table.T, y).sum()
        cut = lambda a: a.reshape(a.shape[0], chunks, -1, *a.shape[2:]).swapaxes(0, 1)
        total, _ = jax.lax.scan(jax.checkpoint(lambda t, xs: (t + piece(*xs), None)), 0.0, (cut(x), cut(jnp.roll(batch["labels"], -1, 1))))
        return total / batch["labels"].size

    return training(lambda: M.Mamba2ForCausalLM(config, rngs=nnx.Rngs(0)), optax.adamw(1e-4), loss, m, {"input_ids": tokens, "labels": tokens})


def qwen3_prefill(topology, chips, batch, length, donate=False):
    from bonsai.models.qwen3 import modeling as Q
    m = mesh(topology, (chips,), ("tp",)); N = lambda *p: NamedSharding(m, P(*p))
    config = Q.ModelConfig.qwen3_1_7b()
    model = nnx.eval_shape(lambda: Q.Qwen3(config, rngs=nnx.Rngs(0)))
    cache = jax.eval_shape(lambda: Q.init_cache(config, batch, length, length))

    def place(path, leaf):
        if any(n in path for n in ("q_proj", "k_proj", "v_proj")):
            return N(None, "tp")
        if any(n in path for n in ("gate_proj", "up_proj", "lm_head")) and leaf.ndim == 2:
            return N(None, "tp")
        return N("tp") if leaf.ndim > 1 else N()

    model = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, jnp.bfloat16), model)
    model = placed(model, place)
    cache = placed(cache, lambda path, leaf: N(None, None, "tp") if leaf.ndim == 4 else N())
    tokens = jax.ShapeDtypeStruct((batch, length), "int32", sharding=N())

    def forward(model, cache, tokens):
        return Q.forward.__wrapped__(model, cache, tokens, 151643)

    return Program(forward, (model, cache, tokens), lambda path: {"[0]": "weight", "[1]": "cache"}.get(path[:3], "input"), (1,) if donate else ())
