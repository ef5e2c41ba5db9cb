"""torchax' own make_train_step of a model of PyTorch."""

import jax
import torch
import torchax
from jax.sharding import NamedSharding, PartitionSpec as P
from torchax import interop, train as T

from pieces import entropy, shardings
from recipe import Program, largest_dimension, mesh, placed

NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.int64: "int32", torch.int32: "int32", torch.bool: "bool"}


def checkpointed(layer):
    """Puts the layer in jax.checkpoint."""
    plain = layer.forward

    def forward(hidden, *args, **kwargs):
        return interop.torch_view(jax.checkpoint(interop.jax_view(lambda h: plain(h, *args, **kwargs))))(hidden)

    layer.forward = forward


def lowered(model):
    """The model computes in bfloat16 with its weights in float32: every matrix is cast where it is used."""
    def cast(module):
        for name, child in module.named_children():
            cast(child)
        if isinstance(module, torch.nn.Linear):
            def forward(x, m=module):
                bias = None if m.bias is None else m.bias.to(torch.bfloat16)
                return torch.nn.functional.linear(x.to(torch.bfloat16), m.weight.to(torch.bfloat16), bias)
            module.forward = forward
        elif isinstance(module, torch.nn.LayerNorm):
            def forward(x, m=module):
                return torch.nn.functional.layer_norm(x.float(), m.normalized_shape, m.weight, m.bias, m.eps).to(torch.bfloat16)
            module.forward = forward
    cast(model)


def build(model, dtype, layers, call, loss_fn, devices, x, y, transform, donate, shard, remat):
    """The first `remat` of `layers(model)` are checkpointed; `call(x)` gives the arguments that the model is called with."""
    env = torchax.default_env()
    for layer in layers(model)[:remat]:
        checkpointed(layer)
    whole = NamedSharding(devices, P())
    where = largest_dimension(devices, "fsdp", 1 << 16) if shard else whole
    abstract = lambda named: {name: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for name, a in named}
    weights, buffers = placed(abstract(model.named_parameters()), where), placed(abstract(model.named_buffers()), whole)
    state = placed(jax.eval_shape(transform.init, weights), where)

    def logits(weights, buffers, args):
        return torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=call(args)).logits

    viewed = interop.jax_view(T.make_train_step(logits, loss_fn, transform))

    def train_step(weights, buffers, opt_state, args, label):
        with env:
            return viewed(weights, buffers, opt_state, args, label)

    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    outs = (None, shardings(weights), shardings(state))
    return Program(train_step, (weights, buffers, state, x, y), classify, (0, 2) if donate else (), outs)


def words(model, dtype, topology, chips, batch, length, transform, donate, shard, remat):
    """The step of a decoder that learns the next words, its batch divided over all chips."""

    def loss(logits, y):
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    devices = mesh(topology, (chips,), ("fsdp",))
    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    return build(model, dtype, lambda n: list(n.model.layers), lambda ids: dict(input_ids=ids), loss, devices, S(), S(), transform, donate, shard, remat)


def by_its_head(model, topology, chips, batch, length, chunks, remat, donate, transform):
    """A decoder without its head, fully sharded, in training over the table for both ends; the first `remat` layers are checkpointed."""
    env = torchax.default_env()
    for layer in list(model.layers)[:remat]:
        checkpointed(layer)
    devices = mesh(topology, (chips,), ("fsdp",))
    whole, where = NamedSharding(devices, P()), largest_dimension(devices, "fsdp", 1 << 16)
    abstract = lambda named: {name: jax.ShapeDtypeStruct(tuple(a.shape), NAMES[a.dtype]) for name, a in named}
    weights, buffers = placed(abstract(model.named_parameters()), where), placed(abstract(model.named_buffers()), whole)
    state = placed(jax.eval_shape(transform.init, weights), where)

    def hidden_and_head(weights, buffers, ids):
        x = torch.func.functional_call(model, {**weights, **buffers}, args=(), kwargs=dict(input_ids=ids)).last_hidden_state
        return x, weights["embed_tokens.weight"]

    def loss_fn(out, y):
        x, head = out
        if chunks > 1:
            return interop.call_jax(lambda x, head, y: entropy(x, head.T, y, chunks), x, head, y)
        logits = torch.nn.functional.linear(x, head)
        return torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))

    viewed = interop.jax_view(T.make_train_step(hidden_and_head, loss_fn, transform))

    def train_step(weights, buffers, opt_state, args, label):
        with env:
            return viewed(weights, buffers, opt_state, args, label)

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=NamedSharding(devices, P("fsdp")))
    classify = lambda path: {"[0]": "weight", "[1]": "weight", "[2]": "opt"}.get(path[:3], "input")
    return Program(train_step, (weights, buffers, state, S(), S()), classify, (0, 2) if donate else (), (None, shardings(weights), shardings(state)))
