"""google-deepmind's gemma: LoRA fine-tuning of its Gemma 3 4B (text only, bfloat16) as its examples/lora.py does, adapters of rank 16, Adafactor of them alone (kauldron's partial_updates), data parallel, the weights whole on every chip."""

import sys
import types

# Its generated code is newer than the protobuf that is installed; nothing here reads a tokenizer.
sys.modules["sentencepiece.sentencepiece_model_pb2"] = types.ModuleType("sentencepiece.sentencepiece_model_pb2")

import gemma_names  # noqa: E402, F401
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import entropy
from recipe import Program, mesh, placed


def lora(topology, chips, batch, length=1024, rank=16, chunks=1, remat=False, donate=True):
    from gemma import gm
    from gemma.gm.nn import _modules
    from kauldron import kd

    if remat:
        _modules.Block = nn.remat(_modules.Block)
    devices = mesh(topology, (chips,), ("batch",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("batch"))
    model = gm.nn.LoRA(rank=rank, model=gm.nn.Gemma3_4B(tokens="batch.input", text_only=True))
    params = placed(jax.eval_shape(lambda: model.init(jax.random.key(0), jnp.zeros((1, 8), "int32")))["params"], whole)
    transform = kd.optim.partial_updates(optax.adafactor(1e-3), mask=kd.optim.select("lora"))
    opt = placed(jax.eval_shape(transform.init, params), whole)

    def loss_fn(params, batch):
        out = model.apply({"params": params}, batch["input"], return_hidden_states=chunks > 1)
        if chunks > 1:
            return entropy(out.hidden_states, params["embedder"]["input_embedding"].T, batch["target"], chunks)
        losses = optax.softmax_cross_entropy_with_integer_labels(out.logits.astype(jnp.float32), batch["target"])
        return (losses * batch["mask"]).sum() / batch["mask"].sum()

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d: jax.ShapeDtypeStruct((batch, length), d, sharding=split)
    data = {"input": S("int32"), "target": S("int32"), "mask": S("float32")}
    classify = lambda path: {"[0]": "weight", "[1]": "opt"}.get(path[:3], "input")
    outs = (jax.tree.map(lambda a: a.sharding, params), jax.tree.map(lambda a: a.sharding, opt), None)
    return Program(train_step, (params, opt, data), classify, (0, 1) if donate else (), outs)
