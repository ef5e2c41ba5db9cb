"""Haiku: Flamingo: a frozen language model in bfloat16 (hk.layer_stack of groups), a Perceiver resampler and gated cross-attention that are trained; data parallel."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

from haiku_pieces import Layer
from pieces import HALF, entropy, shardings
from recipe import Program, largest_dimension, mesh, placed

norm = lambda name: hk.LayerNorm(-1, True, True, name=name)


class Gated(hk.Module):
    """Attention to other places, then an MLP; each behind a tanh gate where `gates`."""

    def __init__(self, heads, gates, name):
        super().__init__(name=name)
        self.heads, self.gates = heads, gates

    def __call__(self, x, other):
        width = x.shape[-1]
        gate = (lambda name: jnp.tanh(hk.get_parameter(name, [1], x.dtype, init=jnp.zeros))) if self.gates else lambda name: 1
        split = lambda a, n: hk.Linear(width, with_bias=False, name=n)(a).reshape(*a.shape[:2], self.heads, -1)
        h = norm("ln_q")(x)
        q, k, v = split(h, "query"), split(other, "key"), split(other, "value")
        p = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5).astype(x.dtype)
        x = x + gate("alpha_attn") * hk.Linear(width, with_bias=False, name="proj")(jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(x.shape))
        h = hk.Linear(4 * width, name="mlp_in")(norm("ln_mlp")(x))
        return x + gate("alpha_mlp") * hk.Linear(width, name="mlp_out")(jax.nn.gelu(h))


def flamingo(topology, chips, batch, length=1024, patches=256, latents=64, sight=1024, words=50304, width=2048, heads=16, groups=6, each=4, remat=False, zero=False, chunks=1, donate=True):
    devices = mesh(topology, (chips,), ("data",))
    whole, split = NamedSharding(devices, P()), NamedSharding(devices, P("data"))

    def forward(features, tokens):
        x = hk.get_parameter("latents", [latents, sight], init=hk.initializers.RandomNormal(0.02))
        x = jnp.broadcast_to(x, (tokens.shape[0], latents, sight)).astype(features.dtype)
        for i in range(6):
            x = Gated(16, False, name=f"resampler_{i}")(x, jnp.concatenate([features, x], 1))
        seen = hk.Linear(width, name="resampler_out")(x)
        table = hk.get_parameter("frozen_wte", [words, width], init=hk.initializers.RandomNormal(0.02))
        x = table[tokens] + hk.get_parameter("frozen_wpe", [length, width], init=hk.initializers.RandomNormal(0.02))

        def group(x):
            x = Gated(heads, True, name="xattn")(x, seen)
            for i in range(each):
                x = Layer(heads, name=f"frozen_h{i}")(x)
            return x

        x = hk.layer_stack(groups)(hk.remat(group) if remat else group)(x)
        return norm("frozen_ln_f")(x), table

    net = hk.without_apply_rng(hk.transform(forward))
    params = jax.eval_shape(net.init, jax.random.key(0), jax.ShapeDtypeStruct((1, patches, sight), "float32"), jax.ShapeDtypeStruct((1, length), "int32"))
    frozen, params = hk.data_structures.partition(lambda module, name, value: "frozen" in module or "frozen" in name, params)
    frozen = placed(jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, HALF), frozen), whole)
    params = placed(params, whole)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4))
    opt = placed(jax.eval_shape(transform.init, params), largest_dimension(devices, "data") if zero else whole)

    def update(params, opt_state, frozen, batch):
        def loss_fn(params):
            both = hk.data_structures.merge(jax.tree.map(lambda a: a.astype(HALF), params), frozen)
            x, table = net.apply(both, batch["features"], batch["tokens"])
            return entropy(x, table.T, jnp.roll(batch["tokens"], -1, 1), chunks)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = transform.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    S = lambda d, *s: jax.ShapeDtypeStruct((batch, *s), d, sharding=split)
    classify = lambda path: {"[0]": "weight", "[1]": "opt", "[2]": "weight"}.get(path[:3], "input")
    return Program(update, (params, opt, frozen, {"features": S("bfloat16", patches, sight), "tokens": S("int32", length)}), classify, (0, 1) if donate else (), (shardings(params), shardings(opt), None))
