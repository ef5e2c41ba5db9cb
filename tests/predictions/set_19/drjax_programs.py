"""DrJAX: a round of federated averaging (FedAdam), every client with weights of its own and local steps by a scan."""

import drjax
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, kind_of_step, rms, shardings
from recipe import Program, largest_dimension, mesh, placed


def fedavg(topology, chips, clients, local=4, batch=8, length=256, depth=8, width=512, heads=8, hidden=2048, vocabulary=32000, momentum=True, remat=False, zero=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("clients",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("clients"))
    F = lambda *s: jax.ShapeDtypeStruct(s, "float32", sharding=whole)
    size = width // heads
    params = {"embed": F(vocabulary, width), "norm": F(width), "head": F(width, vocabulary), "layers": [
        {"qkv": F(width, 3, heads, size), "out": F(width, width), "up": F(width, hidden), "down": F(hidden, width), "n1": F(width), "n2": F(width)} for _ in range(depth)]}
    server, client = optax.adam(1e-3), optax.sgd(0.1, momentum=0.9 if momentum else None)
    state = placed(jax.eval_shape(server.init, params), largest_dimension(devices, "clients") if zero else whole)

    def layer(x, w):
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dnhk->btnhk", rms(x, w["n1"]), w["qkv"].astype(HALF)), 2, 0)
        x = x + causal(q, k, v).reshape(x.shape) @ w["out"].astype(HALF)
        return x + jax.nn.gelu(rms(x, w["n2"]) @ w["up"].astype(HALF)) @ w["down"].astype(HALF)

    body = jax.checkpoint(layer) if remat else layer

    def loss_fn(params, tokens):
        x = params["embed"].astype(HALF)[tokens]
        for i, w in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{i}"):
                x = body(x, w)
        if chunks > 1:
            return entropy(rms(x, params["norm"]), params["head"], jnp.roll(tokens, -1, 1), chunks)
        logits = (rms(x, params["norm"]) @ params["head"].astype(HALF)).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.roll(tokens, -1, 1)).mean()

    def client_update(params, tokens):
        def one(carry, batch):
            mine, state = carry
            loss, grads = jax.value_and_grad(loss_fn)(mine, batch)
            updates, state = client.update(grads, state, mine)
            return (optax.apply_updates(mine, updates), state), loss

        (mine, _), losses = jax.lax.scan(one, (params, client.init(params)), tokens)
        return jax.tree.map(jnp.subtract, params, mine), losses.mean()

    @drjax.program(placements={"clients": clients}, use_abstract_mesh=False)
    def round_of(params, tokens):
        sent = drjax.broadcast(params, mesh=devices)
        deltas, losses = drjax.map_fn(client_update, (sent, tokens), mesh=devices)
        return drjax.reduce_mean(deltas), drjax.reduce_mean(losses)

    def train_round(params, opt_state, tokens):
        delta, loss = round_of(params, tokens)
        updates, opt_state = server.update(delta, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((clients, local, batch, length), "int32", sharding=split)
    return Program(train_round, (params, state, tokens), kind_of_step, (0, 1) if donate else (), (shardings(params), shardings(state), None))
