"""Linen: a GPT of 1.5 billion on long texts, sequence parallel by DeepSpeed Ulysses: tokens divided over the sequence, heads while attending; fully sharded over both axes; nn.scan of nn.remat."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding, PartitionSpec as P

from pieces import HALF, causal, entropy, flash, shardings, turned
from recipe import Program, mesh, placed


class Layer(nn.Module):
    heads: int
    hidden: int
    attend: object
    by_time: object
    by_heads: object

    @nn.compact
    def __call__(self, x, _):
        width = x.shape[-1]
        lin = lambda n, name: nn.Dense(n, use_bias=False, dtype=HALF, name=name)
        time = lambda a: jax.lax.with_sharding_constraint(a, self.by_time)
        heads = lambda a: jax.lax.with_sharding_constraint(a, self.by_heads)
        h = nn.RMSNorm(dtype=HALF, name="attn_norm")(x)
        q, k, v = (heads(lin(width, n)(h).reshape(*h.shape[:2], self.heads, -1)) for n in ("q_proj", "k_proj", "v_proj"))
        seen = time(self.attend(turned(q, 1e6), turned(k, 1e6), v).reshape(x.shape))
        x = time(x + lin(width, "o_proj")(seen))
        h = nn.RMSNorm(dtype=HALF, name="mlp_norm")(x)
        return time(x + lin(width, "down_proj")(nn.silu(lin(self.hidden, "gate_proj")(h)) * lin(self.hidden, "up_proj")(h))), None


class Decoder(nn.Module):
    words: int
    width: int
    heads: int
    hidden: int
    depth: int
    attend: object
    by_time: object
    by_heads: object

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.words, self.width, dtype=HALF, name="embed")(tokens)
        x = jax.lax.with_sharding_constraint(x, self.by_time)
        stack = nn.scan(nn.remat(Layer, prevent_cse=False), variable_axes={"params": 0}, split_rngs={"params": True}, length=self.depth)
        x, _ = stack(self.heads, self.hidden, self.attend, self.by_time, self.by_heads, name="layers")(x, None)
        head = self.param("lm_head", nn.initializers.normal(0.02), (self.width, self.words))
        return nn.RMSNorm(dtype=HALF, name="norm")(x), head


def ulysses(topology, shape, batch, length=8192, words=128256, width=2048, heads=16, hidden=5632, depth=24, blockwise=False, donate=True):
    devices = mesh(topology, shape, ("fsdp", "seq"))
    where = lambda *spec: NamedSharding(devices, P(*spec))
    by_heads = P("fsdp", None, "seq")
    attend = jax.shard_map(flash if blockwise else causal, mesh=devices, in_specs=by_heads, out_specs=by_heads, check_vma=False)
    net = Decoder(words, width, heads, hidden, depth, attend, where("fsdp", "seq"), where("fsdp", None, "seq"))
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-4, b2=0.95))
    make = lambda: train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), jnp.zeros((batch, length), "int32"))["params"], tx=transform)
    count = shape[0] * shape[1]

    def place(path, leaf):
        fitting = [i for i, n in enumerate(leaf.shape) if n % count == 0 and not ("layers" in path and i == 0)]
        if leaf.size < 1 << 16 or not fitting:
            return where()
        best = max(fitting, key=lambda i: leaf.shape[i])
        return where(*[("fsdp", "seq") if i == best else None for i in range(leaf.ndim)])

    state = placed(jax.eval_shape(make), place)

    def train_step(state, batch):
        def loss_fn(params):
            x, head = state.apply_fn({"params": params}, batch["tokens"])
            return entropy(x, head, batch["labels"], 1)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    S = lambda: jax.ShapeDtypeStruct((batch, length), "int32", sharding=where("fsdp", "seq"))
    classify = lambda path: "input" if path.startswith("[1]") else "weight" if path.startswith("[0].params") else "opt" if path.startswith("[0].opt_state") else "other"
    return Program(train_step, (state, {"tokens": S(), "labels": S()}), classify, (0,) if donate else (), (shardings(state), None))
